"""What features of a person do to a rate that is known for all: answers come faster, or more of the price is paid.

    rate of one with columns x  =  exp(<gamma, x>) * rate of all,      gamma ~ N(0, s)

One multiplicative effect per column, the same for all arms, shrunk to none as far as data are few. What is counted (an
answer, a share that was paid) has a mean of `exposure` without the effect: for answers, the hazard of all that has
added up until then (proportional hazards). Each count enters once, linearised around what was thought when it came, as
one step of a Poisson regression; the constant takes up what all have in common, and is not part of the effect. s is
learned, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.estimators.cells import above_zero
from doral.estimators.ridge import invert

GUESS = 0.04  # of s, to start with: a standard deviation of a number changes a rate by a fifth
LEAST = 1e-6
MOST = 1.0
FARTHEST = math.log(8.0)  # nobody is thought to be eight times faster, or slower


class Shift(NamedTuple):
    """Of p columns, the first of which is 1."""

    gamma: Floats  # (p,)
    precision: Floats  # (p, p) of what was counted
    says: Floats  # (p,)
    spread: Floats  # (1,) s
    scratch: Floats  # (3, p, p)


def new_shift(p: int) -> Shift:
    return Shift(
        gamma=np.zeros(p),
        precision=np.zeros((p, p)),
        says=np.zeros(p),
        spread=np.array([GUESS]),
        scratch=np.zeros((3, p, p)),
    )


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
def count_shift(shift: Shift, x: Floats, counted: float, exposure: float) -> None:
    """Something was counted where `exposure` was to be expected of all."""
    score = _score(shift, x, 0)
    expected = exposure * math.exp(score)
    for i in range(x.size):
        shift.says[i] += x[i] * (counted - expected + expected * score)
        for l in range(x.size):  # noqa: E741
            shift.precision[i, l] += expected * x[i] * x[l]


@rare
def solve_shift(shift: Shift) -> None:
    """gamma, and a step of Fisher scoring for s."""
    p = shift.gamma.size
    if p < 2 or not shift.precision[0, 0] > 0.0:
        return
    matrix, factor, cov = shift.scratch[0], shift.scratch[1], shift.scratch[2]
    for i in range(p):
        for l in range(p):  # noqa: E741
            matrix[i, l] = shift.precision[i, l]
        matrix[i, i] += 1.0 / shift.spread[0]
    invert(matrix, factor, cov)
    size = max(shift.spread[0], GUESS)
    score, information = (GUESS - shift.spread[0]) / (size * size), 1.0 / (size * size)
    for i in range(p):
        total = 0.0
        for l in range(p):  # noqa: E741
            total += cov[i, l] * shift.says[l]
        shift.gamma[i] = total
        if i > 0:
            pull = total / shift.spread[0]
            known = max((1.0 - cov[i, i] / shift.spread[0]) / shift.spread[0], 0.0)
            score += pull * pull - known
            information += known * known
    shift.spread[0] = min(max(above_zero(shift.spread[0] + score / information, information), LEAST), MOST)


@rare
def fade_shift(shift: Shift, keep: float) -> None:
    p = shift.gamma.size
    for i in range(p):
        shift.says[i] *= keep
        for l in range(p):  # noqa: E741
            shift.precision[i, l] *= keep
