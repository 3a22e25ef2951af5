"""Times of a log: seconds where they are times of the world, otherwise whatever its numbers count."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from doral.errors import InvalidValue

Unit: TypeAlias = Literal["seconds", "minutes", "hours", "days", "weeks", "rounds", "units"]

SECONDS: dict[str, float] = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3_600.0,
    "days": 86_400.0,
    "weeks": 604_800.0,
}
_SHORT = {
    "s": "seconds",
    "sec": "seconds",
    "second": "seconds",
    "min": "minutes",
    "minute": "minutes",
    "m": "minutes",
    "h": "hours",
    "hour": "hours",
    "d": "days",
    "day": "days",
    "w": "weeks",
    "week": "weeks",
}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
_ENOUGH = 2.0  # of a unit: what is longer is told in it


@dataclass(frozen=True)
class Clock:
    """What the times of a log are in.

    `unit` is "seconds" for times of the world; "rounds" where a log has no times, and the clock counts its rows;
    "units" where its times are numbers of which nobody has said what they count. `told` is the unit in which people
    read and write durations.
    """

    unit: Literal["seconds", "rounds", "units"]
    told: Unit

    def shown(self, duration: float) -> str:
        """A duration in words.

        >>> Clock("seconds", "days").shown(777_600.0), Clock("rounds", "rounds").shown(12.0)
        ('9 days', '12 rounds')
        >>> Clock("units", "units").shown(0.0028)
        '0.0028 units'
        """
        if math.isinf(duration):
            return "for ever"
        unit: str = self.told
        if self.unit == "seconds":
            unit = next((one for one in ("weeks", "days", "hours", "minutes") if _fits(duration, one)), "seconds")
            if unit == "weeks" and self.told != "weeks":
                unit = "days"
        number = duration / self.size_of(unit)
        is_whole = number >= 100.0 or abs(number - round(number)) < 0.005 * min(number, 1.0) or number == 0.0
        words = f"{number:.0f}" if is_whole else f"{number:.2g}"
        return f"{words} {unit[:-1] if words == '1' else unit}"

    def size_of(self, unit: str) -> float:
        """One of these, on the clock."""
        return SECONDS[unit] if self.unit == "seconds" else 1.0

    def written(self, duration: float) -> str | float:
        """A duration on the clock, as `duration` reads it again.

        >>> clock = Clock("seconds", "days")
        >>> clock.duration("deadline", clock.written(0.1))
        0.1
        """
        return f"{duration!r}s" if self.unit == "seconds" else duration

    def duration(self, field: str, value: object) -> float:
        """Read a duration with its unit: "14d", "36 hours"; a bare number only where the clock counts no real time.

        >>> Clock("seconds", "days").duration("deadline", "36 h") / 3600
        36.0
        >>> Clock("rounds", "rounds").duration("deadline", 14)
        14.0
        >>> Clock("seconds", "days").duration("deadline", 14)
        Traceback (most recent call last):
        doral.errors.InvalidValue: deadline = 14: must say its unit: '14h' (hours), '14d' (days) or '14w' (weeks)
        """
        if isinstance(value, timedelta) and self.unit == "seconds":
            value = f"{value.total_seconds()!r}s"
        match = _DURATION.fullmatch(value) if isinstance(value, str) else _DURATION.fullmatch(repr(value))
        if match is None or isinstance(value, bool):
            example = "such as '14d' or '36h'" if self.unit == "seconds" else f"such as 14, in {self.told}"
            raise InvalidValue(field, value, f"must be a duration above 0, {example}")
        number, word = float(match[1]), match[2].lower()
        if self.unit == "seconds" and not word and 0.0 < number < math.inf:
            choices = f"'{match[1]}h' (hours), '{match[1]}d' (days) or '{match[1]}w' (weeks)"
            raise InvalidValue(field, value, f"must say its unit: {choices}")
        unit = _SHORT.get(word, word) or self.told
        known = (*SECONDS, "rounds") if self.unit == "seconds" else (self.unit, self.told)
        if unit not in known or (unit == "rounds") != (self.unit == "rounds") or not 0.0 < number < math.inf:
            if self.unit == "seconds":
                remedy = "must be a duration above 0 in s, min, h, d or w, such as '36h'"
            else:
                remedy = f"must be a number above 0: this log's times are in {self.told}"
            raise InvalidValue(field, value, remedy)
        return number * self.size_of(unit)


def _fits(duration: float, unit: str) -> bool:
    return duration >= _ENOUGH * SECONDS[unit] or math.isclose(duration, SECONDS[unit])
