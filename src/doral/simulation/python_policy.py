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
    """Somebody has arrived. Contexts and arms are numbered in the order of the problem."""

    round: int
    context: int
    available: tuple[int, ...]  # arms that can be had today and that the remaining budget can pay
    budget_left: float
    rounds_left: int  # this one included; where the end is a date, as the pace so far has it
    time: float = 0.0  # what the clock shows: the round, unless people arrive in time
    until: float = math.inf  # what it shows at the end, where that is a date
    features: Mapping[str, Any] = field(default_factory=dict, hash=False)  # numbers, words, None for what is missing


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to an earlier decision; where the problem has a control arm, to a skip as well, with that arm."""

    round: int  # of the answer
    decided: int  # round of the decision
    context: int
    arm: int
    reward: float
    paid: float = 0.0  # what the decision costs in the end
    time: float | None = None  # when it came, and when it was decided, where people arrive in time
    decided_at: float | None = None

    @property
    def delay(self) -> float:
        if self.time is None or self.decided_at is None:
            return self.round - self.decided
        return self.time - self.decided_at


@runtime_checkable
class PythonPolicy(Protocol):
    """What the simulator asks of a policy. An attribute `cutoff`, if there is one, is used for `within_cutoff`."""

    def decide(self, arrival: Arrival) -> int | None:
        """An arm out of `arrival.available`, or None to skip."""

    def observe(self, answer: Answer) -> None:
        """Learn from an answer."""


# A class or function that makes a fresh policy for one run.
PolicyMaker: TypeAlias = Callable[[Problem, int], PythonPolicy]
