"""Between which prices a unit of budget may lie, when values, shares and the rate are only known within bounds.

At price p, context j is served with the arm that brings most after its cost, or skipped. Which one that is depends on
the values; with each of them anywhere between its bounds, it can be any arm a with

    U_ja - p c_a  >=  max(0, max_b L_jb - p c_b)

So what context j spends at price p lies between the smallest and the largest cost of those, contexts do not depend on
each other, and both sums over contexts fall as the price rises. The price of LP_m is where spending meets the rate:
no higher than where the most that may be spent falls below the least that the rate may be, and no lower than where the
least that is spent falls to the most that it may be. Both are attained: no narrower range holds.

With reserves, contexts of depth d pay the highest price of the tiers that bound them, and what a deeper tier spends is
at most what it may spend.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._kernel import kernel, rare

STEPS = 12  # halvings of [0, the highest slope]: ends are that exact, and outside
TIES = 1e-9  # relative: sums of shares that are alike up to rounding meet the rate, and the range is the wider one


class PriceRange(NamedTuple):
    """What is known of J contexts and A arms with D depths of urgency, and the range of prices that follows."""

    lower: Floats  # (J, A) the least that an arm may be worth
    upper: Floats  # (J, A) the most
    share: Floats  # (J,)
    caps: Floats  # (2, D) the least and the most that contexts of this depth and more may spend per round
    prices: Floats  # (2, D) the lowest and the highest price for contexts of this depth: to be found
    own: Floats  # (D,) scratch


LEAST, MOST = 0, 1


def new_price_range(n_contexts: int, n_arms: int, n_depths: int) -> PriceRange:
    return PriceRange(
        lower=np.zeros((n_contexts, n_arms)),
        upper=np.zeros((n_contexts, n_arms)),
        share=np.zeros(n_contexts),
        caps=np.zeros((2, n_depths)),
        prices=np.zeros((2, n_depths)),
        own=np.zeros(n_depths),
    )


@rare
def find_prices(known: PriceRange, costs: Floats, barrier: Floats, depth: Ints) -> None:
    """Fill in `prices`. `costs` are (1 or J, A), and `barrier[a]` is 0 for arms that may be played."""
    n_contexts, n_arms = known.lower.shape
    highest = 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            cost = costs[min(j, costs.shape[0] - 1), a]
            if barrier[a] == 0.0 and cost > 0.0:
                highest = max(highest, known.upper[j, a] / cost)
    for end in range(2):
        for d in range(known.own.size):
            price = _tier_price(known, costs, barrier, depth, end, d, highest)
            known.prices[end, d] = price if d == 0 else max(price, known.prices[end, d - 1])


@kernel
def _tier_price(
    known: PriceRange, costs: Floats, barrier: Floats, depth: Ints, end: int, tier: int, highest: float
) -> float:
    """The price at which spending meets what this tier and those below it may spend, to the outside."""
    low, high = 0.0, highest
    if not _is_spent(known, costs, barrier, depth, end, tier, 0.0):
        return 0.0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if _is_spent(known, costs, barrier, depth, end, tier, middle):
            low = middle
        else:
            high = middle
    return low if end == LEAST else high


@kernel
def _is_spent(
    known: PriceRange, costs: Floats, barrier: Floats, depth: Ints, end: int, tier: int, price: float
) -> bool:
    """Whether at this price all is spent that may be: for the lowest price, more than the most; for the highest, at
    least the least.
    """
    n_depths = known.own.size
    for d in range(n_depths):
        known.own[d] = 0.0
    for j in range(known.share.size):
        if depth[j] >= tier:
            known.own[depth[j]] += known.share[j] * _cost_of(known, costs, barrier, j, end, price)
    below = 0.0
    for back in range(1, n_depths - tier):
        d = n_depths - back
        below = min(known.own[d] + below, known.caps[end, d])
    spending = known.own[tier] + below
    if end == LEAST:
        return spending > known.caps[MOST, tier] * (1.0 + TIES)
    return spending >= known.caps[LEAST, tier] * (1.0 - TIES)


@kernel
def _cost_of(known: PriceRange, costs: Floats, barrier: Floats, context: int, end: int, price: float) -> float:
    """The smallest or the largest cost among what may be best in a context at this price."""
    lower, upper, own = known.lower[context], known.upper[context], costs[min(context, costs.shape[0] - 1)]
    best = 0.0
    for a in range(own.size):
        if barrier[a] == 0.0:
            best = max(best, lower[a] - price * own[a])
    if end == LEAST and best == 0.0:
        return 0.0
    least, most = math.inf, 0.0
    for a in range(own.size):
        if barrier[a] == 0.0 and upper[a] - price * own[a] >= best:
            least, most = min(least, own[a]), max(most, own[a])
    return least if end == LEAST else most
