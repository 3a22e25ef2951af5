"""Estimate when answers come, from rows of which some are still pending: the product-limit estimate.

`survival_of` tells it at the ages where it changes (Kaplan and Meier), with Greenwood's variance. `weigh_answers` tells
the same as weights of the rows that were answered: a row that left without an answer hands its weight on, in equal
parts, to the rows that stayed longer (Efron's redistribution to the right). Reward, delay and cost of a row stay
together, so the mean of anything over these weights is corrected for pending answers.

The engine has an estimate of its own (`estimators/survival.py`): it counts on a grid of ages, in constant memory, one
event at a time, inside a kernel. This one sorts the rows of a log and is exact at every age.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.logs.log import Log

ENOUGH = 10  # a share of fewer rows than this says next to nothing
NEARLY_ALL = 0.99


class Survival(NamedTuple):
    """How many are still without an answer, at every age where one left; all arrays are by age."""

    ages: Floats  # ascending
    at_risk: Floats  # without an answer, and watched, until just before
    answered: Floats  # at this age
    waiting: Floats  # the share that is still without an answer after it
    variance: Floats  # Greenwood's sum: of the logarithm of `waiting`; infinite where nobody is left


def survival_of(delay: Floats, watched: Floats) -> Survival:
    """Of a group of rows. An answer at the age until which others were watched comes before these leave."""
    is_answered = np.isfinite(delay)
    left = np.where(is_answered, delay, watched)
    order = np.argsort(left, kind="stable")
    left, came = left[order], is_answered[order]
    if left.size == 0:
        none = np.zeros(0)
        return Survival(none, none, none, none, none)
    first = np.flatnonzero(np.concatenate([[True], left[1:] > left[:-1]]))
    answered = np.add.reduceat(came.astype(np.float64), first)
    at_risk = (left.size - first).astype(np.float64)
    waiting: Floats = np.asarray(np.cumprod(1.0 - answered / at_risk), dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.where(answered > 0.0, answered / (at_risk * (at_risk - answered)), 0.0)
    return Survival(left[first], at_risk, answered, waiting, np.cumsum(steps))


class Sampled(NamedTuple):
    """A `Survival` at the ages of a grid, and what happened between them; the first age of a grid is 0."""

    waiting: Floats  # (G,)
    variance: Floats  # (G,)
    at_risk: Floats  # (G,) still watched and without an answer just after each age
    answered: Floats  # (G,) by each age


def sample(found: Survival, grid: Floats) -> Sampled:
    """At each age of the grid, what has happened up to and including it."""
    upto = np.searchsorted(found.ages, grid, side="right")
    rows = found.at_risk[0] if found.ages.size else 0.0
    return Sampled(
        waiting=np.concatenate([[1.0], found.waiting])[upto],
        variance=np.concatenate([[0.0], found.variance])[upto],
        at_risk=np.concatenate([found.at_risk, [0.0]])[upto] if found.ages.size else np.zeros(grid.size),
        answered=np.concatenate([[0.0], np.cumsum(found.answered)])[upto] * min(rows, 1.0),
    )


def share_by(found: Survival, age: float) -> tuple[float, float]:
    """The share that has answered by an age, and its standard error (Greenwood)."""
    at = int(np.searchsorted(found.ages, age, side="right")) - 1
    if at < 0:
        return 0.0, 0.0
    waiting, variance = float(found.waiting[at]), float(found.variance[at])
    return 1.0 - waiting, waiting * float(np.sqrt(variance)) if np.isfinite(variance) else 0.0


def mean_wait(found: Survival, limit: float) -> tuple[float, float]:
    """E[min(delay, limit)], the mean time without an answer, and its error; somebody was watched until the limit."""
    inside = found.ages < limit
    edges = np.concatenate([[0.0], found.ages[inside], [limit]])
    heights = np.concatenate([[1.0], found.waiting[inside]])
    areas = heights * np.diff(edges)
    to_come = np.cumsum(areas[::-1])[::-1][1:]  # the area after each age
    at_risk, answered = found.at_risk[inside], found.answered[inside]
    more = at_risk > answered
    steps = np.divide(answered, at_risk * (at_risk - answered), out=np.zeros(answered.size), where=more)
    return float(areas.sum()), float(np.sqrt(np.sum(to_come**2 * steps)))


def rows_by_group(group: Ints, n_groups: int, chosen: Flags | None = None) -> list[Ints]:
    """The rows of each group, found with one sort however many groups there are."""
    rows = np.arange(group.size) if chosen is None else np.flatnonzero(chosen)
    members = group[rows]
    order = np.argsort(members, kind="stable")
    ends = np.searchsorted(members[order], np.arange(n_groups + 1))
    return [rows[order[ends[g] : ends[g + 1]]] for g in range(n_groups)]


class Settled(NamedTuple):
    """How long answers take."""

    age: float  # by which 99% of those that come until `last` have come
    last: float  # when the last answer came that is no chance


def settled_age(log: Log) -> Settled | None:
    """How long the answers of a log take; None where it has none, or does not say when they came."""
    is_served = log.is_served
    delay, watched = log.delay[is_served], log.watched[is_served]
    if not log.has_delays or not np.isfinite(delay).any():
        return None
    found = survival_of(delay, watched)
    came = found.answered > 0.0
    # At most as far as enough were watched: what the last few say is chance.
    is_known = came & (found.at_risk >= ENOUGH)
    last = float(found.ages[is_known if is_known.any() else came][-1])
    shares = 1.0 - found.waiting
    by_last = shares[np.searchsorted(found.ages, last)]
    age = float(found.ages[np.flatnonzero(shares >= NEARLY_ALL * by_last)[0]])
    return Settled(age if age > 0.0 else float(watched.max()) or 1.0, last)


class Weighed(NamedTuple):
    """Rows of one group."""

    weight: Floats  # by row; 0 where there is no answer
    never: float  # the rest: later than anybody was watched, or never
    longest: float  # how long a row was watched at most: of what is later nothing is known


def event_weights(is_event: Flags, mass: Floats | None = None) -> Floats:
    """Return the product-limit weight of every event; rows are sorted by the age at which they left, `mass` is 1 each.

    >>> event_weights(np.array([True, False, True, False]))
    array([0.25 , 0.   , 0.375, 0.   ])
    """
    mass = np.ones(is_event.size) if mass is None else mass
    at_risk = np.cumsum(mass[::-1])[::-1]
    hazard = np.where(is_event, np.divide(mass, at_risk, out=np.zeros(mass.size), where=at_risk > 0.0), 0.0)
    weight = hazard.copy()
    weight[1:] *= np.cumprod(1.0 - hazard)[:-1]
    return weight


def weigh_answers(delay: Floats, watched: Floats, own: Floats | None = None) -> Weighed:
    """The weights of the rows of a group, which sum to 1 with `never`; `own` are what each row counts to begin with.

    >>> weigh_answers(np.array([1.0, np.inf, 3.0, np.inf]), np.array([9.0, 2.0, 9.0, 9.0])).weight
    array([0.25 , 0.   , 0.375, 0.   ])
    """
    n = delay.size
    if n == 0:
        return Weighed(np.zeros(0), 1.0, 0.0)
    is_answered = np.isfinite(delay)
    left = np.where(is_answered, delay, watched)
    order = np.lexsort((~is_answered, left))  # of those who leave at the same age, answers come first
    weight = np.empty(n)
    weight[order] = event_weights(is_answered[order], None if own is None else own[order])
    return Weighed(weight, float(max(0.0, 1.0 - weight.sum())), float(watched.max()))
