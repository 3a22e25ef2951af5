"""Empirical Bayes over contexts: the noise is found at any scale, and estimates are posterior means."""

from __future__ import annotations

import numpy as np
import pytest

from doral._arrays import Floats
from doral.estimators.ridge import Ridge, new_ridge
from doral.estimators.shrinkage import (
    COUNT,
    NOISE,
    PENALTY,
    REWARD,
    SPREAD,
    SPREAD_FLOOR,
    SQUARE,
    Prior,
    calibrate,
    measure_noise,
    new_prior,
)

N_CONTEXTS, N_ARMS, N_FEATURES = 6, 8, 3
START = 1.0  # penalty
SCALES = [0.01, 1.0, 100.0]


def tally_of(rng: np.random.Generator, means: Floats, sd: float, n: int, thinning: Floats | None = None) -> Floats:
    """Sums of n rewards, thrown at cells at random; thinned: the reward comes with that chance, else 0."""
    tally = np.zeros((3, *means.shape))
    contexts, arms = rng.integers(0, means.shape[0], n), rng.integers(0, means.shape[1], n)
    rewards = rng.normal(means[contexts, arms], sd)
    if thinning is not None:
        rewards *= rng.random(n) < thinning[contexts, arms]
    np.add.at(tally[COUNT], (contexts, arms), 1.0)
    np.add.at(tally[REWARD], (contexts, arms), rewards)
    np.add.at(tally[SQUARE], (contexts, arms), rewards**2)
    return tally


def linear_means(rng: np.random.Generator, scale: float) -> tuple[Floats, Floats, Floats]:
    """Features, thetas around a common mean, and the rewards they make."""
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    theta = scale * rng.normal([0.5, 1.0, -0.3], 0.2, (N_CONTEXTS, N_FEATURES))
    return features, theta, np.asarray(theta @ features.T)


def calibrated(
    features: Floats, tally: Floats, steps: int, thinning: Floats | None = None, penalty: float = START
) -> tuple[Prior, Ridge]:
    n_contexts, n_arms = tally.shape[1:]
    prior = new_prior(n_contexts, features.shape[1], penalty)
    ridge = new_ridge(features, n_contexts, penalty)
    for _ in range(steps):
        calibrate(prior, ridge, tally, np.ones((n_contexts, n_arms)) if thinning is None else thinning)
    return prior, ridge


@pytest.mark.parametrize("scale", SCALES)
def test_the_noise_is_recovered_at_any_scale(scale: float) -> None:
    rng = np.random.default_rng(1)
    _, _, means = linear_means(rng, scale)
    prior = new_prior(N_CONTEXTS, N_FEATURES, START)
    tally = tally_of(rng, means, 0.3 * scale, 4000)
    second_moment = measure_noise(prior, tally)
    assert second_moment == pytest.approx(tally[SQUARE].sum() / 4000)
    assert np.sqrt(prior.scale[NOISE]) == pytest.approx(0.3 * scale, rel=0.05)
    assert prior.sigma == pytest.approx(np.full(N_CONTEXTS, 0.3 * scale), rel=0.1)


@pytest.mark.parametrize("scale", SCALES)
def test_contexts_with_noise_of_their_own(scale: float) -> None:
    rng = np.random.default_rng(2)
    _, _, means = linear_means(rng, scale)
    tally = tally_of(rng, means, 0.1 * scale, 6000)
    tally[:, 0] = tally_of(rng, means, scale, 6000)[:, 0]
    prior = new_prior(N_CONTEXTS, N_FEATURES, START)
    measure_noise(prior, tally)
    assert prior.sigma[0] == pytest.approx(scale, rel=0.1)
    assert prior.sigma[1:] == pytest.approx(np.full(N_CONTEXTS - 1, 0.1 * scale), rel=0.25)


@pytest.mark.parametrize("scale", SCALES)
def test_rewards_without_noise(scale: float) -> None:
    """Nothing divides by zero, and estimates are all but exact."""
    rng = np.random.default_rng(3)
    features, _, means = linear_means(rng, scale)
    prior, ridge = calibrated(features, tally_of(rng, means, 0.0, 3000), 5)
    assert 0.0 < np.sqrt(prior.scale[NOISE]) < 0.05 * scale
    assert np.isfinite(prior.sigma).all()
    assert ridge.estimate[:, :N_ARMS] == pytest.approx(means, abs=1e-3 * scale)


def test_nothing_but_zeros_is_no_scale_to_go_by() -> None:
    features = np.random.default_rng(4).uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    tally = np.zeros((3, N_CONTEXTS, N_ARMS))
    tally[COUNT] = 5.0
    prior, ridge = calibrated(features, tally, 2)
    assert prior.scale.tolist() == new_prior(N_CONTEXTS, N_FEATURES, START).scale.tolist()
    assert not ridge.estimate.any()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("steps", [1, 2, 30])
@pytest.mark.parametrize("thinned", [False, True])
def test_estimates_are_the_posterior_means_of_the_final_prior(scale: float, steps: int, thinned: bool) -> None:
    rng = np.random.default_rng(5)
    features, _, means = linear_means(rng, scale)
    thinning = rng.uniform(0.3, 1.0, means.shape) if thinned else np.ones(means.shape)
    tally = tally_of(rng, means, 0.3 * scale, 150, thinning if thinned else None)
    prior, ridge = calibrated(features, tally, steps, thinning)
    noise, spread = prior.scale[NOISE], prior.scale[SPREAD]
    assert prior.scale[PENALTY] == pytest.approx(noise / spread)
    for j in range(N_CONTEXTS):
        # theta ~ N(mu, omega^2 I); rewards of cell a ~ N(thin <theta, f_a>, sigma^2)
        design = thinning[j][:, None] * features
        precision = np.eye(N_FEATURES) / spread + (design.T * tally[COUNT, j]) @ design / noise
        covariance = np.linalg.inv(precision)
        theta = covariance @ (prior.mean / spread + design.T @ tally[REWARD, j] / noise)
        assert ridge.estimate[j, :N_ARMS] == pytest.approx(features @ theta, abs=1e-9 * scale)
        deviation = np.sqrt(np.einsum("ai,ij,aj->a", features, covariance, features))
        assert np.sqrt(noise) * ridge.norm[j, :N_ARMS] == pytest.approx(deviation, abs=1e-9 * scale)


@pytest.mark.parametrize("scale", SCALES)
def test_the_common_mean_and_spread_are_found(scale: float) -> None:
    rng = np.random.default_rng(6)
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    theta = scale * rng.normal([0.5, 1.0, -0.3], 0.2, (60, N_FEATURES))
    prior, _ = calibrated(features, tally_of(rng, np.asarray(theta @ features.T), 0.1 * scale, 30_000), 60)
    assert prior.mean / scale == pytest.approx(theta.mean(axis=0) / scale, abs=0.02)
    assert np.sqrt(prior.scale[SPREAD]) / scale == pytest.approx(0.2, rel=0.15)


def test_contexts_that_are_all_alike_close_the_prior_down_to_its_floor() -> None:
    rng = np.random.default_rng(7)
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    means = np.tile(features @ [0.5, 1.0, -0.3], (N_CONTEXTS, 1))
    tally = tally_of(rng, means, 0.3, 600)
    prior, ridge = calibrated(features, tally, 200)
    floor = SPREAD_FLOOR * tally[SQUARE].sum() / tally[COUNT].sum()
    assert floor * (1.0 - 1e-9) <= prior.scale[SPREAD] < 0.1**2
    # contexts share their strength: better than each on its own
    own = np.divide(tally[REWARD], tally[COUNT], out=np.zeros_like(means), where=tally[COUNT] > 0.0)
    shared_error, own_error = (float(np.abs(one - means).max()) for one in (ridge.estimate[:, :N_ARMS], own))
    assert shared_error < 0.15
    assert shared_error < own_error


@pytest.mark.parametrize("scale", SCALES)
def test_without_features_cells_are_shrunk_to_their_arm(scale: float) -> None:
    rng = np.random.default_rng(8)
    _, _, means = linear_means(rng, scale)
    tally = tally_of(rng, means, 0.3 * scale, 200)
    prior, ridge = calibrated(np.zeros((N_ARMS, 0)), tally, 10)
    penalty = prior.scale[PENALTY]
    overall = tally[REWARD].sum() / tally[COUNT].sum()
    arm = (tally[REWARD].sum(axis=0) + penalty * overall) / (tally[COUNT].sum(axis=0) + penalty)
    estimate = (tally[REWARD] + penalty * arm) / (tally[COUNT] + penalty)
    assert ridge.estimate[:, :N_ARMS] == pytest.approx(estimate, abs=1e-9 * scale)
    assert ridge.norm[:, :N_ARMS] == pytest.approx(np.sqrt(1.0 / (tally[COUNT] + penalty)))
