"""Axes of time: dates in UTC, and ages in the unit that fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from doral.live.page.facts import Period
from doral.live.state.definition import DAY_S
from doral.live.views.text import moment
from doral.pages.numbers import figure
from doral.pages.svg import Axis, most_ticks, nice_axis

_MINUTES = (1, 2, 5, 10, 15, 30)
_HOURS = (1, 3, 6, 12)
_DAYS = (1, 2, 7, 14)
_MONTHS = (1, 3, 6, 12, 24, 60, 120)
_UNITS = ((DAY_S, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def time_axis(start: float, end: float, *, width: float) -> Axis:
    """From one moment to another, in seconds since 1970."""
    most = most_ticks(width)
    length = end - start
    for minutes in _MINUTES:
        if length / (minutes * 60.0) <= most:
            ticks = _even(start, end, minutes * 60.0, "%H:%M")
            return Axis(low=start, high=end, ticks=ticks, name=_day_of(start, end))
    for hours in _HOURS:
        if length / (hours * 3_600.0) <= most:
            return Axis(
                low=start, high=end, ticks=_even(start, end, hours * 3_600.0, "%H:%M"), name=_day_of(start, end)
            )
    for days in _DAYS:
        if length / (days * DAY_S) <= most:
            return Axis(low=start, high=end, ticks=_even(start, end, days * DAY_S, "%d %b"), name=_years(start, end))
    for months in _MONTHS:
        if length / (months * 30.4 * DAY_S) <= most:
            return Axis(low=start, high=end, ticks=_by_month(start, end, months), name="UTC")
    return Axis(low=start, high=end, name="UTC")


def _at(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _even(start: float, end: float, step: float, form: str) -> tuple[tuple[float, str], ...]:
    first, last = math.ceil(start / step), math.floor(end / step)
    return tuple((i * step, _at(i * step).strftime(form).removeprefix("0")) for i in range(first, last + 1))


def _by_month(start: float, end: float, months: int) -> tuple[tuple[float, str], ...]:
    found = []
    month = _at(start).year * 12 + _at(start).month - 1
    month -= month % months
    while (at := datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()) <= end:
        if at >= start:
            found.append((at, datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).strftime("%b %Y")))
        month += months
    return tuple(found)


def _day_of(start: float, end: float) -> str:
    first, last = _at(start).strftime("%Y-%m-%d"), _at(end).strftime("%Y-%m-%d")
    return f"{first}, UTC" if first == last else f"{first} to {last}, UTC"


def _years(start: float, end: float) -> str:
    first, last = _at(start).year, _at(end).year
    return f"{first}, UTC" if first == last else f"{first} to {last}, UTC"


def age_axis(longest: float, *, clock: str, width: float) -> tuple[Axis, float]:
    """From 0 to an age, with the size of the unit in which its numbers are told."""
    size, word = (1.0, "rounds")
    if clock == "seconds":
        size, word = next((one for one in _UNITS if longest >= 2 * one[0]), _UNITS[-1])
    found = nice_axis(0.0, longest / size or 1.0, most=most_ticks(width), words=figure)
    ticks = tuple((at * size, words) for at, words in found.ticks)
    return Axis(low=0.0, high=longest or 1.0, ticks=ticks, name=f"{word} since the decision"), size


# --- periods ----------------------------------------------------------------------------------------------------------


_NAMES = {60.0: "minute", 600.0: "10 minutes", 3_600.0: "hour", DAY_S: "day"}


def period_name(periods: Sequence[Period]) -> str:
    """Of one of them.

    >>> period_name([Period(begins=0.0, ends=172_800.0, reward=0.0, answers=0, arrivals=0)])
    '2 days'
    """
    length = periods[0].ends - periods[0].begins
    return _NAMES.get(length) or f"{length / DAY_S:.0f} days"


def period_begins(one: Period) -> str:
    """A date, with the time of day where it lasts less than one."""
    began = moment(one.begins, "seconds")
    return began if one.ends - one.begins < DAY_S else began[:10]
