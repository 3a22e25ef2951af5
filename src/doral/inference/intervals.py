"""Estimates with 95% intervals: one method for each kind.

`of_draws` is for posterior draws that cost nothing: at least 400 of them, and the interval holds the middle 95%, with
positions for which one more draw falls inside in 95 of 100 cases. `of_played` is for totals of policies that had to be
played, where draws are few: Student's interval of one more draw. Totals that cannot be negative get it on the scale of
their square root, which has no jump at zero; differences and all other totals on their own scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from doral._arrays import Floats

LEVEL = 0.95
Z = 1.959964  # of a 95% interval
DRAWS = 400  # posterior draws where nothing is played
_FEWEST = 39  # draws of which the smallest and the largest hold one more in 95 of 100 cases


@dataclass(frozen=True)
class Estimate:
    """A value with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def is_above_zero(self) -> bool:
        return self.low > 0.0

    @property
    def is_below_zero(self) -> bool:
        return self.high < 0.0

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON: what is not finite is None."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {name: one if math.isfinite(one) else None for name, one in ends.items()}


def limits_of_draws(drawn: Floats, level: float = LEVEL) -> tuple[Any, Any]:
    """Return the ends of the middle 95% of draws along the first axis.

    >>> [round(one, 9) for one in limits_of_draws(np.arange(1.0, 400.0))]
    [10.0, 390.0]
    """
    if drawn.shape[0] < _FEWEST:
        raise ValueError(f"{drawn.shape[0]} draws are too few for a {level:.0%} interval of draws")
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0, method="weibull")
    return (float(low), float(high)) if drawn.ndim == 1 else (low, high)


def of_draws(drawn: Floats) -> Estimate:
    """Return the mean of posterior draws of a number, and its interval."""
    return Estimate(float(drawn.mean()), *limits_of_draws(drawn))


def of_played(totals: Floats, *, is_never_negative: bool = False, level: float = LEVEL) -> Estimate:
    """Return the mean of a few draws, and the interval that holds one more in 95 of 100 cases.

    >>> of_played(np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    from scipy.stats import t  # here: it takes long to import

    mean = float(totals.mean())
    if totals.size < 2:
        return Estimate(mean, -math.inf, math.inf)
    scaled = np.sqrt(np.maximum(totals, 0.0)) if is_never_negative else totals
    width = float(t.ppf(0.5 + 0.5 * level, totals.size - 1)) * float(scaled.std(ddof=1))
    width *= math.sqrt(1.0 + 1.0 / totals.size)
    middle = float(scaled.mean())
    if not is_never_negative:
        return Estimate(mean, middle - width, middle + width)
    return Estimate(mean, max(middle - width, 0.0) ** 2, (middle + width) ** 2)
