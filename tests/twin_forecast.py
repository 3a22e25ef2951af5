"""How many will still come until a date, once more: from the list of all arrivals so far, every time anew."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from doral._arrays import Floats, Ints
from doral.problem import Problem

SPANS, FEWEST_SPANS = 64, 8
GIVEN_FACTOR, OWN_FACTOR = 2.0, 10.0


def factors(units: Ints, n: int) -> Floats:
    """One per hour of the day (or per weekday), from the number of the hour in which each arrival came.

    Whole ones lie between the first and the last. A random effect with a common variance within.
    """
    whole = np.arange(units[0] + 1, units[-1])
    came = np.array([(units == unit).sum() for unit in whole], dtype=np.float64)
    groups = [came[whole % n == i] for i in range(n)]
    if min(len(group) for group in groups) < 2:
        return np.ones(n)
    means = np.array([group.mean() for group in groups])
    chance = float(np.mean([group.var(ddof=1) / len(group) for group in groups]))
    between = float(means.var(ddof=1)) - chance
    if between <= 0.0:
        return np.ones(n)
    return 1.0 + between / (between + chance) * (means / means.mean() - 1.0)


class ForecastTwin:
    """Told of every arrival before the next; the clock starts at 0, on a Monday at midnight."""

    def __init__(self, problem: Problem, day: float | None) -> None:
        assert problem.until is not None
        self.until, self.day = problem.until, day
        self.guess = problem.expected_rounds / problem.until
        self.guess_weight = math.log(OWN_FACTOR if problem.expected_arrivals is None else GIVEN_FACTOR) ** -2
        self.hours, self.weekdays = np.ones(24), np.ones(7)
        self.level, self.look_at, self.looked = self.guess, 0, 0

    def rhythm(self, begin: float, end: float) -> float:
        """Its integral, hour by hour."""
        if self.day is None:
            return end - begin
        hour = self.day / 24.0
        edges = np.arange(math.floor(begin / hour), math.floor(end / hour) + 2)
        lengths = np.clip((edges[1:]) * hour, begin, end) - np.clip(edges[:-1] * hour, begin, end)
        return float((self.hours[edges[:-1] % 24] * self.weekdays[edges[:-1] // 24 % 7] * lengths).sum())

    def horizon(self, times: Floats, clock: float) -> int:
        """All who have come (`times`), the one who comes now, and those who are expected after."""
        span = self.until / SPANS
        if times.size >= self.look_at or int(clock / span) != self.looked:
            self.looked = int(clock / span)
            self.look_at = times.size + max(1, min(32, times.size // 8))
            self._learn(times, clock)
        if clock > self.until:
            return times.size
        return times.size + 1 + math.floor(self.level * self.rhythm(clock, self.until) + 0.5)

    def _learn(self, times: Floats, clock: float) -> None:
        if self.day is not None and times.size > 0:
            self.hours = factors(np.floor(times / self.day * 24).astype(np.int64), 24)
            self.weekdays = factors(np.floor(times / self.day).astype(np.int64), 7)
        exposure, passed = self.rhythm(0.0, clock), clock / (self.until / SPANS)
        guess, sure = self.guess, self.guess_weight
        self.level = guess
        if times.size > 0 and exposure > 0.0:
            mean = times.size / exposure
            if passed >= FEWEST_SPANS:
                now, variance = self._filtered(times, clock, mean)
                self.level = (sure * guess + mean * now / variance) / (sure + 1.0 / variance)
            else:  # a normal law of the logarithm, and Poisson's of arrivals: where the slope of both is 0
                arrivals = 1.0 / (1.0 / times.size + 1.0 / (1.0 + passed))

                def slope(y: float) -> float:
                    return arrivals - arrivals * guess / mean * math.exp(y) - sure * y

                far = abs(math.log(mean / guess)) + 1.0
                self.level = guess * math.exp(brentq(slope, -far, far, xtol=1e-15, rtol=1e-15))

    def _filtered(self, times: Floats, clock: float, mean: float) -> tuple[float, float]:
        """A random walk in noise, by the textbook, from spans of time; and the variance of where it is."""
        span = self.until / SPANS
        n = min(SPANS, int(clock / span))
        exposure = np.array([self.rhythm(min(clock, i * span), min(clock, (i + 1) * span)) for i in range(SPANS)])
        came = np.bincount(np.minimum(times / span, SPANS - 1).astype(np.int64), minlength=SPANS)
        seen = exposure > 0.0
        relative = np.where(seen, came / np.where(seen, exposure * mean, 1.0), 1.0)
        lag = max(2, n // 4)
        if self.day is not None:
            week = 7 * self.day / span
            lag = max(2, math.floor(week * max(1, math.floor(n / 4 / week + 0.5)) + 0.5))
        noise, drift = max(float(np.mean(np.diff(relative[:n]) ** 2)) / 2.0, n / times.size), 0.0
        if n - lag >= 4:
            far = float(np.mean((relative[lag:n] - relative[: n - lag]) ** 2))
            drift = max(0.0, far - 2.0 * noise * (1.0 + 2.0 / math.sqrt(n - lag))) / (lag - 1)
        usual = float(exposure[:n].mean())
        first, *others = np.flatnonzero(seen[: n + 1]).tolist()
        level, variance = float(relative[first]), noise * usual / exposure[first]
        for i in others:
            predicted, error = variance + drift, noise * usual / exposure[i]
            variance = 1.0 / (1.0 / predicted + 1.0 / error)
            level += variance / error * (float(relative[i]) - level)
        return level, variance
