"""Truths that a log leaves possible: what they have in common with it, and that the truth is one of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

import doral
from doral.inference.cells import cells_of
from doral.inference.pooling import draw_worths
from doral.inference.truths import Truths, tilted, truths_of
from doral.simulation.world.truth import make_truth
from tests.inference.test_cells import kits
from tests.logs import HOUR, log_of


def worth_of(truths: Truths, weight: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float]:
    worth: list[float] = np.add.reduceat(weight * truths.worth, truths.starts[:-1]).tolist()
    return worth


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_every_truth_is_a_law_whose_cells_are_worth_what_was_drawn(noise: str) -> None:
    truths = truths_of(log_of(kits(noise=noise), "status-quo"), deadline=60 * HOUR, n=5, seed=1)
    for number in range(5):
        weight = truths.weights(number)
        assert (weight >= 0.0).all()
        assert np.add.reduceat(weight, truths.starts[:-1]) == pytest.approx(1.0)
        assert worth_of(truths, weight) == pytest.approx(truths.worths.worth[number].ravel().tolist(), rel=1e-6)
        assert (weight == truths.weights(number)).all()
    assert worth_of(truths, truths.usual()) == pytest.approx(truths.worths.worth.mean(axis=0).ravel().tolist())


@pytest.mark.parametrize("arms", [1, 4])
@pytest.mark.parametrize("rows", [1, 40])
def test_what_never_failed_may_fail_and_what_never_worked_may_work(rows: int, arms: int) -> None:
    """A log of one outcome leaves a rate of (almost) 0 or 1 possible, and others as far as its rows allow."""
    limit = float(beta(rows + 0.5, 0.5).ppf(0.025))
    for reward in (1.0, 0.0):
        log = doral.read_log(
            {"arm": ["a"] * rows + ["b", "c", "d"][: arms - 1] * rows, "reward": [reward] * rows * arms}
        )
        truths = truths_of(log, deadline=1.0, n=400, seed=0)
        worth = np.array([worth_of(truths, truths.weights(number)) for number in range(400)])
        np.testing.assert_allclose(worth, truths.worths.worth[:, 0, :], atol=2e-6)
        off = np.abs(worth[:, 0] - reward)  # from what was always seen
        assert 0.15 * (1.0 - limit) < np.quantile(off, 0.975) < 1.2 * (1.0 - limit)


def test_seeds_make_truths() -> None:
    log = log_of(kits(), "status-quo")
    first, again, other = (truths_of(log, deadline=60 * HOUR, n=3, seed=seed) for seed in (1, 1, 2))
    assert (first.weights(2) == again.weights(2)).all()
    assert (first.weights(2) != other.weights(2)).any()


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_the_true_worth_of_cells_is_among_the_draws(noise: str) -> None:
    scenario = kits(noise=noise, noise_sd=0.5)
    true = make_truth(scenario, seed=0, run=0).counted[0]
    inside, pooled, raw = [], [], []
    for run in range(80):
        cells = cells_of(log_of(scenario, "status-quo", run=run), 60 * HOUR)
        worth = draw_worths(cells, 200, np.random.default_rng(run)).worth
        inside.append(np.abs(worth.mean(axis=0) - true) <= 2.0 * worth.std(axis=0))
        pooled.append(((worth.mean(axis=0) - true) ** 2).mean())
        raw.append(((cells.mean.reshape(2, 2) - true) ** 2).mean())
    assert 0.88 <= np.mean(inside) <= 0.99
    assert np.mean(pooled) < 1.1 * np.mean(raw)


def test_thin_cells_borrow() -> None:
    """Sixty cells with a dozen rows each, that do not differ much: alone, each is mostly luck."""
    means = 0.3 + 0.02 * np.random.default_rng(3).normal(size=(20, 3))
    problem = doral.Problem(
        arms=[doral.Arm(name) for name in "abc"],
        contexts={f"c{j}": 0.05 for j in range(20)},
        budget=700,
        horizon=720,
        deadline=50,
    )
    scenario = doral.Scenario(
        name="thin", problem=problem, means=means, noise="bernoulli", delays=doral.delays.Fixed(1)
    )
    cells = cells_of(log_of(scenario, "status-quo", watched_after=50.0), 50 * HOUR)
    draws = draw_worths(cells, 60, np.random.default_rng(0))
    seen = cells.mean.reshape(20, 3)
    assert ((draws.worth.mean(axis=0) - means) ** 2).mean() < 0.3 * ((seen - means) ** 2).mean()
    assert np.median(draws.borrowed) > 12.0


def test_cells_that_nobody_has_seen_have_rows_of_their_arm() -> None:
    log = log_of(kits(), doral.rival("status-quo", chances=[[0.5, 0.5], [1.0, 0.0]]))
    assert not ((log.context == 1) & (log.arm == 1)).any()
    truths = truths_of(log, deadline=60 * HOUR, n=3, seed=0)
    borrowed = truths.place[truths.starts[3] : truths.starts[4]]
    assert (log.arm[truths.cells.row[borrowed]] == 1).all()
    assert np.isinf(truths.worths.borrowed[:, 1, 1]).all()
    assert truths.weights(0)[truths.starts[3] :].sum() == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 10.0), st.floats(-100.0, 100.0)), min_size=2, max_size=30),
    st.floats(0.01, 0.99),
)
def test_a_tilt_reaches_what_is_wanted(rows: list[tuple[float, float]], share: float) -> None:
    weight, worth = np.array(rows).T
    low, high = float(worth.min()), float(worth.max())
    wanted = low + share * (high - low)
    found = tilted(weight, worth, wanted)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    if high > low:
        assert float((found * worth).sum()) == pytest.approx(wanted, abs=2e-5 * (high - low))


def test_an_arm_that_has_always_failed_may_succeed() -> None:
    """Three rows without a success: no truth is sure of it, and each is as good as what was drawn for it."""
    table = {"arm": ["a"] * 20 + ["b"] * 3, "reward": [1.0, 0.0] * 10 + [0.0] * 3}
    log = doral.read_log(pl.DataFrame(table))
    truths = truths_of(log, deadline=5.0, n=200, seed=0)
    worth = np.array([worth_of(truths, truths.weights(number)) for number in range(200)])
    assert worth == pytest.approx(truths.worths.worth.reshape(200, -1), abs=1e-5)
    assert np.quantile(worth[:, 1], 0.9) > 0.1
    assert np.quantile(worth[:, 1], 0.1) < 0.2


def test_an_arm_without_any_success_may_have_some() -> None:
    """What is drawn for it can happen, at its own price: no success in 60 rows is no proof of none ever."""
    rng = np.random.default_rng(0)
    arm = np.repeat(["a", "b", "never"], [400, 400, 60])
    won = np.where(arm == "never", 0, rng.random(arm.size) < 0.1).astype(int)
    price = np.where(arm == "never", 5.0, 2.0)
    log = doral.read_log({"arm": arm, "reward": won, "cost": price, "paid": price * won})
    truths = truths_of(log, deadline=1.0, n=6, seed=0)
    for number in range(6):
        weight = truths.weights(number)
        assert worth_of(truths, weight) == pytest.approx(truths.worths.worth[number].ravel().tolist(), rel=1e-6)
        paid = np.add.reduceat(weight * truths.paid, truths.starts[:-1])
        prices = np.array([{"a": 2.0, "b": 2.0, "never": 5.0}[name] for name in log.arms])
        assert paid == pytest.approx(prices * truths.worths.worth[number].ravel(), rel=1e-6)
