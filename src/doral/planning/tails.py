"""How heavy the tail of the delays is, and whether a mean delay exists at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from doral.planning.fact import Fact, YesNo

Tail = Literal["heavy", "light", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class DelayTail(Fact):
    """The tail of the delays of those who answer: P(delay > x) falls like x ** -index.

    A mean exists where the index is above 1. Those who never answer are not part of it: an answer is late here, not
    absent. `tail` is "light" where delays fall off faster than any power, "heavy" where a power fits and they do not.
    """

    arm: str | None  # None: all arms together
    rows: int
    answered: int
    index: float | None
    low: float | None  # 95% interval of the index
    high: float | None  # None: no upper limit is known
    from_age: float | None  # the tail begins here
    answers: int  # later than that
    mean_exists: YesNo
    tail: Tail
