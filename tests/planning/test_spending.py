"""What a budget buys: LP_m says the same at every budget, and intervals hold what is true."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import linprog

from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.pacing import solve
from doral.planning.spending import Spending, spending


def _truths(draws: int, contexts: int = 10, arms: int = 10, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.3, 0.3, (1, contexts, arms)) + rng.normal(0.0, 0.05, (draws, contexts, arms))
    costs = np.broadcast_to(rng.uniform(0.2, 3.0, (1, contexts, arms)), values.shape).copy()
    return values, costs, rng.dirichlet(np.full(contexts, 50.0), draws)


def _alike(values: Floats, costs: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Forty draws that are all the same."""
    return np.repeat(values, 40, axis=0), np.repeat(costs, 40, axis=0), np.repeat(shares, 40, axis=0)


@pytest.mark.parametrize(("floor", "seed"), [(0.0, 0), (0.2, 1)])
def test_a_single_truth_is_spent_as_the_linear_program_spends_it(floor: float, seed: int) -> None:
    values, costs, shares = _truths(1, seed=seed)
    costs[0, :, 0] = 0.0  # one arm is free
    told = spending(*_alike(values, costs, shares), 10_000, floor=floor)
    for budget, value, marginal in list(zip(told.budgets, told.value, told.marginal, strict=True))[1:-1:3]:
        found = solve(values=values[0], costs=costs[0], shares=shares[0], rate=budget / 10_000, floor=floor)
        assert value == pytest.approx(10_000 * found.value, rel=1e-9)
        assert marginal == pytest.approx(found.price, rel=1e-9)
    assert told.value == pytest.approx(told.low)
    assert told.value == pytest.approx(told.high)


def test_highs_earns_no_more() -> None:
    values, costs, shares = _truths(1, contexts=4, arms=5, seed=3)
    told = spending(*_alike(values, costs, shares), 100.0)
    weights = np.repeat(100.0 * shares[0], 5)
    for budget, value in list(zip(told.budgets, told.value, strict=True))[::7]:
        found = linprog(
            -(weights * values[0].ravel()),
            A_ub=np.vstack([weights * costs[0].ravel(), np.kron(np.eye(4), np.ones(5))]),
            b_ub=np.concatenate([[budget], np.ones(4)]),
        )
        assert found.fun is not None
        assert value == pytest.approx(-found.fun, rel=1e-6, abs=1e-9)


def test_more_is_the_difference_of_two_budgets() -> None:
    values, costs, shares = _truths(40)
    told = spending(values, costs, shares, 10_000, 2_000)
    more = told.more(500)
    assert more.low <= more.gain <= more.high
    assert more.sentence.startswith("500 more would bring about")
    named = spending(values, costs, shares, 10_000, 2_000, unit="bookings", currency="EUR")
    assert named.more(500).sentence.startswith("EUR 500 more would bring about")
    assert "bookings" in named.more(500).sentence
    assert told.more(-500).gain < 0.0
    assert told.more(0.0).gain == 0.0
    assert told.more(500, at=0.0).gain > more.gain  # the first units bring most
    with pytest.raises(InvalidValue, match="amount"):
        told.more(-2_001)
    with pytest.raises(InvalidValue, match="at"):
        spending(values, costs, shares, 10_000).more(5)


def test_what_is_planned_for_the_mean_is_not_flattered_by_noise() -> None:
    """All arms are worth the same: the best of each draw would seem to bring much more."""
    rng = np.random.default_rng(4)
    truth = np.full((1, 5, 20), 0.3)
    values = truth + rng.normal(0.0, 0.1, (200, 5, 20))
    told = spending(values, np.ones(values.shape), np.full((200, 5), 0.2), 1_000)
    assert told.value[-1] < 1.15 * 300
    best_of_each = np.mean([1_000 * 0.2 * one.max(axis=1).sum() for one in values])
    assert best_of_each > 1.5 * 300


def test_the_knee_is_where_money_brings_half_as_much() -> None:
    # the first 100 units bring 2 each, the next 100 bring 1.2, the next 300 bring 0.3
    values = np.array([[[2.0], [1.2], [0.3]]])
    told = spending(*_alike(values, np.ones((1, 3, 1)), np.array([[0.2, 0.2, 0.6]])), 500)
    assert told.knee == told.knee_low == told.knee_high == pytest.approx(200.0)
    assert told.budgets[-1] == pytest.approx(500.0)
    assert told.value[-1] == pytest.approx(200 + 120 + 90)
    area = (0.5 * 200 * 100 + (200 + 260) * 0 + 100 * (200 + 320) / 2 + 300 * (320 + 410) / 2) / (500 * 410)
    assert told.cost_gain.area == pytest.approx(area)
    assert told.cost_gain.at_random[-1] == pytest.approx(410.0)


def test_rounding_is_no_gain() -> None:
    dice = np.random.default_rng(0)
    values, shares = dice.uniform(0.1, 0.9, (40, 3, 2)), dice.dirichlet([5.0, 5.0, 5.0], 40)
    told = spending(values, np.ones((40, 3, 2)), shares, 1_197.0, 1_197.0)
    more = told.more(120.0)
    assert (more.gain, more.low, more.high) == (0.0, 0.0, 0.0)
    assert not any(mark.isdigit() for mark in more.sentence.removeprefix("120"))


def test_nothing_that_is_worth_it() -> None:
    told = spending(-np.ones((40, 2, 2)), np.ones((40, 2, 2)), np.full((40, 2), 0.5), 100, 50)
    assert told.knee is None
    assert told.cost_gain.area is None
    assert set(told.value) == {0.0}
    assert told.more(10).gain == 0.0
    assert "No budget" in told.sentence
    free = spending(np.ones((40, 1, 1)), np.zeros((40, 1, 1)), np.ones((40, 1)), 100)
    assert free.value[0] == pytest.approx(100.0)
    assert free.knee is None


def test_plain_values_for_json() -> None:
    told = spending(*_truths(40), 1_000, 300)
    assert isinstance(told, Spending)
    plain = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert "_truths" not in plain
    assert plain["cost_gain"]["sentence"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("values", {"values": np.ones((2, 2))}),
        ("costs", {"costs": np.ones((1, 2, 3))}),
        ("costs", {"costs": -np.ones((1, 2, 2))}),
        ("shares", {"shares": np.ones((1, 3))}),
        ("values, shares", {"values": np.full((1, 2, 2), np.nan)}),
        ("arrivals", {"arrivals": 0.0}),
        ("budget", {"budget": -1.0}),
    ],
)
def test_what_makes_no_sense_is_named(field: str, change: dict[str, object]) -> None:
    given = {
        "values": np.ones((1, 2, 2)),
        "costs": np.ones((1, 2, 2)),
        "shares": np.full((1, 2), 0.5),
        "arrivals": 10.0,
    }
    with pytest.raises(InvalidValue, match=field):
        spending(**(given | change))  # type: ignore[arg-type]


def test_more_money_never_buys_less() -> None:
    """Draws differ a lot; on average a larger budget buys more, as planned."""
    rng = np.random.default_rng(0)
    values = rng.normal(0.05, 0.05, (40, 3, 2))
    costs = np.broadcast_to(np.array([0.1, 0.4]), values.shape)
    found = spending(values, costs, np.full((40, 3), 1.0 / 3.0), 3_000.0, 300.0)
    gains = [found.more(amount).gain for amount in (-150.0, -50.0, 50.0, 150.0, 400.0)]
    assert gains == sorted(gains)
    assert list(found.value) == sorted(found.value)
