"""Sums of rewards that survive a correction exactly.

A reward of 1e9 that was a slip, added and taken off again, must leave nothing behind; in one float it takes all small
ones with it. So every sum is kept in two floats: the second is what the first has lost to rounding (Knuth's two-sum).
Nobody decides by these sums. They are what the plain ones, which policies work with, are set to after a correction.
"""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats
from doral.compiled import kernel

# Of a cell: the sum of rewards and what it has lost, the sum of their squares and what it has lost.
REWARDS, SQUARES = 0, 2


def new_exact_sums(n_contexts: int, n_arms: int) -> Floats:
    """(J, A, 4): a cell lies in one line of the cache."""
    return np.zeros((n_contexts, n_arms, 4))


@kernel
def _add(cell: Floats, which: int, amount: float) -> None:
    before = cell[which]
    total = before + amount
    taken = total - before
    cell[which] = total
    cell[which + 1] += (before - (total - taken)) + (amount - taken)


@kernel
def add_exactly(sums: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """A reward that counts with this weight; below 0, one that counted with it does no more."""
    cell = sums[context, arm]
    _add(cell, REWARDS, weight * reward)
    _add(cell, SQUARES, weight * reward * reward)


@kernel
def add_reward_exactly(sums: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """The same for those who ask for no squares."""
    _add(sums[context, arm], REWARDS, weight * reward)


@kernel
def exact_sum(sums: Floats, context: int, arm: int, which: int) -> float:
    return sums[context, arm, which] + sums[context, arm, which + 1]
