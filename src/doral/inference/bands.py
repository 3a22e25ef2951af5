"""Bands for a whole return curve, and means over decisions of which some are pending, with intervals.

A band is a likelihood ratio at every age, with a limit that holds for all ages at once. At each age the share that
answered is as sure as that of a binomial sample of some size: the one that has Greenwood's variance; without censoring
it is the number of rows. A share belongs to the band where its likelihood ratio in that sample is below a limit: unlike
an error times a factor, this stays right near 0 and 1. The limit is the 95% quantile of the largest ratio over all
ages, in logs drawn anew from the estimated curve with the same watching.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.inference.survival import Sampled, weigh_answers

LEVEL = 0.95
# The 95% quantile of so many draws is known to +-1.4% of a level: less than one log in a hundred hangs on it.
DRAWS = 1_000
POINTWISE = 1.9207  # half of the 95% quantile of chi-squared with one degree of freedom
_HALVINGS = 32


class Worth(NamedTuple):
    """What an answer brings that came since the age before, by age; 1 and 0 for an outcome and others."""

    mean: Floats
    sd: Floats


def worth_by_step(delay: Floats, value: Floats, grid: Floats) -> Worth:
    """Of answers, and what each brought."""
    step = np.minimum(np.searchsorted(grid, delay, side="left"), grid.size)

    def summed(what: Floats | None) -> Floats:
        return np.bincount(step, weights=what, minlength=grid.size + 1)[: grid.size].astype(np.float64)

    n = np.maximum(summed(None), 1.0)
    mean = summed(value) / n
    return Worth(mean, np.sqrt(np.maximum(summed(value**2) / n - mean**2, 0.0)))


def all_alike(n_ages: int) -> Worth:
    return Worth(np.ones(n_ages), np.zeros(n_ages))


class Redrawn(NamedTuple):
    """Curves of logs drawn anew."""

    waiting: Floats  # (draws, G)
    size: Floats  # (draws, G) of the binomial sample that is as sure
    came: Floats  # (draws, G) what has come by each age, per row


def sizes(waiting: Floats, variance: Floats, at_risk: Floats) -> Floats:
    """The binomial sample that is as sure, at each age; as many as are watched where nobody has answered."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = (1.0 - waiting) / (waiting * variance)
    return np.where(np.isfinite(size) & (size > 0.0), size, at_risk)


def divergence(seen: Floats, true: Floats) -> Floats:
    """Of a binomial share from another (Kullback and Leibler): its ratio of likelihoods, per row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(seen > 0.0, seen * np.log(seen / true), 0.0)
        no = np.where(seen < 1.0, (1.0 - seen) * np.log((1.0 - seen) / (1.0 - true)), 0.0)
    return np.maximum(yes + no, 0.0)


def limits(seen: Floats, size: Floats, limit: float) -> tuple[Floats, Floats]:
    """The smallest and the largest share whose ratio is within the limit."""
    allowed = limit / np.maximum(size, 1e-300)

    def end(inner: Floats, outer: Floats) -> Floats:
        for _ in range(_HALVINGS):
            middle = 0.5 * (inner + outer)
            within = divergence(seen, middle) <= allowed
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        return 0.5 * (inner + outer)

    low = np.where(seen > 0.0, end(seen, np.zeros(seen.size)), 0.0)
    high = np.where(seen < 1.0, end(seen, np.ones(seen.size)), 1.0)
    return low, high


def redraw(sampled: Sampled, rows: int, worth: Worth, rng: np.random.Generator, draws: int = DRAWS) -> Redrawn:
    """Logs drawn anew from the curve, age by age, with the same share of censored ones between two ages.

    `worth` is what the answers of each step bring.
    """
    n_ages = sampled.waiting.size
    waiting, variance = np.ones(draws), np.zeros(draws)
    at_risk, total = np.full(draws, float(rows)), np.zeros(draws)
    # by age in memory: they are filled age by age
    out = Redrawn(np.ones((n_ages, draws)).T, np.ones((n_ages, draws)).T, np.zeros((n_ages, draws)).T)
    risk_before, waiting_before, variance_before, answered_before = float(rows), 1.0, 0.0, 0.0
    for g in range(n_ages):
        risk, still = float(sampled.at_risk[g]), float(sampled.waiting[g])
        came = float(sampled.answered[g]) - answered_before
        hazard = 1.0 - still / waiting_before if waiting_before > 0.0 else 0.0
        if came > 0.0 and hazard > 0.0:
            step = float(sampled.variance[g]) - variance_before
            # some were not watched to the end of the step: the sample with the variance of the step is a smaller one
            as_sure = hazard / ((1.0 - hazard) * step) if hazard < 1.0 and step > 0.0 else risk_before
            size = np.maximum(np.rint(at_risk * min(as_sure / risk_before, 1.0)), 1.0)
            drawn = rng.binomial(size.astype(np.int64), min(hazard, 1.0))
            new = drawn / size
            brought = drawn * worth.mean[g]
            if worth.sd[g] > 0.0:
                brought = brought + worth.sd[g] * np.sqrt(drawn) * rng.standard_normal(draws)
            total = total + waiting * (brought / size)
            with np.errstate(divide="ignore"):
                variance = variance + np.where(new > 0.0, new / (size * (1.0 - new)), 0.0)
            waiting = waiting * (1.0 - new)
            gone = np.minimum(new / hazard * came / risk_before, 1.0)
            remain = risk_before - came
        else:
            gone, remain = np.zeros(draws), risk_before - came
        at_risk = at_risk * (1.0 - gone) * (risk / remain if remain > 0.0 else 0.0)
        out.waiting[:, g], out.came[:, g] = waiting, total
        out.size[:, g] = sizes(waiting, variance, np.maximum(at_risk, 1.0))
        risk_before, waiting_before, variance_before = risk, still, float(sampled.variance[g])
        answered_before = float(sampled.answered[g])
    return out


def limit_of(seen: Floats, true: Floats, size: Floats, ages: Flags) -> float:
    """What the largest ratio over these ages stays below in 95% of the draws."""
    if not ages.any():
        return POINTWISE
    ratios = size[..., ages] * divergence(seen[:, ages], true[None, ages])
    return float(max(np.quantile(ratios.max(axis=1), LEVEL), POINTWISE))


def as_curve(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The same band for curves that never fall: what is outside of it for one age is outside for all."""
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


class Band(NamedTuple):
    """A curve with its band and its limits at single ages."""

    share: Floats
    low: Floats
    high: Floats
    point_low: Floats
    point_high: Floats


def band_of(sampled: Sampled, is_known: Flags, drawn: Redrawn) -> Band:
    """The band of a return curve, over the ages at which it is known and answers have come."""
    share = 1.0 - sampled.waiting
    size = sizes(sampled.waiting, sampled.variance, sampled.at_risk)
    ages = is_known & (share > 0.0) & (share < 1.0)
    return _band(share, size, limit_of(1.0 - drawn.waiting, share, drawn.size, ages))


def parts_of(came: Floats) -> Floats:
    """(draws, G) of what came by each age, the share of the last age; fewer draws where nothing came in some."""
    came = came[came[:, -1] > 0.0]
    parts: Floats = np.clip(came / came[:, -1:], 0.0, 1.0)
    return parts


def band_of_part(came: Floats, drawn: Floats) -> Band:
    """The band of a curve of what came by each age, relative to its last value; `drawn` are such curves, anew."""
    nothing = np.zeros(came.size)
    if came.size == 0 or came[-1] <= 0.0:
        return Band(nothing, nothing, nothing + 1.0, nothing, nothing + 1.0)
    share = np.minimum(came / came[-1], 1.0)
    parts = parts_of(drawn)
    spread = parts.var(axis=0) if parts.shape[0] > 1 else nothing
    size = np.divide(share * (1.0 - share), spread, out=np.ones(share.size), where=spread > 0.0)
    ages = (share > 0.0) & (share < 1.0) & (spread > 0.0)
    if not ages.any():
        return Band(share, nothing, nothing + 1.0, nothing, nothing + 1.0)
    return _band(share, size, limit_of(parts, share, size, ages))


def _band(share: Floats, size: Floats, limit: float) -> Band:
    low, high = as_curve(*limits(share, size, limit))
    return Band(share, low, high, *limits(share, size, POINTWISE))


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
