"""What kind of feedback this is: questions about delays, each answered with an effect and its interval."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.fact import Fact, YesNo


@dataclass(frozen=True, kw_only=True)
class Finding(Fact):
    """The answer to a question about the log.

    "yes" needs a p-value below 5% after Holm's correction for all questions that were asked; "no" needs an interval
    of the effect inside `margin` on both sides of nothing; all else is "cannot tell". A question that cannot be asked
    of this log has None for its numbers, and its sentence says why.
    """

    question: str  # "silent", "positives_first", "context", "time"
    asked: str  # the question in words
    answer: YesNo
    effect: float | None  # what it is of stands in `measured`
    low: float | None  # 95% interval of the effect
    high: float | None
    margin: float | None  # an effect smaller than this does not matter
    p_value: float | None  # after Holm's correction
    measured: str  # what the effect is, in words
