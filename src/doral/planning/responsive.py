"""Which arms answer in time, and which surely answer later than the fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doral.planning.fact import Fact

Standing = Literal["responsive", "slow", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class ArmSpeed(Fact):
    """How soon the answers of one arm come. Intervals hold for all arms at once (95%)."""

    arm: str
    rows: int
    share: float | None  # returned by the deadline
    low: float | None
    high: float | None
    mean_wait: float | None  # E[min(delay, deadline)]: what the ranking goes by; a smaller one is sooner
    wait_low: float | None
    wait_high: float | None
    rank: int | None  # 1 answers soonest
    rank_low: int | None  # the ranks that the intervals allow
    rank_high: int | None
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class Responsiveness(Fact):
    """The arms from the soonest to the latest.

    "slow" is an arm that surely answers later than the one that answers soonest; "responsive" is one that is not, or
    not by more than `margin` (of the deadline, in the mean wait); the rest "cannot tell".
    """

    deadline: float | None
    arms: tuple[ArmSpeed, ...]  # as ranked; those without a rank last
    responsive: tuple[str, ...]
    slow: tuple[str, ...]
    margin: float  # a share of the deadline
