"""Periods as people call them: minutes, hours or days."""

from __future__ import annotations

from collections.abc import Sequence

from doral.live.page.facts import Period
from doral.live.weeks import DAY_S
from doral.live.words import moment

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
