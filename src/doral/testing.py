"""Checks that every policy should pass: one small check per promise, all of them by `check_policy`.

A policy is anything that `doral.simulate` takes: a name, options from `doral.policy(...)`, or a class in Python.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from doral.compiled import Block
from doral.delays import AnyLaw, Fixed, Geometric, Never, Pareto
from doral.engine.options import PolicyOptions
from doral.errors import DoralError
from doral.prediction.external import External
from doral.prediction.python_policy import Answer, Arrival, PolicyMaker, PythonPolicy
from doral.problem import Arm, Problem
from doral.simulation.api import AnyPolicy, simulate
from doral.simulation.results.outcome import DecisionLog, Outcome
from doral.simulation.rivals.rival import named_policy
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

_HORIZON = 300
_SILENT = Never(Fixed(1), 1.0)


class PolicyCheckFailed(DoralError, AssertionError):
    """A policy breaks a promise; the message says which one and where."""


# --- problems to be checked on ------------------------------------------------------------------------------------


def _scenario(
    *,
    costs: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    n_contexts: int = 3,
    budget: float = 150.0,
    delays: AnyLaw | tuple[AnyLaw, ...] | None = None,
    availability: float | tuple[float, ...] | None = None,
) -> Scenario:
    """A small problem with answers that matter; every arm pays."""
    n_arms = len(costs)
    problem = Problem(
        arms=[Arm(f"arm-{i}", features=[1.0, math.cos(i), math.sin(i)], cost=cost) for i, cost in enumerate(costs)],
        contexts={f"context-{j}": 1.0 / n_contexts for j in range(n_contexts)},
        budget=budget,
        horizon=_HORIZON,
        deadline=40.0,
    )
    laws = tuple(Geometric(3 + 4 * i) if i % 2 else Pareto(2 + i, 2) for i in range(n_arms))
    return Scenario(
        name="check",
        problem=problem,
        delays=laws if delays is None else delays,
        theta=[[1.0, 0.2 * j, 0.4 - 0.2 * j] for j in range(n_contexts)],
        availability=availability,
    )


# --- running a policy ---------------------------------------------------------------------------------------------


def _fitted(policy: AnyPolicy, n_arms: int) -> AnyPolicy:
    """A policy that wants to accept more arms than there are here accepts all of them."""
    options = named_policy(policy) if isinstance(policy, str) else policy
    if isinstance(options, PolicyOptions) and options.accept is not None:
        return dataclasses.replace(options, accept=min(options.accept, n_arms))
    return policy


def _outcomes(policy: AnyPolicy, scenario: Scenario, *, seed: int = 0, runs: int = 1, n_jobs: int = 1) -> list[Outcome]:
    fitted = _fitted(policy, scenario.problem.n_arms)
    try:
        result = simulate(fitted, scenario, runs=runs, seed=seed, n_jobs=n_jobs, keep_decisions=True)
    except PolicyCheckFailed:
        raise
    except Exception as error:
        raise PolicyCheckFailed(f"{type(error).__name__} while it played: {error}") from error
    return list(result.outcomes)


def _log(outcome: Outcome) -> DecisionLog:
    assert outcome.log is not None  # `keep_decisions` was set
    return outcome.log


def _rows(outcome: Outcome) -> list[tuple[Any, ...]]:
    log = _log(outcome)
    columns = (log.round, log.context, log.arm, log.reward, log.delay)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _demand(holds: bool, broken: str) -> None:
    if not holds:
        raise PolicyCheckFailed(broken)


# --- the checks ---------------------------------------------------------------------------------------------------


def check_same_seed_same_decisions(policy: AnyPolicy) -> None:
    """All randomness comes from the seed."""
    first, second = (_outcomes(policy, _scenario(), seed=7, runs=2) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        _demand(_rows(one) == _rows(other), f"run {one.run}: the same seed gave other decisions")


def check_other_seed_other_draws(policy: AnyPolicy) -> None:
    """It plays when there is every reason to, and another seed is another story."""
    one, other = (_outcomes(policy, _scenario(), seed=seed)[0] for seed in (1, 2))
    _demand(one.decisions > 0, "made no decision on an easy problem")
    _demand(_rows(one) != _rows(other), "two seeds gave the same decisions and answers")


def check_never_overspends(policy: AnyPolicy) -> None:
    """The sum of costs stays within the budget, also where the budget is no multiple of any cost."""
    costs = (0.7, 1.3, 2.9, 1.1)
    for budget in (0.9, 7.3, 41.17, 150.0, 10_000.0):
        outcome = _outcomes(policy, _scenario(costs=costs, budget=budget))[0]
        spend = math.fsum(costs[arm] for arm in _log(outcome).arm.tolist())
        # budget - cost - cost ... is rounded at every step; nothing of the size of a cost hides in this
        _demand(spend <= budget * (1.0 + 1e-12), f"spent {spend} of a budget of {budget}")


def check_plays_only_available_arms(policy: AnyPolicy) -> None:
    """An arm that is missing today is not played today."""
    scenario = _scenario(availability=(0.3, 0.9, 0.5, 0.1))
    outcome = _outcomes(policy, scenario, seed=3)[0]
    truth = make_truth(scenario, seed=3, run=0)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, 3, 0, 1)
    for round_, _, arm, _, _ in _rows(outcome):
        _demand(bool(tape.available[round_ - 1, arm]), f"round {round_}: played arm {arm}, which was not available")


def check_at_most_one_decision_per_round(policy: AnyPolicy) -> None:
    """One arrival, one arm or none, in the order of the rounds."""
    rounds = _log(_outcomes(policy, _scenario(budget=10_000.0))[0]).round
    _demand(bool((np.diff(rounds) > 0).all()), "more than one decision in a round")
    in_range = rounds.size == 0 or (rounds[0] >= 1 and rounds[-1] <= _HORIZON)
    _demand(bool(in_range), "decisions outside of the horizon")


def check_independent_of_jobs(policy: AnyPolicy) -> None:
    """Runs share nothing: in parallel they give what they give one after the other."""
    alone, together = (_outcomes(policy, _scenario(), runs=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    for one, other in zip(alone, together, strict=True):
        _demand(_rows(one) == _rows(other), f"run {one.run}: decisions depend on the number of jobs")


def check_inputs_are_not_changed(policy: AnyPolicy) -> None:
    """The problem, the scenario, and what a policy in Python receives, are the same afterwards."""
    scenario = _scenario(availability=0.8)
    problem = scenario.problem
    before = copy.deepcopy(scenario)
    arrays = {name: np.array(getattr(problem, name)) for name in ("features", "costs", "shares")}
    watched = policy if isinstance(policy, str | PolicyOptions | External) else _watched(policy)
    _outcomes(watched, scenario)
    _demand(scenario == before, "the scenario or its problem was changed")
    for name, array in arrays.items():
        _demand(np.array_equal(array, getattr(problem, name)), f"{name} of the problem were changed")


def check_plays_nothing_when_nothing_can_be_had(policy: AnyPolicy) -> None:
    """A budget below every cost, or no arm available: every round is skipped."""
    poor = _outcomes(policy, _scenario(costs=(2.0, 3.0), budget=1.5))[0]
    _demand(poor.decisions == 0, "played with a budget that no arm fits into")
    empty = _outcomes(policy, _scenario(availability=0.0))[0]
    _demand(empty.decisions == 0, "played although no arm was ever available")


def check_survives_arms_that_never_answer(policy: AnyPolicy) -> None:
    """Silence from one arm, or from all of them, is no reason to stop working."""
    some: tuple[AnyLaw, ...] = (_SILENT, Geometric(5), _SILENT, Geometric(9))
    for delays in (some, _SILENT):
        outcome = _outcomes(policy, _scenario(delays=delays))[0]
        _demand(all(math.isfinite(reward) for reward in outcome.rewards), "rewards are not finite numbers")


def check_one_arm_and_one_context(policy: AnyPolicy) -> None:
    """The smallest problem of all."""
    for budget in (20.0, 10_000.0):
        outcome = _outcomes(policy, _scenario(costs=(1.0,), n_contexts=1, budget=budget))[0]
        _demand(outcome.spend <= budget, f"spent {outcome.spend} of {budget}")


CHECKS: tuple[Callable[[AnyPolicy], None], ...] = (
    check_same_seed_same_decisions,
    check_other_seed_other_draws,
    check_never_overspends,
    check_plays_only_available_arms,
    check_at_most_one_decision_per_round,
    check_independent_of_jobs,
    check_inputs_are_not_changed,
    check_plays_nothing_when_nothing_can_be_had,
    check_survives_arms_that_never_answer,
    check_one_arm_and_one_context,
)


def check_policy(policy: AnyPolicy) -> None:
    """Run all checks; the first one that fails raises `PolicyCheckFailed` under its name.

    >>> check_policy("d-linucb")
    """
    for check in CHECKS:
        try:
            check(policy)
        except PolicyCheckFailed as failure:
            raise PolicyCheckFailed(f"{check.__name__}: {failure}") from failure


# --- watching a policy in Python ----------------------------------------------------------------------------------


class _Watched:
    """Passes everything on, and checks that arguments were not changed."""

    def __init__(self, inner: PythonPolicy) -> None:
        self._inner = inner

    def decide(self, arrival: Arrival) -> int | str | None:
        before = dataclasses.replace(arrival)
        arm = self._inner.decide(arrival)
        _demand(arrival == before, f"round {before.round}: the arrival was changed")
        return arm

    def observe(self, answer: Answer) -> None:
        before = dataclasses.replace(answer)
        self._inner.observe(answer)
        _demand(answer == before, f"round {before.round}: the answer was changed")


def _watched(maker: PolicyMaker) -> PolicyMaker:
    def watched(problem: Problem, seed: int) -> PythonPolicy:
        return _Watched(maker(problem, seed))

    return watched
