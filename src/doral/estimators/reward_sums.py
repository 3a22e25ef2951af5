"""Sums of rewards by context and arm, for rebuilding what was learned under any prior, and after a correction.

A reward of 1e9 that was a slip, added and taken off again, must leave nothing behind; in one float it takes all small
ones with it. So every exact sum is kept in two floats: the second is what the first has lost to rounding (Knuth's
two-sum). Exact sums decide nothing: the plain ones, with which policies work, are set to them after a correction.
"""

from __future__ import annotations

from doral._arrays import Floats
from doral.compiled import kernel

# Rows of a tally (3, J, A): raw sums of what has been learned. The ridge can be rebuilt from them under any prior.
COUNT, REWARD, SQUARE = 0, 1, 2
# Of an exact cell: the sum of rewards and what it has lost, the sum of their squares and what it has lost.
REWARDS, SQUARES = 0, 2


@kernel
def add_to_tally(tally: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """Add a reward that counts with this weight."""
    tally[COUNT, context, arm] += weight
    tally[REWARD, context, arm] += weight * reward
    tally[SQUARE, context, arm] += weight * reward * reward


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
