"""Kaplan-Meier return curves on a fixed grid of ages: the probability that an answer has come by a given age.

For each interval of the grid, the curve needs how many decisions entered it open and how many of those were answered
inside it, *counted over decisions whose fate in the interval is known*. So a decision is counted when its age passes
the interval's end, not when its answer comes: answers in hand never run ahead of the silences they belong with. Every
decision passes every age once, so a curve costs O(grid) per decision and nothing is ever sorted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._jit import jit, jit_rare


class ReturnCurves(NamedTuple):
    """One curve per group (an arm), on G common ages."""

    ages: Floats  # (G,) interval ends, ascending
    at_risk: Floats  # (groups, G) decisions that entered the interval open, fate known
    returned: Floats  # (groups, G) of those, answered inside it
    cursor: Ints  # (G,) the first decision that has not yet passed the age


def new_return_curves(n_groups: int, ages: Floats) -> ReturnCurves:
    """Curves with no data."""
    return ReturnCurves(
        ages=np.ascontiguousarray(ages, dtype=np.float64),
        at_risk=np.zeros((n_groups, ages.size)),
        returned=np.zeros((n_groups, ages.size)),
        cursor=np.zeros(ages.size, dtype=np.int64),
    )


def age_grid(last: float, points: int, first_share: float = 0.01) -> Floats:
    """Ages in geometric steps up to exactly `last`: scale-free, so it serves rounds and seconds alike."""
    ages = np.geomspace(last * first_share, last, points)
    ages[-1] = last
    return ages


@jit
def count_passage(curves: ReturnCurves, group: int, g: int, answer_age: float) -> None:
    """A decision's age has passed `ages[g]`; `answer_age` is infinite while it is unanswered."""
    if g == 0 or answer_age > curves.ages[g - 1]:
        curves.at_risk[group, g] += 1.0
        if answer_age <= curves.ages[g]:
            curves.returned[group, g] += 1.0


@jit_rare
def return_probability(curves: ReturnCurves, group: int, age: float) -> float:
    """tau(age), the survival interpolated between grid ages; beyond what has been seen it is optimistic: 1."""
    survival = 1.0
    start = 0.0
    for g in range(curves.ages.size):
        if start >= age:
            break
        end = curves.ages[g]
        at_risk = curves.at_risk[group, g]
        ratio = 1.0 - curves.returned[group, g] / at_risk if at_risk > 0.0 else 0.0
        if end <= age:
            survival *= ratio
        else:
            survival *= 1.0 + (ratio - 1.0) * (age - start) / (end - start)
        start = end
    return 1.0 - survival


@jit_rare
def restricted_mean(curves: ReturnCurves, group: int) -> float:
    """E[min(D, last age)] as the area under the survival curve; infinite without data."""
    if curves.at_risk[group, 0] == 0.0:
        return math.inf
    survival = 1.0
    start = 0.0
    area = 0.0
    for g in range(curves.ages.size):
        at_risk = curves.at_risk[group, g]
        after = survival * (1.0 - curves.returned[group, g] / at_risk) if at_risk > 0.0 else 0.0
        area += 0.5 * (survival + after) * (curves.ages[g] - start)
        survival = after
        start = curves.ages[g]
    return area


def fit_return_curve(ages: Floats, answered: Flags, grid: Floats) -> Floats:
    """The return curve of one group at each age of `grid`.

    `ages` holds the delay of each answered decision, and for the others how long they have been watched
    (expired and pending alike: both are "not by this age").
    """
    curves = new_return_curves(1, grid)
    for age, has_answer in zip(ages.tolist(), answered.tolist(), strict=True):
        for g, end in enumerate(grid.tolist()):
            if has_answer or age >= end:
                count_passage(curves, 0, g, age if has_answer else math.inf)
    return np.array([return_probability(curves, 0, end) for end in grid.tolist()])
