"""The range of prices holds the price of every LP within the bounds, and is no wider than it must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from doral._arrays import Floats
from doral.pacing import LEAST, MOST, find_prices, new_price_range

pytestmark = pytest.mark.usefixtures("compiled_alone")


def price_of(values: Floats, costs: Floats, shares: Floats, rate: float) -> float:
    """The multiplier of the budget, from HiGHS."""
    n_contexts, n_arms = values.shape
    gain = (shares[:, None] * values).ravel()
    budget = (shares[:, None] * costs[None, :]).ravel()
    once = np.kron(np.eye(n_contexts), np.ones(n_arms))
    found = linprog(-gain, A_ub=np.vstack([budget, once]), b_ub=np.append(rate, np.ones(n_contexts)), method="highs")
    return -float(found.ineqlin.marginals[0])


@pytest.mark.parametrize("seed", range(6))
def test_every_price_within_the_bounds_is_in_the_range_and_its_ends_are_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_contexts, n_arms = 3, 4
    costs, shares = rng.choice([0.5, 1.0, 1.5, 2.0, 3.0], n_arms), rng.dirichlet(np.ones(n_contexts))
    centre, width = rng.uniform(0.1, 1.0, (n_contexts, n_arms)), rng.uniform(0.0, 0.2, (n_contexts, n_arms))
    rate = rng.uniform(0.2, 1.2)
    known = new_price_range(n_contexts, n_arms, 1)
    known.lower[:], known.upper[:], known.share[:] = centre - width, centre + width, shares
    known.caps[LEAST], known.caps[MOST] = 0.98 * rate, 1.02 * rate
    find_prices(known, costs[None], np.zeros(n_arms), np.zeros(n_contexts, dtype=np.int64))
    low, high = known.prices[LEAST, 0], known.prices[MOST, 0]

    def drawn(corner: bool) -> float:
        step = rng.choice([-1.0, 1.0], width.shape) if corner else rng.uniform(-1.0, 1.0, width.shape)
        return price_of(centre + step * width, costs, shares, rate * rng.uniform(0.98, 1.02))

    prices = np.array([drawn(corner) for corner in (False, True) for _ in range(300)])
    exact = known.upper.max() / costs.min() / 4096 + 1e-9
    assert prices.min() >= low - 1e-9
    assert prices.max() <= high + 1e-9
    # the ends are attained by values that random ones come near: each context by itself, at one price
    assert _attained(known.lower, known.upper, costs, shares, low + exact) <= 1.02 * rate + 1e-9
    assert low == 0.0 or prices.min() < low + 0.5 * (high - low) + exact
    assert prices.max() > high - 0.5 * (high - low) - exact


def _attained(lower: Floats, upper: Floats, costs: Floats, shares: Floats, price: float) -> float:
    """What is spent at this price with values that make contexts cheap: the cheapest arm that can win, at its best."""
    spent = 0.0
    for j, share in enumerate(shares.tolist()):
        to_beat = max(0.0, float((lower[j] - price * costs).max()))
        can_win = costs[upper[j] - price * costs >= to_beat]
        spent += share * (0.0 if to_beat == 0.0 else float(can_win.min()))
    return spent


def test_exact_values_have_one_price() -> None:
    """One context, arms (1, 0.5) and (2, 0.8): above a rate of 1 the second edge is bought in part, at slope 0.3."""
    known = new_price_range(1, 2, 1)
    known.lower[:] = known.upper[:] = [[0.5, 0.8]]
    known.share[:] = 1.0
    costs, play, depth = np.array([1.0, 2.0]), np.zeros(2), np.zeros(1, dtype=np.int64)
    for rate, price in ((0.5, 0.5), (1.5, 0.3), (2.5, 0.0)):
        known.caps[:] = rate
        find_prices(known, costs[None], play, depth)
        assert known.prices[LEAST, 0] <= price <= known.prices[MOST, 0]
        assert known.prices[MOST, 0] - known.prices[LEAST, 0] <= 2 * 0.5 / 4096


def test_an_arm_that_may_not_be_played_sets_no_price() -> None:
    known = new_price_range(1, 2, 1)
    known.lower[:] = known.upper[:] = [[0.5, 5.0]]
    known.share[:], known.caps[:] = 1.0, 0.5
    find_prices(known, np.array([[1.0, 1.5]]), np.array([0.0, -np.inf]), np.zeros(1, dtype=np.int64))
    assert abs(known.prices[:, 0] - 0.5).max() < 1e-3


def test_tiers_pay_by_what_bounds_them() -> None:
    """Two equal contexts at unit cost; the less urgent one may spend a tenth: it pays its own slope, the other none."""
    known = new_price_range(2, 1, 2)
    known.lower[:] = known.upper[:] = [[0.4], [0.9]]
    known.share[:] = 0.5
    known.caps[:] = [[0.8, 0.1]] * 2
    find_prices(known, np.ones((1, 1)), np.zeros(1), np.array([0, 1]))
    assert known.prices[:, 0].max() == 0.0
    assert abs(known.prices[:, 1] - 0.9).max() < 1e-3
