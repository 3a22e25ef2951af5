"""Posterior draws of cells: exact where the posterior is known, calibrated where truths come from the model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, expit

from doral._arrays import Floats
from doral.inference.pooling import RateSampler


def drawn(successes: Floats, rows: Floats, *, n: int = 2_000, seed: int = 0) -> Floats:
    """(n, J, A) rates."""
    seen = successes / np.maximum(rows, 1e-9)
    sampler = RateSampler(seen, rows, 1.0, np.random.default_rng(seed), chains=16)
    for _ in range(300):
        sampler.sweep(is_tuning=True)
    found = []
    for _ in range(n // 16):
        for _ in range(8):
            sampler.sweep(is_tuning=False)
        found.append(sampler.draw()[0])
    return np.concatenate(found)


@pytest.mark.parametrize(("successes", "rows"), [(7, 7), (30, 30), (0, 12), (3, 40), (95, 100)])
def test_a_single_cell_has_the_posterior_of_jeffreys(successes: int, rows: int) -> None:
    found = drawn(np.array([[successes]], dtype=float), np.array([[rows]], dtype=float), n=8_000).ravel()
    known = stats.beta(successes + 0.5, rows - successes + 0.5)
    assert stats.kstest(found, known.cdf).pvalue > 1e-3
    low, high = known.ppf([0.025, 0.975])
    assert np.quantile(found, 0.025) == pytest.approx(low, abs=0.01)
    assert np.quantile(found, 0.975) == pytest.approx(high, abs=0.01)


def test_two_arms_have_the_posterior_of_a_quadrature() -> None:
    """Level and shape on a grid; given both, rates are Beta."""
    won, rows = np.array([18.0, 9.0]), np.array([20.0, 20.0])
    level, log_shape = np.meshgrid(np.linspace(-8, 12, 400), np.linspace(np.log(0.25), np.log(1e5), 400))
    mean, shape = expit(level), np.exp(log_shape)
    yes, no = shape / (1.0 - mean), shape / mean
    log_weight = 0.5 * np.log(mean * (1.0 - mean)) + 0.5 * log_shape - np.log1p(shape)
    for s, n in zip(won, rows, strict=True):
        log_weight += betaln(yes + s, no + n - s) - betaln(yes, no)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    true = [(weight * (yes + s) / (yes + no + n)).sum() for s, n in zip(won, rows, strict=True)]
    found = drawn(won[None], rows[None], n=6_000)[:, 0]
    assert found.mean(axis=0) == pytest.approx(true, abs=0.006)
    square = [
        (weight * (yes + s) * (yes + s + 1) / ((yes + no + n) * (yes + no + n + 1))).sum()
        for s, n in zip(won, rows, strict=True)
    ]
    assert (found**2).mean(axis=0) == pytest.approx(square, abs=0.008)


@pytest.mark.parametrize("middle", [-3.0, 0.0, 2.5])
def test_intervals_hold_rates_that_come_from_effects_of_arms_and_contexts(middle: float) -> None:
    rng = np.random.default_rng(5)
    held, best = [], []
    for seed in range(60):
        logits = middle + 0.5 * rng.normal(size=(4, 1)) + 0.7 * rng.normal(size=(1, 3)) + 0.3 * rng.normal(size=(4, 3))
        true, rows = expit(logits), rng.integers(5, 60, (4, 3)).astype(float)
        found = drawn(rng.binomial(rows.astype(int), true).astype(float), rows, n=480, seed=seed)
        low, high = np.quantile(found, [0.025, 0.975], axis=0)
        held.append(((low <= true) & (true <= high)).mean())
        low, high = np.quantile(found.max(axis=2).sum(axis=1), [0.025, 0.975])
        best.append(low <= true.max(axis=1).sum() <= high)
    assert 0.925 <= np.mean(held) <= 0.98  # 720 cells
    assert np.mean(best) >= 0.88  # what an oracle would choose: 60 sums


def test_thousands_of_cells_are_drawn_with_few_chains() -> None:
    rng = np.random.default_rng(0)
    rows = np.full((60, 30), 20.0)
    sampler = RateSampler(rng.binomial(20, 0.3, (60, 30)) / 10.0, rows, 2.0, rng, chains=2)
    for _ in range(60):
        sampler.sweep(is_tuning=True)
    worth, borrowed = sampler.draw()
    assert worth.shape == (2, 60, 30)
    assert worth.mean() == pytest.approx(0.6, abs=0.03)
    assert (borrowed > 0.0).all()
