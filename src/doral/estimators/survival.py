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
    """Curves by arm, or by context and arm, on G common ages; group = row * A + arm, one row or one per context."""

    ages: Floats  # (G,) interval ends, ascending
    at_risk: Floats  # (groups, G) decisions that entered the interval open, fate known
    returned: Floats  # (groups, G) of those, answered inside it
    arm_at_risk: Floats  # (A, G) the same over all rows; the very same array where there is one row
    arm_returned: Floats  # (A, G)
    cursor: Ints  # (G,) the first decision that has not yet passed the age


def new_return_curves(n_arms: int, n_rows: int, ages: Floats) -> ReturnCurves:
    """Curves with no data."""
    at_risk, returned = (np.zeros((n_rows * n_arms, ages.size)) for _ in range(2))
    return ReturnCurves(
        ages=np.array(ages, dtype=np.float64),
        at_risk=at_risk,
        returned=returned,
        arm_at_risk=at_risk if n_rows == 1 else np.zeros((n_arms, ages.size)),
        arm_returned=returned if n_rows == 1 else np.zeros((n_arms, ages.size)),
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
def pool(curves: ReturnCurves) -> float:
    """Sum the rows of each arm, and see how much they differ: the concentration of the contexts around their arm.

    Hazards of contexts are taken as beta distributed around the arm's. Counts then scatter more than binomially, by
    n (n - 1) h (1 - h) / (concentration + 1); the excess over all arms and ages gives the concentration. Infinite: no
    excess, contexts are alike.
    """
    n_arms, n_ages = curves.arm_at_risk.shape
    n_rows = curves.at_risk.shape[0] // n_arms
    if n_rows == 1:
        return math.inf
    excess, possible = 0.0, 0.0
    for arm in range(n_arms):
        for g in range(n_ages):
            at_risk, returned = 0.0, 0.0
            for row in range(n_rows):
                at_risk += curves.at_risk[row * n_arms + arm, g]
                returned += curves.returned[row * n_arms + arm, g]
            curves.arm_at_risk[arm, g], curves.arm_returned[arm, g] = at_risk, returned
            if returned == 0.0 or returned == at_risk:
                continue
            hazard = returned / at_risk
            for row in range(n_rows):
                n = curves.at_risk[row * n_arms + arm, g]
                gap = curves.returned[row * n_arms + arm, g] - n * hazard
                excess += gap * gap - n * hazard * (1.0 - hazard) * (1.0 - n / at_risk)
                possible += n * max(n - 1.0, 0.0) * hazard * (1.0 - hazard)
    if excess <= 0.0 or possible <= 0.0:
        return math.inf
    return max(possible / excess - 1.0, 1.0)


@jit_rare
def return_probability(curves: ReturnCurves, row: int, arm: int, age: float, concentration: float) -> float:
    """tau(age), the survival interpolated between grid ages; beyond what has been seen it is optimistic: 1.

    Hazards of a context are shrunk to those of its arm: `concentration` says how many decisions the arm counts for.
    """
    n_arms = curves.arm_at_risk.shape[0]
    group = row * n_arms + arm
    survival = 1.0
    start = 0.0
    for g in range(curves.ages.size):
        if start >= age:
            break
        end = curves.ages[g]
        at_risk = curves.arm_at_risk[arm, g]
        ratio = 0.0
        if at_risk > 0.0:
            hazard = curves.arm_returned[arm, g] / at_risk
            if concentration < math.inf:
                known = curves.at_risk[group, g]
                hazard = (curves.returned[group, g] + concentration * hazard) / (known + concentration)
            ratio = 1.0 - hazard
        if end <= age:
            survival *= ratio
        else:
            survival *= 1.0 + (ratio - 1.0) * (age - start) / (end - start)
        start = end
    return 1.0 - survival


@jit_rare
def restricted_mean(curves: ReturnCurves, arm: int) -> float:
    """E[min(D, last age)] as the area under the survival curve of an arm; infinite without data."""
    if curves.arm_at_risk[arm, 0] == 0.0:
        return math.inf
    survival = 1.0
    start = 0.0
    area = 0.0
    for g in range(curves.ages.size):
        at_risk = curves.arm_at_risk[arm, g]
        after = survival * (1.0 - curves.arm_returned[arm, g] / at_risk) if at_risk > 0.0 else 0.0
        area += 0.5 * (survival + after) * (curves.ages[g] - start)
        survival = after
        start = curves.ages[g]
    return area


def fit_return_curve(ages: Floats, answered: Flags, grid: Floats) -> Floats:
    """The return curve of one group at each age of `grid`.

    `ages` holds the delay of each answered decision, and for the others how long they have been watched
    (expired and pending alike: both are "not by this age").
    """
    curves = new_return_curves(1, 1, grid)
    for age, has_answer in zip(ages.tolist(), answered.tolist(), strict=True):
        for g, end in enumerate(grid.tolist()):
            if has_answer or age >= end:
                count_passage(curves, 0, g, age if has_answer else math.inf)
    return np.array([return_probability(curves, 0, 0, end, math.inf) for end in grid.tolist()])
