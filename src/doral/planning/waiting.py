"""How long to wait: what is there after each wait, what is lost without the rest, and what is held open meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.deadline import Deadline
from doral.planning.fact import Fact


@dataclass(frozen=True, kw_only=True)
class Wait(Fact):
    """What it means to wait so long for an answer and no longer.

    Biases are of the mean reward of a decision, relative to all that comes within the deadline: -0.3 is 30% too low.
    """

    age: float
    share: float  # of decisions that have answered by then
    share_low: float | None  # of the band of the return curve
    share_high: float | None
    kept: float | None  # of the answers within the deadline, those by then
    value: float | None  # of the reward within the deadline, what is there by then; None without any
    bias_as_zero: float | None  # if silence by then is counted as a zero
    bias_ignored: float | None  # if those who have not answered by then are left out
    variance: float | None  # of an estimate that corrects for the missing: times that of waiting until the deadline
    open_decisions: float | None  # on average, at the pace of the log
    open_budget: float | None  # list prices of these


@dataclass(frozen=True, kw_only=True)
class Waiting(Fact):
    """How long to wait: the shortest wait that keeps `keep` of what comes within the deadline."""

    deadline: Deadline
    waits: tuple[Wait, ...]  # ages ascending, the last one the deadline
    keep: float
    advised: float | None
    advised_low: float | None  # 95% interval
    advised_high: float | None  # None: longer than is known
    advised_wait: Wait | None
    fewer_open: float | None  # share of decisions that are not held open any more
