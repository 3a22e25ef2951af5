"""Means over independent runs, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from doral._arrays import Floats
from doral.pages.numbers import number, spread

CONFIDENCE = 0.95
FEWEST_RUNS = 3  # two give an interval 12.7 standard errors wide to each side


@dataclass(frozen=True, repr=False)
class Interval:
    """A mean with its standard error and a 95% interval (Student's t); unknown (NaN) from fewer than 3 runs.

    Attributes:
        mean: Over the runs.
        se: Its standard error.
        low: The lower end of the interval.
        high: The upper end.
    """

    mean: float
    se: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"<Interval: {number(self.mean, 3)} {spread(self.low, self.high, 3)}>"


UNKNOWN = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


def interval(sample: Floats) -> Interval:
    """Return the mean of independent runs; with fewer than `FEWEST_RUNS`, nothing else is known."""
    n = sample.size
    mean = float(sample.mean()) if n else float("nan")
    if n < FEWEST_RUNS:
        return replace(UNKNOWN, mean=mean)
    se = float(float(sample.std(ddof=1)) / np.sqrt(n))
    reach = se * t_quantile(n - 1)
    return Interval(mean, se, mean - reach, mean + reach)


@cache
def t_quantile(degrees: float) -> float:
    """Return how many standard errors a confidence interval reaches to each side.

    SciPy takes longer to start than a short simulation to run, so it is asked only where `_within` is no short sum.
    """
    if degrees > 1_000 or degrees != int(degrees):
        from scipy.special import stdtrit

        return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2.0))
    low, high = 0.0, math.pi / 2.0  # of atan(t / sqrt(degrees))
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if _within(middle, int(degrees)) < CONFIDENCE else (low, middle)
    return math.tan(high) * math.sqrt(degrees)


def _within(angle: float, degrees: int) -> float:
    """Return P(|t| <= sqrt(degrees) * tan(angle)), a finite sum: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    is_odd = degrees % 2 == 1
    term, total = math.cos(angle) if is_odd else 1.0, 0.0
    for k in range(3 if is_odd else 2, degrees + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (k - 1) / k
    return 2.0 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total
