"""The plan of spending, and where a campaign stands relative to what was planned by now.

The plan spends the budget evenly until the end: over the arrivals, or over the time where the end is a date. It bends
where the budget or the end is changed: what was planned until then stays planned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

NEAR = 0.1  # of what was planned by now: closer than that is on plan
_DOUBT = math.log(1_000.0)  # a gap is noise as long as single decisions explain it with a chance above 1 in 1,000


@dataclass(slots=True)
class Plan:
    """Even spending from where it was bent last.

    Attributes:
        since: Arrivals, or the campaign's clock where the end is a date.
        planned: What was planned to be used by then, in budget units.
    """

    since: float = 0.0
    planned: float = 0.0

    def by(self, now: float, *, end: float, total: float) -> float:
        """Return what is planned to be used by a moment, in budget units."""
        if end <= self.since:
            return self.planned
        way = min(max((now - self.since) / (end - self.since), 0.0), 1.0)
        return self.planned + (total - self.planned) * way

    def bend(self, now: float, *, end: float, total: float) -> None:
        """Begin anew from here: the budget or the end is about to change."""
        self.since, self.planned = now, self.by(now, end=end, total=total)


class Pace(NamedTuple):
    """Where a campaign stands relative to its plan.

    Attributes:
        status: "not begun", "too early", "on plan", "ahead of plan", "behind plan", "used up" or "over".
        used: Budget that is spent or reserved.
        planned: Budget that was planned to be used by now.
    """

    status: str
    used: float
    planned: float

    @property
    def gap(self) -> float:
        """Difference between used and planned budget, as a share of the planned one; 0 where nothing was planned."""
        return (self.used - self.planned) / self.planned if self.planned > 0.0 else 0.0


def judge_pace(
    *, used: float, planned: float, total: float, dearest: float, arrivals: int, share_gone: float, is_closed: bool
) -> Pace:
    """Judge what is used against what was planned by now.

    A gap is judged only where it is more than the noise of single decisions: purchases of at most `dearest` that add up
    to `planned` have a variance of at most planned * dearest, and Bernstein's bound holds for their sum.

    >>> judge_pace(
    ...     used=126.5, planned=303.8, total=5_000.0, dearest=5.0, arrivals=240, share_gone=0.06, is_closed=False
    ... ).status
    'behind plan'
    >>> judge_pace(
    ...     used=4.0, planned=0.02, total=5_000.0, dearest=2.0, arrivals=2, share_gone=0.0, is_closed=False
    ... ).status
    'too early'
    """
    if is_closed:
        status = "over"
    elif arrivals == 0 and used <= 0.0 and share_gone <= 0.0:
        status = "not begun"
    elif used >= total and share_gone < 1.0:
        status = "used up"
    else:
        gap = used - planned
        if abs(gap) <= NEAR * planned:
            status = "on plan"
        elif abs(gap) <= math.sqrt(2.0 * _DOUBT * max(planned, 0.0) * dearest) + _DOUBT * dearest / 3.0:
            status = "too early"
        else:
            status = "ahead of plan" if gap > 0.0 else "behind plan"
    return Pace(status, used, planned)
