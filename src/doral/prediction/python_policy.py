"""A policy in plain Python: two methods, run by the same simulator on the same tapes, only slower.

`docs/add_a_policy.md` walks through an example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from doral.problem import Problem


@dataclass(frozen=True, slots=True)
class Arrival:
    """An arrival. Contexts and arms are numbered from 0, in the order of the problem.

    Attributes:
        round: Which arrival it is, from 1.
        context: The number of their context.
        available: Numbers of the arms that can be had today and that the remaining budget can pay.
        budget_left: What is left to be spent.
        rounds_left: Arrivals to come, this one included; where the end is a date, as the pace so far has it.
        time: What the clock shows: the round, unless people arrive in time.
        until: What the clock shows at the end, where that is a date; else infinite.
        features: What is known of the person, by name: numbers, words, None for what is missing.
    """

    round: int
    context: int
    available: tuple[int, ...]
    budget_left: float
    rounds_left: int
    time: float = 0.0
    until: float = math.inf
    features: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to an earlier decision; where the problem has a control arm, to a skip as well, with that arm.

    Attributes:
        round: The round in which it came.
        decided: The round of the decision.
        context: The number of the context.
        arm: The number of the arm.
        reward: What the decision brought.
        paid: What the decision costs in the end.
        time: What the clock showed when it came, where people arrive in time; else None.
        decided_at: What the clock showed at the decision, likewise.
    """

    round: int
    decided: int
    context: int
    arm: int
    reward: float
    paid: float = 0.0
    time: float | None = None
    decided_at: float | None = None

    @property
    def delay(self) -> float:
        """How long the answer took: rounds, or units of the clock where people arrive in time."""
        if self.time is None or self.decided_at is None:
            return self.round - self.decided
        return self.time - self.decided_at


@runtime_checkable
class PythonPolicy(Protocol):
    """What the simulator asks of a policy. An attribute `cutoff`, if there is one, is used for `within_cutoff`."""

    def decide(self, arrival: Arrival) -> int | str | None:
        """An arm out of `arrival.available`, by its number or its name, or None to skip.

        Args:
            arrival: Who has arrived, what can be had, and what is left.
        """

    def observe(self, answer: Answer) -> None:
        """Learn from an answer.

        Args:
            answer: What an earlier decision brought.
        """


# A class or function that makes a fresh policy for one run.
PolicyMaker: TypeAlias = Callable[[Problem, int], PythonPolicy]
