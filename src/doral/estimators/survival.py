"""Kaplan-Meier return curves on a fixed grid of ages: the probability that an answer has come by a given age.

For each interval of the grid, the curve needs how many decisions entered it open and how many of those were answered
inside it, *counted over decisions whose fate in the interval is known*. So a decision is counted when its age passes
the interval's end, not when its answer comes: answers in hand never run ahead of the silences they belong with. Every
decision passes every age once, so a curve costs O(grid) per decision and nothing is ever sorted.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints
from doral.compiled import kernel, rare, shared
from doral.numerics.elementary import geometric_steps

MOST_CONCENTRATED = 1e9
MOST_VOTES = 20.0  # a context with more decisions says no more about how far contexts differ
AGE_BELIEF = 1.0  # decisions that the hazard of the age before counts for in that of an age, over all arms
ARM_BELIEF = 2.0  # decisions that the hazard over all arms counts for in that of an arm
WHOLE_ARM = -1  # in place of a row: the arm over all contexts
ADDED_BY_AGE = 64  # up to here, sums over contexts are taken age by age


class ReturnCurves(NamedTuple):
    """Curves by arm, or by context and arm, on G common ages; group = row * A + arm, one row or one per context."""

    pools: bool  # hazards are shrunk: of a context to its arm, of an arm to all arms, of an age to the one before
    ages: Annotated[Floats, Array("G")]  # interval ends, ascending
    at_risk: Annotated[Floats, Array("groups G")]  # decisions that entered the interval open, fate known
    returned: Annotated[Floats, Array("groups G")]  # of those, answered inside it
    arm_at_risk: Annotated[Floats, Array("A G")]  # the same over all rows, as of the last `pool`
    arm_returned: Annotated[Floats, Array("A G")]
    arm_hazard: Annotated[Floats, Array("A G", fill=1.0)]  # posterior mean of their ratio, around `shared`
    shared: Annotated[
        Floats, Array("G+1", fill=1.0)
    ]  # hazards over all arms; last: decisions that the arm counts for in a context
    cursor: Annotated[Ints, Array("G")]  # the first decision that has not yet passed the age


def age_grid(last: float, points: int, first_share: float = 0.01) -> Floats:
    """Ages in geometric steps up to exactly `last`: scale-free, so it serves rounds and seconds alike."""
    return geometric_steps(last * first_share, last, points)


@kernel
def is_by_context(curves: ReturnCurves) -> bool:
    """Whether contexts have curves of their own."""
    return curves.at_risk.shape[0] > curves.arm_at_risk.shape[0]


@kernel
def count_passage(curves: ReturnCurves, group: int, g: int, answer_age: float) -> None:
    """A decision's age has passed `ages[g]`; `answer_age` is infinite while it is unanswered."""
    start = curves.ages[g - 1] if g > 0 else -math.inf
    # without branches: whether an answer fell into an interval is as hard to guess as the answer
    curves.at_risk[group, g] += 1.0 if answer_age > start else 0.0
    curves.returned[group, g] += 1.0 if (answer_age > start) & (answer_age <= curves.ages[g]) else 0.0


@kernel
def _sum_rows(curves: ReturnCurves, n_rows: int) -> None:
    """What is known of every arm, over all contexts."""
    n_arms, n_ages = curves.arm_at_risk.shape
    for arm in range(n_arms):
        for g in range(n_ages):
            curves.arm_at_risk[arm, g], curves.arm_returned[arm, g] = 0.0, 0.0
    for row in range(n_rows):
        for arm in range(n_arms):
            if curves.at_risk[row * n_arms + arm, 0] > 0.0:  # else no decision has reached any age
                for g in range(n_ages):
                    curves.arm_at_risk[arm, g] += curves.at_risk[row * n_arms + arm, g]
                    curves.arm_returned[arm, g] += curves.returned[row * n_arms + arm, g]


@kernel
def _scatter(curves: ReturnCurves, row: int, arm: int, g: int) -> tuple[float, float]:
    """By how much a context's count scatters more than binomially around its arm's hazard, and how much it might."""
    at_risk, returned = curves.arm_at_risk[arm, g], curves.arm_returned[arm, g]
    if returned == 0.0 or returned == at_risk:
        return 0.0, 0.0
    hazard = returned / at_risk
    n = curves.at_risk[row * curves.arm_at_risk.shape[0] + arm, g]
    gap = curves.returned[row * curves.arm_at_risk.shape[0] + arm, g] - n * hazard
    # a policy plays most where answers are quick: such contexts must not outvote the others
    weight = min(1.0, MOST_VOTES * (MOST_VOTES - 1.0) / max(n * (n - 1.0), 1.0))
    excess = weight * (gap * gap - n * hazard * (1.0 - hazard) * (1.0 - n / at_risk))
    return excess, weight * n * max(n - 1.0, 0.0) * hazard * (1.0 - hazard)


@shared
def pool(curves: ReturnCurves) -> None:
    """Sum rows into arms and, with pooling, estimate hazards of all arms, of each arm, and how much contexts differ.

    The hazard of an age is a Beta-binomial posterior mean, around that of the age before; that of an arm likewise,
    around that of all arms. An age that no decision has reached thus takes the hazard of the age before it.

    Hazards of contexts are taken as beta distributed around their arm's. Counts then scatter more than binomially, by
    n (n - 1) h (1 - h) / (concentration + 1), and the excess over all arms and ages gives the concentration: how many
    decisions the arm counts for in a context.
    """
    n_arms, n_ages = curves.arm_at_risk.shape
    n_rows = curves.at_risk.shape[0] // n_arms
    _sum_rows(curves, n_rows)
    if not curves.pools:
        return
    for g in range(n_ages):
        all_at_risk, all_returned = 0.0, 0.0
        for arm in range(n_arms):
            all_at_risk += curves.arm_at_risk[arm, g]
            all_returned += curves.arm_returned[arm, g]
        before = curves.shared[g - 1] if g > 0 else 1.0
        curves.shared[g] = (all_returned + AGE_BELIEF * before) / (all_at_risk + AGE_BELIEF)
        for arm in range(n_arms):
            known, hazard = curves.arm_at_risk[arm, g] + ARM_BELIEF, curves.shared[g]
            curves.arm_hazard[arm, g] = (curves.arm_returned[arm, g] + ARM_BELIEF * hazard) / known
    excess, possible = 0.0, 0.0
    if n_rows <= ADDED_BY_AGE:
        for g in range(n_ages):
            for arm in range(n_arms):
                for row in range(n_rows):
                    more, most = _scatter(curves, row, arm, g)
                    excess, possible = excess + more, possible + most
    else:  # in the order in which they lie in memory
        for row in range(n_rows):
            for arm in range(n_arms):
                if curves.at_risk[row * n_arms + arm, 0] > 0.0:
                    for g in range(n_ages):
                        more, most = _scatter(curves, row, arm, g)
                        excess, possible = excess + more, possible + most
    concentration = MOST_CONCENTRATED
    if excess > 0.0 and possible > 0.0:
        concentration = min(max(possible / excess - 1.0, 1.0), MOST_CONCENTRATED)
    curves.shared[-1] = concentration


@kernel
def _hazard(curves: ReturnCurves, row: int, arm: int, g: int) -> float:
    """The chance to be answered in the interval, if open at its start.

    Without pooling it is 1, which is optimism, for an age that no decision of the arm has reached.
    """
    n_arms = curves.arm_at_risk.shape[0]
    if not curves.pools:
        at_risk = curves.at_risk[arm, g]
        return curves.returned[arm, g] / at_risk if at_risk > 0.0 else 1.0
    hazard = curves.arm_hazard[arm, g]
    if row == WHOLE_ARM:
        return hazard
    weight = curves.shared[-1]
    group = row * n_arms + arm
    return (curves.returned[group, g] + weight * hazard) / (curves.at_risk[group, g] + weight)


@kernel
def return_probability(curves: ReturnCurves, row: int, arm: int, age: float) -> float:
    """tau(age), the survival interpolated between grid ages."""
    survival = 1.0
    start = 0.0
    for g in range(curves.ages.size):
        if start >= age:
            break
        end = curves.ages[g]
        ratio = 1.0 - _hazard(curves, row, arm, g)
        if end <= age:
            survival *= ratio
        else:
            survival *= 1.0 + (ratio - 1.0) * (age - start) / (end - start)
        start = end
    return 1.0 - survival


@kernel
def known_decisions(curves: ReturnCurves, row: int, arm: int) -> float:
    """How many decisions a return probability rests on, those borrowed from the arm included."""
    n_arms = curves.arm_at_risk.shape[0]
    if not curves.pools:
        return curves.at_risk[arm, 0]
    return min(curves.at_risk[row * n_arms + arm, 0] + curves.shared[-1], curves.arm_at_risk[arm, 0])


@rare
def restricted_mean(curves: ReturnCurves, arm: int) -> float:
    """E[min(D, last age)] as the area under the survival curve of an arm, over all contexts; infinite without data."""
    n_arms = curves.arm_at_risk.shape[0]
    survival = 1.0
    start = 0.0
    area = 0.0
    for g in range(curves.ages.size):
        at_risk, returned = 0.0, 0.0
        for group in range(arm, curves.at_risk.shape[0], n_arms):
            at_risk += curves.at_risk[group, g]
            returned += curves.returned[group, g]
        if g == 0 and at_risk == 0.0:
            return math.inf
        after = survival * (1.0 - returned / at_risk) if at_risk > 0.0 else 0.0
        area += 0.5 * (survival + after) * (curves.ages[g] - start)
        survival = after
        start = curves.ages[g]
    return area


def whole_arm_curve(curves: ReturnCurves, arm: int) -> Floats:
    """The return curve of an arm, over all contexts, at each age: `return_probability` without compiled code."""
    hazards = curves.arm_hazard[arm]
    if not curves.pools:
        at_risk = curves.at_risk[arm]
        hazards = np.where(at_risk > 0.0, curves.returned[arm] / np.maximum(at_risk, 1e-300), 1.0)
    return np.asarray(1.0 - np.cumprod(1.0 - hazards))


@rare
def age_of_share(curves: ReturnCurves, share: float) -> float:
    """The first grid age by which this share of all answers of the watched ages has come; infinite without any."""
    n_arms, n_ages = curves.arm_at_risk.shape
    total = 0.0
    for a in range(n_arms):
        total += curves.arm_at_risk[a, 0] * return_probability(curves, WHOLE_ARM, a, curves.ages[n_ages - 1])
    if total == 0.0:
        return math.inf
    for g in range(n_ages):
        come = 0.0
        for a in range(n_arms):
            come += curves.arm_at_risk[a, 0] * return_probability(curves, WHOLE_ARM, a, curves.ages[g])
        if come >= share * total:
            return curves.ages[g]
    return math.inf


@rare
def mean_age(curves: ReturnCurves, limit: float) -> float:
    """The mean age of answers that come by the limit; 0 without any."""
    n_arms, n_ages = curves.arm_at_risk.shape
    total, weight = 0.0, 0.0
    for a in range(n_arms):
        before, start = 0.0, 0.0
        for g in range(n_ages):
            age = curves.ages[g]
            if age > limit:
                break
            by = return_probability(curves, WHOLE_ARM, a, age)
            total += curves.arm_at_risk[a, 0] * (by - before) * 0.5 * (start + age)
            before, start = by, age
        weight += curves.arm_at_risk[a, 0] * before
    return total / weight if weight > 0.0 else 0.0
