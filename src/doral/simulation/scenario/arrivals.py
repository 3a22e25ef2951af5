"""People who arrive in time: at a pace, by the hour and the weekday, and in bursts. For problems that end with a date.

Arrivals are a Poisson process whose rate is piecewise constant. Its times are those of a process of rate 1 (the sums of
exponential waits), carried over by the inverse of the cumulative rate. Bursts are part of the rate, and drawn first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.numerics.elementary import log1p
from doral.problem import MAX_AGE, MIN_AGE

HOURS, WEEKDAYS = 24, 7
MAX_SIMULATED = 2**31 - 2  # rounds of a logbook
MAX_CHANGES = 10**6  # of the rate: a day that is shorter is a slip


class Uniforms(Protocol):
    """Draws of one purpose, by lane."""

    def __call__(self, n: int, lane: int) -> Floats:
        """The first n of a lane."""


@dataclass(frozen=True, init=False)
class Bursts:
    """A share of the arrivals that come in bursts, each with so many on average, over so long a time.

    Args:
        share: Of all arrivals, above 0 up to 1.
        arrivals: How many come in a burst, on average.
        length: How long a burst lasts, in units of the clock.

    >>> Bursts(share=0.2, arrivals=50, length=30)
    Bursts(share=0.2, arrivals=50.0, length=30.0)
    """

    share: float
    arrivals: float
    length: float

    def __init__(self, *, share: float, arrivals: float, length: float) -> None:
        _check.set_fields(
            self,
            share=_check.finite_number("share of bursts", share, above=0, at_most=1),
            arrivals=_check.finite_number("arrivals of a burst", arrivals, above=0, at_most=MAX_SIMULATED),
            length=_check.finite_number("length of a burst", length, at_least=MIN_AGE, at_most=MAX_AGE),
        )


@dataclass(frozen=True, init=False)
class Arrivals:
    """How people arrive: `number` on average until the end; what the problem expects does not matter.

    For problems that end with a date (`until`). The clock starts on a Monday at midnight.

    Args:
        number: How many arrive until the end, on average.
        day: How long a day is, in units of the clock; None: the pace does not change with the hour.
        hours: 24 numbers: how many come in each hour, relative to the others; 0 is a quiet one. Default: all alike.
        weekdays: 7 numbers, Monday first, likewise. Default: all alike.
        bursts: A part of them that comes in bursts, whenever others come. None: no bursts.

    >>> Arrivals(number=1000, day=24, weekdays=[1, 1, 1, 1, 1, 0.5, 0]).weekdays
    (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0)
    """

    number: float
    day: float | None
    hours: tuple[float, ...]
    weekdays: tuple[float, ...]
    bursts: Bursts | None

    def __init__(
        self,
        *,
        number: float,
        day: float | None = None,
        hours: Sequence[float] = (1.0,) * HOURS,
        weekdays: Sequence[float] = (1.0,) * WEEKDAYS,
        bursts: Bursts | None = None,
    ) -> None:
        if bursts is not None and not isinstance(bursts, Bursts):
            raise InvalidValue("bursts", bursts, "must be doral.Bursts(...), or None")
        by_hour, by_weekday = _factors("hours", hours, HOURS), _factors("weekdays", weekdays, WEEKDAYS)
        if day is None and len({*by_hour}) + len({*by_weekday}) > 2:
            raise InvalidValue("day", None, "a rhythm by hours or weekdays needs to know how long a day is")
        _check.set_fields(
            self,
            number=_check.finite_number("number of arrivals", number, above=0, at_most=MAX_SIMULATED / 2),
            day=None if day is None else _check.finite_number("day", day, at_least=MIN_AGE, at_most=MAX_AGE),
            hours=by_hour,
            weekdays=by_weekday,
            bursts=bursts,
        )

    def __repr__(self) -> str:
        facts = [f"{self.number:,g} on average"]
        if self.day is not None:
            varies = [what for what, by in (("hour", self.hours), ("weekday", self.weekdays)) if len({*by}) > 1]
            facts.append(f"day {self.day:g}" + (f" with a rhythm by {' and '.join(varies)}" if varies else ""))
        if self.bursts is not None:
            facts.append(f"{self.bursts.share:.0%} in bursts")
        return f"<Arrivals: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        from doral.pages.notebook import card

        facts = [("Number", f"{self.number:,g} on average")]
        if self.day is not None:
            facts += [("A day", f"{self.day:g}"), ("By hour", ", ".join(f"{one:g}" for one in self.hours))]
            facts.append(("By weekday", ", ".join(f"{one:g}" for one in self.weekdays)))
        if self.bursts is not None:
            facts.append(
                ("Bursts", f"{self.bursts.share:.0%}, {self.bursts.arrivals:g} each, {self.bursts.length:g} long")
            )
        return card("Arrivals", facts)

    def check(self, until: float) -> None:
        """Complain about a day that does not fit the time until the end.

        Args:
            until: The end, in units of the clock.
        """
        if self.day is not None and until / self.day * HOURS > MAX_CHANGES:
            raise InvalidValue("day", self.day, f"is too short: until {until:g} there would be over a million hours")

    def times(self, until: float, uniforms: Uniforms) -> Floats:
        """When they arrive, in one run; at least one does, at the end if need be.

        Args:
            until: The end, in units of the clock.
            uniforms: Draws from 0 to 1, by number and lane.
        """
        knots, sums = self._cumulative_rate(until, uniforms)
        waits = _waits(uniforms, lane=2, upto=float(sums[-1]))
        times = np.interp(waits, sums, knots) if waits.size else np.array([until])
        return rounded_clocks(times, until)

    def _cumulative_rate(self, until: float, uniforms: Uniforms) -> tuple[Floats, Floats]:
        """Clocks at which the rate changes, and how many are expected up to each."""
        knots, sums = self._rhythm(until)
        bursts = self.bursts
        if bursts is None:
            return knots, sums
        n_bursts = bursts.share * self.number / bursts.arrivals
        begins = np.interp(_waits(uniforms, lane=1, upto=n_bursts), sums * (n_bursts / self.number), knots)
        ends = begins + bursts.length
        clocks = np.unique(np.concatenate([knots, begins, ends[ends < until]]))
        begun = (_time_since(clocks, begins) - _time_since(clocks, ends)) / bursts.length
        return clocks, (1.0 - bursts.share) * np.interp(clocks, knots, sums) + bursts.arrivals * begun

    def _rhythm(self, until: float) -> tuple[Floats, Floats]:
        if self.day is None:
            return np.array([0.0, until]), np.array([0.0, self.number])
        n_hours = int(np.ceil(until / self.day * HOURS))
        knots = np.minimum(np.arange(n_hours + 1) * (self.day / HOURS), until)
        hour = np.arange(n_hours)
        rate = np.array(self.hours)[hour % HOURS] * np.array(self.weekdays)[hour // HOURS % WEEKDAYS]
        sums = np.concatenate([[0.0], np.cumsum(rate * np.diff(knots))])
        if sums[-1] <= 0.0:
            raise InvalidValue("hours and weekdays", (self.hours, self.weekdays), "leave no arrival before the end")
        return knots, sums * (self.number / sums[-1])


def rounded_clocks(times: Floats, until: float) -> Floats:
    """Of few bits, so that a time and a delay in whole units add up exactly, and ages are what delays were."""
    grain = 2.0 ** max(-20, math.ceil(math.log2(until)) - 45)
    rounded: Floats = np.floor(times / grain) * grain
    return rounded


def _time_since(clocks: Floats, moments: Floats) -> Floats:
    """For each clock, the sum of the time since every moment before it."""
    n = np.searchsorted(moments, clocks)
    since: Floats = n * clocks - np.concatenate([[0.0], np.cumsum(moments)])[n]
    return since


def _waits(uniforms: Uniforms, *, lane: int, upto: float) -> Floats:
    """The times of a process of rate 1, up to a time."""
    n = int(upto + 10.0 * np.sqrt(upto) + 20.0)
    while True:
        sums = np.cumsum(-log1p(-uniforms(n, lane)))
        if sums[-1] > upto:
            return sums[sums <= upto]
        n *= 2


def _factors(field: str, values: object, n: int) -> tuple[float, ...]:
    given = _check.items(field, values, what=f"{n} numbers", at_most=n)
    if len(given) != n:
        raise InvalidValue(f"number of {field}", len(given), f"must be {n}")
    checked = tuple(_check.finite_number(field, one, at_least=0, at_most=MAX_AGE) for one in given)
    if max(checked) <= 0.0:
        raise InvalidValue(field, values, "must not all be 0")
    return checked
