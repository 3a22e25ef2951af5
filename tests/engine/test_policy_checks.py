"""The checks for policies: ours pass them all, and for each there is a policy that does not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from doral import testing as checks
from doral.engine.options import POLICY_NAMES, PolicyOptions, policy
from doral.prediction.python_policy import Answer, Arrival, PolicyMaker
from doral.problem import Problem
from doral.simulation.api import AnyPolicy
from doral.simulation.rivals.rival import RIVALS
from doral.testing import CHECKS, PolicyCheckFailed, check_policy


def example_policy() -> type[Any]:
    """Made in a function, so that worker processes get the class itself and need not import the tests."""

    class BestSoFar:
        """Plays the arm with the best mean answer in each context, and now and then another."""

        cutoff = 40.0

        def __init__(self, problem: Problem, seed: int) -> None:
            self.random = random.Random(seed)
            self.total: dict[tuple[int, int], float] = {}
            self.count: dict[tuple[int, int], int] = {}

        def decide(self, arrival: Arrival) -> int | None:
            if not arrival.available:
                return None
            if self.random.random() < 0.1:
                return self.random.choice(arrival.available)
            return max(arrival.available, key=lambda arm: self._mean(arrival.context, arm))

        def _mean(self, context: int, arm: int) -> float:
            n = self.count.get((context, arm), 0)
            return self.total[context, arm] / n if n else 1.0

        def observe(self, answer: Answer) -> None:
            key = (answer.context, answer.arm)
            self.total[key] = self.total.get(key, 0.0) + answer.reward
            self.count[key] = self.count.get(key, 0) + 1

    return BestSoFar


OURS: dict[str, AnyPolicy] = {
    **{name: name for name in POLICY_NAMES},
    "options": policy("doral", accept=3, censoring="min_age", learner="scaled"),
    "python": example_policy(),
    **{name: name for name in RIVALS},
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("one", OURS.values(), ids=OURS.keys())
def test_our_policies_pass(one: AnyPolicy, check: Callable[[AnyPolicy], None]) -> None:
    check(one)


def test_all_checks_are_listed() -> None:
    written = {name for name in vars(checks) if name.startswith("check_") and name != "check_policy"}
    assert {check.__name__ for check in CHECKS} == written
    assert len(CHECKS) == len(written)


# --- a policy that breaks each promise -----------------------------------------------------------------------------


class Polite:
    """Plays the first arm that can be had: what the bad ones below are made of."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed

    def decide(self, arrival: Arrival) -> int | None:
        return arrival.available[0] if arrival.available else None

    def observe(self, answer: Answer) -> None:
        pass


class Moody(Polite):
    """Its randomness is not from the seed."""

    mood = random.Random(0)

    def decide(self, arrival: Arrival) -> int | None:
        return self.mood.choice(arrival.available) if arrival.available else None


class Idle(Polite):
    def decide(self, arrival: Arrival) -> int | None:
        return None


class Greedy(Polite):
    """Takes the dearest arm, whether or not the budget can pay it."""

    def decide(self, arrival: Arrival) -> int | None:
        return int(self.problem.costs.argmax())


class Stubborn(Polite):
    """Takes the first arm, whether or not it is there."""

    def decide(self, arrival: Arrival) -> int | None:
        return 0


class Twofold(Polite):
    """Wants two arms at once."""

    def decide(self, arrival: Arrival) -> Any:
        return arrival.available[:2]


class Vandal(Polite):
    """Edits the problem in place."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        problem.costs.flags.writeable = True
        problem.costs[0] = 0.1


class Forger(Polite):
    """Edits what it was told."""

    def decide(self, arrival: Arrival) -> int | None:
        object.__setattr__(arrival, "budget_left", 1e9)
        return None


class Rewriter(Polite):
    def observe(self, answer: Answer) -> None:
        object.__setattr__(answer, "reward", 1.0)


class Impatient(Polite):
    """Falls over when no answer comes for long."""

    last_answer = 0

    def decide(self, arrival: Arrival) -> int | None:
        if arrival.round > self.last_answer + 100:
            raise RuntimeError("nobody answers")
        return super().decide(arrival)

    def observe(self, answer: Answer) -> None:
        self.last_answer = answer.round


class Pairwise(Polite):
    """Believes that there are always two arms."""

    def decide(self, arrival: Arrival) -> int | None:
        first, _second = self.problem.arms[0], self.problem.arms[1]
        assert first.dearest > 0
        return super().decide(arrival)


BAD: list[tuple[Callable[[AnyPolicy], None], PolicyMaker, str]] = [
    (checks.check_same_seed_same_decisions, Moody, "same seed"),
    (checks.check_other_seed_other_draws, Idle, "no decision"),
    (checks.check_never_overspends, Greedy, "not among"),
    (checks.check_plays_only_available_arms, Stubborn, "not among"),
    (checks.check_at_most_one_decision_per_round, Twofold, "not among"),
    (checks.check_inputs_are_not_changed, Vandal, "changed"),
    (checks.check_inputs_are_not_changed, Forger, "arrival was changed"),
    (checks.check_inputs_are_not_changed, Rewriter, "answer was changed"),
    (checks.check_plays_nothing_when_nothing_can_be_had, Stubborn, "not among"),
    (checks.check_survives_arms_that_never_answer, Impatient, "nobody answers"),
    (checks.check_one_arm_and_one_context, Pairwise, "IndexError"),
]


@pytest.mark.parametrize(("check", "bad", "why"), BAD, ids=[f"{bad.__name__}" for _, bad, _ in BAD])
def test_a_bad_policy_fails(check: Callable[[AnyPolicy], None], bad: PolicyMaker, why: str) -> None:
    with pytest.raises(PolicyCheckFailed, match=why):
        check(bad)


def remembering_policy() -> type[Any]:
    """Carries something over from one run to the next, and no worker process shares that memory."""

    class Remembering:
        runs_seen: ClassVar[list[int]] = []

        def __init__(self, problem: Problem, seed: int) -> None:
            self.runs_seen.append(seed)

        def decide(self, arrival: Arrival) -> int | None:
            fits = arrival.available
            return fits[len(self.runs_seen) % len(fits)] if fits else None

        def observe(self, answer: Answer) -> None:
            pass

    return Remembering


def test_a_policy_that_depends_on_the_number_of_jobs_fails() -> None:
    with pytest.raises(PolicyCheckFailed, match="number of jobs"):
        checks.check_independent_of_jobs(remembering_policy())


def test_check_policy_names_the_check_that_failed() -> None:
    check_policy(PolicyOptions(name="mine", accept=2))
    with pytest.raises(PolicyCheckFailed, match="^check_other_seed_other_draws: made no decision"):
        check_policy(Idle)
