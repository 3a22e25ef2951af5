"""Estimates of what a policy would have brought: inverse propensities, self-normalised, and doubly robust.

Each is told by what every row adds to it: the mean over rows is the estimate, and their spread gives its error. So the
difference of two policies, or a value per unit of cost, is the mean of differences row by row, on the same rows.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.evaluation.censoring import Censoring

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = ("ips", "snips", "dr")
LEVEL = 0.95
ROUNDING = 1e-11  # relative


class Weighted(NamedTuple):
    """What is known of every row when a policy is valued."""

    weight: (
        Floats  # the policy's probability of what was done, by that of the log; 0 where the outcome was known before
    )
    served: Floats  # how much of what the policy does in this context has to be learned from the log: 1, or less
    amount: Floats  # what came, or was paid
    of_done: Floats  # what was expected of what was done
    of_policy: Floats  # what is expected of what the policy does


def contributions(
    estimator: Estimator, rows: Weighted, censoring: Censoring, *, counted: Weighted | None = None
) -> Floats:
    """What each row adds.

    `counted` where the log's probabilities were counted: the same of what the policy does on average to all rows on
    which they were. Counting takes what differs between cells out of the first two estimators, as the third does by
    what it expects: they are more exact than if probabilities had been told.
    """
    if estimator == "dr":
        return rows.of_policy + censoring.spread(rows.weight * (rows.amount - rows.of_done))
    if estimator == "ips":
        mean, part = 0.0, 1.0
        added = censoring.spread(rows.weight * rows.amount)
    else:
        mass = float((rows.weight * censoring.weight).mean())
        if mass <= 0.0:
            return np.zeros(rows.weight.size)
        mean = float((rows.weight * censoring.weight * rows.amount).mean()) / mass
        part = float(rows.served.mean()) / mass
        added = rows.served * mean + part * censoring.spread(rows.weight * (rows.amount - mean))
    if counted is None:
        return added
    told = part * (counted.weight * (counted.of_done - mean) - (counted.of_policy - counted.served * mean))
    return added - (told - float(told.mean()))


class Interval(NamedTuple):
    """An estimate with its standard error and 95% interval."""

    mean: float
    error: float
    low: float
    high: float


def interval_of(added: Floats) -> Interval:
    """The mean of contributions.

    Where a few rows decide, the error is known badly: degrees of freedom are the number of rows that their squares are
    worth (2 over the squared relative error of a variance, for rows that mostly add nothing).
    """
    from scipy.special import stdtrit

    n = added.size
    mean = float(added.mean()) if n else math.nan
    if n < 2:
        return Interval(mean, math.inf, -math.inf, math.inf)
    off = added - mean
    square = off * off
    total = float(square.sum())
    if total <= 0.0:
        return Interval(mean, 0.0, mean, mean)
    error = math.sqrt(total / (n - 1) / n)
    degrees = max(1.0, total * total / float((square * square).sum()) - 1.0)
    reach = float(stdtrit(degrees, 0.5 + LEVEL / 2.0)) * error
    return Interval(mean, error, mean - reach, mean + reach)


def widened(interval: Interval, by: float) -> Interval:
    """The same estimate with a larger error."""
    mean, error, low, high = interval
    return Interval(mean, by * error, mean - by * (mean - low), mean + by * (high - mean))


def difference_of(added: Floats, base: Floats) -> Interval:
    """Of two means on the same rows. What is no more than the rounding of their sums is no difference."""
    off = added - base
    rounding = ROUNDING * float(np.abs(added).mean() + np.abs(base).mean())
    if off.size and float(np.abs(off).max()) <= rounding:
        return interval_of(np.zeros(off.size))
    return interval_of(off)


def effective_size(weight: Floats, among: Flags | None = None) -> float:
    """How many rows of equal weight say as much (Kish)."""
    weight = weight if among is None else weight[among]
    square = float((weight * weight).sum())
    return float(weight.sum()) ** 2 / square if square > 0.0 else 0.0
