"""What comes where nothing is done."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.fact import Fact


@dataclass(frozen=True, kw_only=True)
class NothingDone(Fact):
    """The mean reward of those for whom nothing was done, corrected for answers that are still to come."""

    context: str | None  # None: all together
    rows: int  # skipped
    answered: int
    value: float | None  # per arrival
    low: float | None  # 95% interval
    high: float | None
