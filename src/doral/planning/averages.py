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
    The error is that of the product of Kaplan and Meier: each answer changes the mean by what it brings itself, less
    what the ones after it would have brought.
    """
    came = np.isfinite(delay)
    if not came.any():
        return None
    left = np.where(came, delay, watched)
    order = np.lexsort((~came, left))
    weight = weigh_answers(delay, watched).weight[order]
    x = np.where(came, value, 0.0)[order]
    brought = weight * x
    mean = float(brought.sum())
    after = np.cumsum(brought[::-1])[::-1] - brought
    at_risk = np.arange(delay.size, 0, -1, dtype=np.float64)
    steps = np.where(came[order], weight * x - after / at_risk, 0.0)
    return interval(mean, float(np.sum(steps**2)), x, delay.size)


def interval(mean: float, variance: float, values: Floats, rows: int) -> Average:
    """Where values are never below 0, that of a share of the largest: it is right for few successes as well."""
    top = float(values.max(initial=0.0))
    if values.min(initial=0.0) < 0.0 or top <= 0.0:
        error = Z * float(np.sqrt(variance))
        return Average(mean, mean - error, mean + error)
    share = min(mean / top, 1.0)
    size = share * (1.0 - share) * top**2 / variance if variance > 0.0 and share < 1.0 else float(rows)
    low, high = limits(np.array([share]), np.array([size]), POINTWISE)
    return Average(mean, float(low[0]) * top, float(high[0]) * top)
