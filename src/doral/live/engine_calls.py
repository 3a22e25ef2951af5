"""All that a campaign asks of the engine, in one place.

The engine is deterministic: the same calls in the same order lead to the same state, to the bit. A call that changes
the state may put another one in its place, so nobody keeps a state but the `Engine` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from doral._arrays import Bits
from doral.policies import operations
from doral.policies.build import build_rules, build_state
from doral.policies.choice import PLAYED_RACING
from doral.policies.dropping import Certificate, certificates
from doral.policies.engine import LEARNED
from doral.policies.operations import ArmView, Calls
from doral.policies.options import PolicyOptions
from doral.policies.state import Rules, State
from doral.problem import Problem

__all__ = ["LEARNED", "ArmView", "Certificate", "Chosen", "Engine", "check_fit"]

# What the engine decided for one arrival: (arm, reason, round, number), (probability, value, price). The arm is below 0
# for a skip; the number counts decisions that were played.
Chosen: TypeAlias = tuple[list[int], list[float]]

_LIVE_RUN = 0  # the engine's coin is keyed by (seed, run); a campaign is one run


def check_fit(*, policy: PolicyOptions, problem: Problem, seed: int) -> None:
    """Complain about options that do not fit the problem."""
    build_rules(options=policy, problem=problem, seed=seed, run=_LIVE_RUN)


class Engine:
    """The engine of one campaign: its rules, which never change, and its state."""

    def __init__(self, *, policy: PolicyOptions, problem: Problem, seed: int) -> None:
        self._policy = policy
        self._rules: Rules = build_rules(options=policy, problem=problem, seed=seed, run=_LIVE_RUN)
        # Room for one arrival, so that a single decision makes no arrays.
        self._one = (np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, 4), dtype=np.int64), np.zeros((1, 3)))
        self._chosen = (self._one[2][0], self._one[3][0])
        self.start(problem)

    def start(self, problem: Problem) -> None:
        """A state that knows nothing, for these arms."""
        self._replace(self._first_state(problem))

    def _first_state(self, problem: Problem) -> State:
        return build_state(options=self._policy, rules=self._rules, problem=problem)

    def _replace(self, state: State) -> None:
        self._calls = Calls(state, self._rules)

    # --- events -----------------------------------------------------------------------------------------------------

    def decide(self, context: int, offered: Bits, clock: float) -> Chosen:
        """One arrival. `offered` is (1, arms), or (1, 0) where all arms are."""
        contexts, clocks, whole, real = self._one
        contexts[0], clocks[0] = context, clock
        self._calls.arrive(contexts, offered, clocks, whole, real)
        return self._chosen[0].tolist(), self._chosen[1].tolist()

    def decide_many(self, contexts: Sequence[int], offered: Bits, clocks: Sequence[float]) -> Iterator[Chosen]:
        """Arrivals in their order, in one call."""
        n = len(contexts)
        whole, real = np.empty((n, 4), dtype=np.int64), np.empty((n, 3))
        self._calls.arrive(np.array(contexts, dtype=np.int64), offered, np.array(clocks, dtype=np.float64), whole, real)
        return zip(whole.tolist(), real.tolist(), strict=True)

    def answer(self, numbers: Sequence[int], rewards: Sequence[float], clocks: Sequence[float]) -> list[int]:
        """Answers in their order, and what the engine made of each."""
        outcomes = np.empty(len(numbers), dtype=np.int64)
        self._calls.answer(
            np.array(numbers, dtype=np.int64),
            np.array(rewards, dtype=np.float64),
            np.array(clocks, dtype=np.float64),
            outcomes,
        )
        found: list[int] = outcomes.tolist()
        return found

    def pass_time(self, clock: float) -> None:
        """Time has passed and nobody has arrived."""
        self._calls.state = operations.pass_time(self.state, self._rules, clock)

    # --- amendments -------------------------------------------------------------------------------------------------

    def correct(self, *, number: int, context: int, arm: int, reason: int, previous: float, reward: float) -> None:
        """A reward that came in time is another one. What was not learned, such as answers to a race, stays so."""
        if operations.is_learned(self._rules, reason):
            operations.correct(self.state, self._rules, number, context, arm, previous, reward)

    def cancel(self, *, number: int, context: int, arm: int, reason: int, clock: float) -> None:
        """A decision that has no answer is taken back; its cost comes back with it."""
        operations.cancel(self.state, self._rules, number, context, arm, reason == PLAYED_RACING, clock)

    def give_back(self, context: int, amount: float) -> None:
        """A decision in this context cost less than was reserved for it (below 0: a corrected cost adds to it)."""
        operations.give_back(self.state, context, amount)

    def top_up(self, amount: float) -> None:
        operations.top_up(self.state, amount)

    def extend(self, rounds: int) -> None:
        operations.extend(self.state, rounds)

    def retire(self, arm: int) -> None:
        """Keep an arm out of stage 2, and out of the price of the budget."""
        operations.retire(self.state, arm)

    def add_arm(self, before: Problem, after: Problem) -> None:
        """One more arm, about which nothing is known."""
        first = (self._first_state(before), self._first_state(after))
        self._replace(operations.widened(self.state, self._rules, *first))

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._calls.state

    @property
    def is_racing(self) -> bool:
        return bool(self.state.now["racing"][0])

    @property
    def budget_left(self) -> float:
        """As the engine counts it, in floats."""
        return float(self.state.now["budget_left"][0])

    @property
    def cutoff(self) -> float:
        return float(self.state.now["cutoff"][0])

    @property
    def horizon(self) -> int:
        return int(self.state.now["horizon"][0])

    @property
    def played(self) -> int:
        """How many decisions were no skips."""
        return int(self.state.now["next"][0])

    @property
    def shares(self) -> list[float]:
        """Of the contexts, among arrivals."""
        found: list[float] = self.state.shares.tolist()
        return found

    def view_arm(self, arm: int) -> ArmView:
        return operations.view_arm(self.state, arm)

    def certificates(self, problem: Problem) -> tuple[Certificate, ...]:
        return certificates(self.state, problem)

    # --- snapshots --------------------------------------------------------------------------------------------------

    def arrays(self) -> list[tuple[str, Any]]:
        """The whole state: arrays with their names."""
        return list(operations.leaves(self.state))

    def restore(self, arrays: dict[str, Any]) -> None:
        """Put these in the place of the state's arrays."""
        self._replace(operations.replace_leaves(self.state, arrays))
