"""Certificates on states that are set by hand, and the range of prices that they allow for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from doral._arrays import Floats
from doral.engine.bonus import bonus_scale
from doral.engine.certificates import Certificate, PriceBounds, _n_watched, certificates, find_prices
from doral.engine.events import refresh
from doral.engine.state import FEWEST_ANSWERS, TIER_PRICE, State
from doral.problem import Problem
from tests.engine.interpreted import COSTS, Player, as_arrays, small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")

ESTIMATE = np.array([[0.9, 0.3, 0.1], [0.3, 0.2, 0.4]])
PRICE = 0.05


def certain(problem: Problem | None = None) -> State:
    """Return a state that has seen enough, with little uncertainty."""
    state = state_of("doral-otf", problem)
    state.ridge.estimate[:2, :3], state.ridge.norm[:, :3] = ESTIMATE, 0.01
    state.prior.sigma[:] = 1.0
    state.tau[:, :3], state.tau_error[:, :3] = 0.8, 0.0
    state.now[0].learned = FEWEST_ANSWERS
    state.curves.cursor[:] = FEWEST_ANSWERS
    state.tiers[TIER_PRICE] = PRICE
    return state


def found_in(state: State, problem: Problem | None = None) -> dict[tuple[str, str], Certificate]:
    """Return the certificates of a state by context and arm."""
    found = certificates(as_arrays(state), problem or small_problem())
    return {(one.context, one.arm): one for one in found}


def bounds(state: State, context: int) -> tuple[Floats, float]:
    """Return what arms bring after their cost, and how far from that they may be."""
    for_all = math.sqrt(2.0 * math.log(6 / 0.05))
    weight = state.contexts[context].weight
    return weight * 0.8 * ESTIMATE[context] - PRICE * COSTS, weight * max(for_all, bonus_scale(state, context)) * 0.008


def test_an_arm_is_out_if_its_upper_bound_is_below_the_lower_bound_of_another() -> None:
    """At every price that is possible; arms of the same cost are compared by their values alone."""
    state = certain()
    found = found_in(state)
    for j, context in enumerate("xy"):
        net, width = bounds(state, j)
        rival = int(net.argmax())
        for a, arm in enumerate("abc"):
            is_worse = net[a] + width < net[rival] - width
            assert ((context, arm) in found) == is_worse
            if is_worse:
                one = found[context, arm]
                assert (one.rival, one.price, one.round) == ("abc"[rival], PRICE, 1)
                assert one.at_most == pytest.approx(net[a] + width)
                assert one.at_least == pytest.approx(net[rival] - width)
                assert one.price_low <= PRICE <= one.price_high
    assert 0 < len(found) < 6


@pytest.mark.parametrize("few", ["answers", "watched"])
def test_nothing_is_certain_of_few_answers(few: str) -> None:
    state = certain()
    if few == "answers":
        state.now[0].learned = FEWEST_ANSWERS - 1
    else:
        state.curves.cursor[:] = FEWEST_ANSWERS - 1
    assert found_in(state) == {}


def test_a_certificate_ends_when_its_bounds_meet_again() -> None:
    state = certain()
    assert found_in(state)
    state.ridge.norm[:, :3] = 5.0
    assert found_in(state) == {}


def test_retired_arms_are_no_rivals() -> None:
    state = certain()
    assert found_in(state)["x", "b"].rival == "a"
    state.barrier[2, 0] = -np.inf
    found = found_in(state)
    assert {one.rival for one in found.values()}.isdisjoint("a")
    assert {arm for _, arm in found}.isdisjoint("a")


def test_with_the_end_in_view_nothing_is_certain() -> None:
    problem = small_problem(counted="by_end")
    state = certain(problem)
    assert found_in(state, problem)
    state.now[0].round, state.now[0].clock = 90, 90.0  # ten rounds are left, the deadline is 20
    assert found_in(state, problem) == {}


def test_a_certificate_changes_no_state() -> None:
    state = certain()
    refresh(state)
    before = as_arrays(state).barrier.copy()
    found_in(state)
    assert (as_arrays(state).barrier == before).all()


def test_how_many_decisions_were_watched_for_as_long_as_an_answer_may_take() -> None:
    player = Player(state_of("doral-otf", small_problem(budget=1e6)))
    for clock in (1.0, 2.0, 12.0):
        assert player.decide(0, clock).arm >= 0
    player.state.now[0].must_read, player.state.now[0].read_at = 1, 0
    player.pass_time(22.5)
    assert _n_watched(as_arrays(player.state)) == 2
    endless = state_of("doral-otf", small_problem(deadline=None))
    endless.curves.cursor[:] = np.arange(endless.curves.cursor.size, 0, -1)
    assert _n_watched(as_arrays(endless)) == 1  # without a deadline, to the last age
    assert _n_watched(as_arrays(state_of("d-linucb"))) == math.inf  # nothing has to be


# --- the range of prices ---------------------------------------------------------------------------------------------


def known(
    lower: Floats,
    upper: Floats,
    costs: Floats,
    *,
    shares: Floats,
    caps: tuple[list[float], list[float]],
    depth: list[int] | None = None,
) -> PriceBounds:
    return PriceBounds(
        lower=lower,
        upper=upper,
        costs=costs[None],
        share=shares,
        depth=np.zeros(len(lower), dtype=np.int64) if depth is None else np.array(depth),
        least=np.array(caps[0]),
        most=np.array(caps[1]),
    )


def price_of(values: Floats, costs: Floats, shares: Floats, rate: float) -> float:
    """Return the multiplier of the budget, from HiGHS."""
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
    lower, upper = centre - width, centre + width
    found = find_prices(known(lower, upper, costs, shares=shares, caps=([0.98 * rate], [1.02 * rate])))
    low, high = float(found[0][0]), float(found[1][0])

    def drawn(corner: bool) -> float:
        step = rng.choice([-1.0, 1.0], width.shape) if corner else rng.uniform(-1.0, 1.0, width.shape)
        return price_of(centre + step * width, costs, shares, rate * rng.uniform(0.98, 1.02))

    prices = np.array([drawn(corner) for corner in (False, True) for _ in range(300)])
    exact = upper.max() / costs.min() / 4096 + 1e-9
    assert prices.min() >= low - 1e-9
    assert prices.max() <= high + 1e-9
    # the ends are attained by values that random ones come near: each context by itself, at one price
    assert _attained(lower, upper, costs, shares, low + exact) <= 1.02 * rate + 1e-9
    assert low == 0.0 or prices.min() < low + 0.5 * (high - low) + exact
    assert prices.max() > high - 0.5 * (high - low) - exact


def _attained(lower: Floats, upper: Floats, costs: Floats, shares: Floats, price: float) -> float:
    """Return what is spent at this price with values that make contexts cheap: the cheapest arm that can win."""
    spent = 0.0
    for j, share in enumerate(shares.tolist()):
        to_beat = max(0.0, float((lower[j] - price * costs).max()))
        can_win = costs[upper[j] - price * costs >= to_beat]
        spent += share * (0.0 if to_beat == 0.0 else float(can_win.min()))
    return spent


def test_exact_values_have_one_price() -> None:
    """One context, arms (1, 0.5) and (2, 0.8): above a rate of 1 the second edge is bought in part, at slope 0.3."""
    values, costs, shares = np.array([[0.5, 0.8]]), np.array([1.0, 2.0]), np.ones(1)
    for rate, price in ((0.5, 0.5), (1.5, 0.3), (2.5, 0.0)):
        (low,), (high,) = find_prices(known(values, values, costs, shares=shares, caps=([rate], [rate])))
        assert low <= price <= high
        assert high - low <= 2 * 0.5 / 4096


def test_an_arm_that_may_not_be_played_sets_no_price() -> None:
    problem = small_problem()
    state = certain(problem)
    state.ridge.estimate[:2, 2] = 50.0
    free = found_in(state, problem)
    state.barrier[:, 2] = -np.inf
    closed = found_in(state, problem)
    assert max(one.price_high for one in closed.values()) < 5.0 < max(one.price_high for one in free.values())


def test_depths_pay_by_what_bounds_them() -> None:
    """Two equal contexts at unit cost; the less urgent one may spend a tenth: it pays its own slope, the other none."""
    values = np.array([[0.4], [0.9]])
    low, high = find_prices(
        known(values, values, np.ones(1), shares=np.full(2, 0.5), caps=([0.8, 0.1], [0.8, 0.1]), depth=[0, 1])
    )
    assert high[0] == 0.0
    assert abs(low[1] - 0.9) < 1e-3
    assert abs(high[1] - 0.9) < 1e-3
