"""Sizes and amounts that a problem may have."""

from __future__ import annotations

# Beyond these sizes an input is a slip (a transposed array, rounds given in nanoseconds), not a problem to solve.
MAX_ARMS = 100_000
MAX_CONTEXTS = 10_000
MAX_FEATURES = 1_000
MAX_PAIRS = 10**8
MAX_HORIZON = 10**10
MAX_FEATURE_SIZE = 1e6

# Amounts of money and what they are multiplied with. Values per unit of cost, budgets per round and their products then
# stay between 1e-60 and 1e60, far from where floats overflow or lose digits.
MIN_AMOUNT, MAX_AMOUNT = 1e-12, 1e15
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
MIN_SHARE = 1e-12
MIN_AGE, MAX_AGE = 1e-9, 1e12  # of deadlines and cut-offs: a nanosecond of a clock in seconds; longer than any horizon

# The largest reward, either way. Two things limit it. Over the longest horizon, sums of squares reach 1e18 * 1e10, and
# with features and weights squared 1e58: finite. And sums are kept in two floats of 53 bits each, so that a wrong
# reward of 1e9, whose square is 1e18, leaves an error of 1e18 * 2^-106, about 1e-14, when it is taken back: rewards
# around 1 come out of that with 14 digits. Units smaller than millionths should be scaled.
MAX_REWARD = 1e9

MAX_TIERS = 100

SHARES_TOLERANCE = 1e-6
