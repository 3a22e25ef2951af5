"""What a policy answers to one arrival, and why."""

from __future__ import annotations

from typing import NamedTuple

# Reasons. Words for them are in the layers above: kernels know no strings.
PLAYED_RACING, PLAYED, PLAYED_MARGINAL = 0, 1, 2
SKIPPED_BUDGET, SKIPPED_PACED, SKIPPED_UNAVAILABLE, SKIPPED_OVER, SKIPPED_WORTHLESS = 3, 4, 5, 6, 7
PLAYED_EXPLORING, SKIPPED_EXPLORING = 8, 9
PLAYED_FIRST = 10  # a planned first try
UNDECIDED = -1  # nothing is planned: stage 2 decides


class Choice(NamedTuple):
    """What was decided for one arrival."""

    arm: int  # NO_ARM: skipped
    probability: float  # of exactly this (this arm, or the skip), given everything up to then
    value: float  # eta of the context's arm
    price: float  # shadow price of a unit of budget
    reason: int
