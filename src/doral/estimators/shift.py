"""What features of a person do to a rate that is known for all: answers come faster, or more of the price is paid.

    rate of one with columns x  =  exp(<gamma, x>) * rate of all,      gamma ~ N(0, s)

One multiplicative effect per column, the same for all arms, shrunk to none as far as data are few. For answers the rate
is the hazard (proportional hazards), and what is looked at is whether an answer has come by the cut-off: when it came
says more, but a curve that is a little off for an arm would then pass for an effect of those who mostly get that arm.
Each count enters once, linearised around what was thought when it came. How fast arms are is not asked here, and an arm
whose curve is off is off for all: each has a constant of its own, which is left out. s is learned, too.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from doral._arrays import Array, Floats
from doral.compiled import kernel, rare
from doral.estimators.ridge import invert
from doral.estimators.scoring import as_guessed, moved

GUESS = 0.04  # of s, to start with: a standard deviation of a number changes a rate by a fifth
LEAST = 1e-6
MOST = 1.0
SURE = 1e-3  # a chance nearer to 0 or 1 than this tells nothing of who is faster
FARTHEST = math.log(8.0)  # nobody is thought to be eight times faster, or slower


class Shift(NamedTuple):
    """Of p columns, the first of which is 1."""

    gamma: Annotated[Floats, Array("p")]
    precision: Annotated[Floats, Array("p p")]  # of what was counted: sum of weight x x^T
    says: Annotated[Floats, Array("p")]  # sum of weight x z, for z what each count says of <gamma, x>
    by_arm: Annotated[Floats, Array("A p")]  # sum of weight x, by arm
    arm_says: Annotated[Floats, Array("A")]  # sum of weight z
    spread: Annotated[Floats, Array("1", fill=GUESS)]  # s
    scratch: Annotated[Floats, Array("3 p p")]
    pull: Annotated[Floats, Array("p")]  # scratch


@kernel
def times(shift: Shift, x: Floats) -> float:
    """exp(<gamma, x>) without the constant."""
    return math.exp(_score(shift, x, 1))


@kernel
def _score(shift: Shift, x: Floats, first: int) -> float:
    total = 0.0
    for i in range(first, x.size):
        total += shift.gamma[i] * x[i]
    return min(max(total, -FARTHEST), FARTHEST)


@kernel
def count_shift(shift: Shift, arm: int, x: Floats, counted: float, exposure: float) -> None:
    """Something was counted where `exposure` was to be expected of all: one step of a Poisson regression."""
    score = _score(shift, x, 0)
    expected = exposure * math.exp(score)
    _add(shift, arm, x, counted - expected, expected, score)


@kernel
def count_chance(shift: Shift, arm: int, x: Floats, happened: bool, chance: float) -> None:
    """Something happened, or did not, that has this chance for all: the hazard that adds up to it is multiplied.

    p = 1 - (1 - chance)^exp(score), and one step of the regression of such a chance (complementary log-log).
    """
    if not SURE < chance < 1.0 - SURE:
        return
    score = _score(shift, x, 0)
    hazard = -math.log1p(-chance) * math.exp(score)
    p = min(max(-math.expm1(-hazard), SURE), 1.0 - SURE)
    slope = (1.0 - p) * hazard / (p * (1.0 - p))
    _add(shift, arm, x, slope * ((1.0 if happened else 0.0) - p), slope * slope * p * (1.0 - p), score)


@kernel
def _add(shift: Shift, arm: int, x: Floats, pull: float, weight: float, score: float) -> None:
    shift.arm_says[arm] += pull + weight * score
    for i in range(x.size):
        shift.by_arm[arm, i] += weight * x[i]
        shift.says[i] += x[i] * (pull + weight * score)
        for l in range(x.size):  # noqa: E741
            shift.precision[i, l] += weight * x[i] * x[l]


@rare
def solve_shift(shift: Shift) -> None:
    """gamma, and a step of Fisher scoring for s."""
    p = shift.gamma.size
    if p < 2 or not shift.precision[0, 0] > 0.0:
        return
    matrix, factor, cov = shift.scratch[0], shift.scratch[1], shift.scratch[2]
    says = shift.pull
    for i in range(p):
        says[i] = shift.says[i]
        for l in range(p):  # noqa: E741
            matrix[i, l] = shift.precision[i, l]
    for a in range(shift.arm_says.size):
        known = shift.by_arm[a, 0]
        if known > 0.0:
            for i in range(p):
                says[i] -= shift.by_arm[a, i] * shift.arm_says[a] / known
                for l in range(p):  # noqa: E741
                    matrix[i, l] -= shift.by_arm[a, i] * shift.by_arm[a, l] / known
    for i in range(p):
        matrix[i, i] += 1.0 / shift.spread[0]
    invert(matrix, factor, cov)
    score, information = as_guessed(shift.spread[0], GUESS)
    for i in range(p):
        total = 0.0
        for l in range(p):  # noqa: E741
            total += cov[i, l] * says[l]
        shift.gamma[i] = total
        if i > 0:
            pull = total / shift.spread[0]
            known = max((1.0 - cov[i, i] / shift.spread[0]) / shift.spread[0], 0.0)
            score += pull * pull - known
            information += known * known
    shift.spread[0] = moved(shift.spread[0], score, information, LEAST, MOST)


@rare
def fade_shift(shift: Shift, keep: float) -> None:
    p = shift.gamma.size
    for a in range(shift.arm_says.size):
        shift.arm_says[a] *= keep
        for i in range(p):
            shift.by_arm[a, i] *= keep
    for i in range(p):
        shift.says[i] *= keep
        for l in range(p):  # noqa: E741
            shift.precision[i, l] *= keep
