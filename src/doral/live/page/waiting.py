"""Open decisions, by how old they are and by when they expire."""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Floats
from doral.live.page.facts import Pending, Waiting
from doral.live.page.history import Open
from doral.live.state.definition import DAY_S
from doral.live.views.text import span

_MINUTE_S = 60.0
_PATIENCE_S = 150.0  # two looks of a service, and some
_HOUR_S = 3_600.0
_BRIEF_S = (10.0, 30.0, _MINUTE_S, 2 * _MINUTE_S, 5 * _MINUTE_S, 15 * _MINUTE_S)  # where answers come at once
_STEPS_S = (
    *_BRIEF_S,
    _HOUR_S,
    6 * _HOUR_S,
    DAY_S,
    3 * DAY_S,
    7 * DAY_S,
    14 * DAY_S,
    30 * DAY_S,
    90 * DAY_S,
    365 * DAY_S,
)


def pending(found: Open, *, now: float, clock: str, epoch: float) -> Pending:
    """`now` is what the campaign's clock shows, or would show."""
    ages = np.sort(np.maximum(0.0, now - found.made)).tolist()
    ahead = found.expires - now
    is_limited = found.expires < math.inf
    future = found.expires[(now <= found.expires) & is_limited]
    return Pending(
        decisions=len(ages),
        reserved=math.fsum(found.cost.tolist()),
        overdue=int((ahead < 0.0).sum()),
        oldest_age=ages[-1] if ages else None,
        middle_age=ages[len(ages) // 2] if ages else None,
        next_expiry=epoch + float(future.min()) if future.size else None,
        by_age=_by_age(found, now, clock, ages[-1] if ages else 0.0),
        by_expiry=_by_expiry(found, now, clock, float(ahead[is_limited].max(initial=0.0))),
    )


def unsettled(found: Open, *, now: float, clock: str) -> int:
    """Decisions that are overdue for so long that nobody seems to settle them. A service does, every minute."""
    patience = _PATIENCE_S if clock == "seconds" else 0.0
    return int((found.expires - now < -patience).sum())


def _steps(clock: str, longest: float) -> list[float]:
    """Bounds of the groups, the last of which holds the longest."""
    if clock == "seconds":
        steps = list(_STEPS_S)
    else:
        unit = 10.0 ** max(0, math.ceil(math.log10(max(longest, 1.0))) - 1)
        steps = [unit * factor for factor in (1, 2, 5, 10)]
    kept = [one for one in steps if one < longest]
    return [*kept[-5:], math.inf]


def _by_age(found: Open, now: float, clock: str, oldest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    low, age = -math.inf, now - found.made
    for high in _steps(clock, oldest):
        if high == math.inf:
            words = "any age" if low == -math.inf else f"more than {span(low, clock)}"
        else:
            words = f"up to {span(high, clock)}"
        _put(groups, words, found.cost[(low < age) & (age <= high)])
        low = high
    return tuple(groups)


def _by_expiry(found: Open, now: float, clock: str, longest: float) -> tuple[Waiting, ...]:
    groups: list[Waiting] = []
    ahead, is_never = found.expires - now, found.expires == math.inf
    _put(groups, "overdue", found.cost[ahead < 0.0])
    low = 0.0
    for high in _steps(clock, longest):
        words = f"within {span(high, clock)}" if high < math.inf else "later" if low else "later than now"
        _put(groups, words, found.cost[~is_never & (low <= ahead) & (ahead < high)])
        low = high
    _put(groups, "never: there is no deadline", found.cost[is_never])
    return tuple(groups)


def _put(groups: list[Waiting], words: str, costs: Floats) -> None:
    if costs.size:
        groups.append(Waiting(words=words, decisions=int(costs.size), reserved=math.fsum(costs.tolist())))
