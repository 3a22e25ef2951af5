"""Means over independent runs, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

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


def t_quantile(degrees: float) -> float:
    """How many standard errors a confidence interval reaches to each side."""
    from scipy.special import stdtrit  # here: SciPy takes longer to start than a short simulation to run

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2.0))
