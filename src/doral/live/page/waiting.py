"""Open decisions, by how old they are and by when they expire."""

from __future__ import annotations

import math
from collections.abc import Sequence

from doral.live.page.facts import Pending, Waiting
from doral.live.page.history import Open
from doral.live.weeks import DAY_S
from doral.live.words import span

_HOUR_S = 3_600.0
_STEPS_S = (_HOUR_S, 6 * _HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 90 * DAY_S, 365 * DAY_S)


def pending(found: Sequence[Open], *, now: float, clock: str, epoch: float) -> Pending:
    """`now` is what the campaign's clock shows, or would show."""
    ages = sorted(max(0.0, now - one.made) for one in found)
    ahead = [one.expires - now for one in found]
    future = [one.expires for one in found if now <= one.expires < math.inf]
    longest = max((one for one in ahead if one < math.inf), default=0.0)
    return Pending(
        decisions=len(found),
        reserved=math.fsum(one.cost for one in found),
        overdue=sum(one < 0.0 for one in ahead),
        oldest_age=ages[-1] if ages else None,
        middle_age=ages[len(ages) // 2] if ages else None,
        next_expiry=epoch + min(future) if future else None,
        by_age=_by_age(found, now, clock, ages[-1] if ages else 0.0),
        by_expiry=_by_expiry(found, now, clock, longest),
    )


def _steps(clock: str, longest: float) -> list[float]:
    """Bounds of the groups, the last of which holds the longest."""
    if clock == "seconds":
        steps = list(_STEPS_S)
    else:
        unit = 10.0 ** max(0, math.ceil(math.log10(max(longest, 1.0))) - 1)
        steps = [unit * factor for factor in (1, 2, 5, 10)]
    kept = [one for one in steps if one < longest]
    return [*kept[-5:], math.inf]


def _by_age(found: Sequence[Open], now: float, clock: str, oldest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    low = -math.inf
    for high in _steps(clock, oldest):
        inside = [one for one in found if low < now - one.made <= high]
        if high == math.inf:
            words = "any age" if low == -math.inf else f"more than {span(low, clock)}"
        else:
            words = f"up to {span(high, clock)}"
        _put(groups, words, inside)
        low = high
    return tuple(groups)


def _by_expiry(found: Sequence[Open], now: float, clock: str, longest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    _put(groups, "overdue", [one for one in found if one.expires < now])
    low = 0.0
    coming = [one for one in found if now <= one.expires < math.inf]
    for high in _steps(clock, longest):
        inside = [one for one in coming if low <= one.expires - now < high]
        words = f"within {span(high, clock)}" if high < math.inf else "later" if low else "later than now"
        _put(groups, words, inside)
        low = high
    _put(groups, "never: there is no deadline", [one for one in found if one.expires == math.inf])
    return tuple(groups)


def _put(groups: list[Waiting], words: str, inside: Sequence[Open]) -> None:
    if inside:
        groups.append(Waiting(words=words, decisions=len(inside), reserved=math.fsum(one.cost for one in inside)))
