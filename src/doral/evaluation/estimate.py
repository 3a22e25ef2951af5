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


class Weighted(NamedTuple):
    """What is known of every row when a policy is valued."""

    weight: (
        Floats  # the policy's probability of what was done, by that of the log; 0 where the outcome was known before
    )
    served: Floats  # how much of what the policy does in this context has to be learned from the log: 1, or less
    amount: Floats  # what came, or was paid
    of_done: Floats  # what was expected of what was done
    of_policy: Floats  # what is expected of what the policy does


def contributions(estimator: Estimator, rows: Weighted, censoring: Censoring, *, are_counted: bool = False) -> Floats:
    """What each row adds. `are_counted`: the log's probabilities were counted, which makes the first two more exact:
    counting them takes out what differs between cells, as the third does.
    """
    robust = rows.of_policy + censoring.spread(rows.weight * (rows.amount - rows.of_done))
    if estimator == "dr":
        return robust
    if estimator == "ips":
        own = censoring.spread(rows.weight * rows.amount)
    else:
        mass = rows.weight * censoring.weight
        total = float(mass.mean())
        share = float(rows.served.mean())
        mean = float((mass * rows.amount).mean()) / total if total > 0.0 else 0.0
        left = censoring.spread(rows.weight * (rows.amount - mean)) / total if total > 0.0 else np.zeros(mass.size)
        own = rows.served * mean + share * left
    return robust - float(robust.mean()) + float(own.mean()) if are_counted else own


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


def effective_size(weight: Floats, among: Flags | None = None) -> float:
    """How many rows of equal weight say as much (Kish)."""
    weight = weight if among is None else weight[among]
    square = float((weight * weight).sum())
    return float(weight.sum()) ** 2 / square if square > 0.0 else 0.0
