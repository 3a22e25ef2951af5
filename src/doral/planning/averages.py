"""Means over decisions of which some are still open, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.log.answers import weigh_answers
from doral.planning.bands import POINTWISE, limits

Z = 1.959964  # of a 95% interval


class Average(NamedTuple):
    """A mean per decision, with a 95% interval."""

    mean: float
    low: float
    high: float


def mean_of_answers(delay: Floats, watched: Floats, value: Floats) -> Average | None:
    """What a decision brings, with what is still to come estimated from those watched longer; None without answers.

    `value` is read only where there is an answer. What comes later than anybody was watched, or never, counts as 0.
    Where values are never below 0, the interval is that of a share of the largest: it is right for few successes, too.
    """
    if not np.isfinite(delay).any():
        return None
    mean, variance = total_of_answers(delay, watched, value)
    seen = value[np.isfinite(delay)]
    top = float(seen.max())
    if seen.min() < 0.0 or top <= 0.0:
        error = Z * float(np.sqrt(variance))
        return Average(mean, mean - error, mean + error)
    share = min(mean / top, 1.0)
    size = share * (1.0 - share) * top**2 / variance if variance > 0.0 and share < 1.0 else float(delay.size)
    low, high = limits(np.array([share]), np.array([size]), POINTWISE)
    return Average(mean, float(low[0]) * top, float(high[0]) * top)


def total_of_answers(delay: Floats, watched: Floats, value: Floats) -> tuple[float, float]:
    """The weighted sum of the values of answers, and its variance.

    It is that of the product of Kaplan and Meier: each answer changes the sum by what it brings itself, less what the
    ones after it would have brought.
    """
    came = np.isfinite(delay)
    order = np.lexsort((~came, np.where(came, delay, watched)))
    brought = (weigh_answers(delay, watched).weight * np.where(came, value, 0.0))[order]
    after = np.cumsum(brought[::-1])[::-1] - brought
    at_risk = np.arange(delay.size, 0, -1, dtype=np.float64)
    steps = np.where(came[order], brought - after / at_risk, 0.0)
    return float(brought.sum()), float(np.sum(steps**2))
