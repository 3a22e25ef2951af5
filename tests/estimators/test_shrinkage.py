"""Empirical Bayes over contexts: the noise is found at any scale, and estimates are posterior means.

The reference conditions the joint normal law of mu, all theta_j and all cell means on what was seen, in covariances;
the engine never sees that law whole, and works in precisions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from doral._arrays import Floats
from doral.estimators.ridge import COUNT, REWARD, SQUARE, Ridge
from doral.estimators.shrinkage import NOISE, PENALTY, RANGE, SPREAD, SPREAD_GUESS, Prior, calibrate, measure_noise
from tests.estimators.ridges import first_ridge
from tests.estimators.states import new_prior

pytestmark = pytest.mark.usefixtures("compiled_alone")
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
    ridge = first_ridge(features, n_contexts, penalty)
    for _ in range(steps):
        calibrate(prior, ridge, tally, np.ones((n_contexts, n_arms)) if thinning is None else thinning)
    return prior, ridge


@dataclass(frozen=True)
class Law:
    """Noise, spread of theta_j around mu and of mu around its center: what one calibration went by."""

    noise: float
    spread: float
    range: float
    center: float = 0.0

    @staticmethod
    def of(prior: Prior, center: float = 0.0) -> Law:
        """omega^2 as it was used: the one in the prior is for the next time."""
        noise = float(prior.scale[NOISE])
        return Law(noise, noise / float(prior.scale[PENALTY]), float(prior.scale[RANGE]), center)


def posterior(
    law: Law, features: Floats, tally: Floats, thinning: Floats, left_out: int | None = None
) -> tuple[Floats, Floats]:
    """Mean (J + 1, k) and covariance (J + 1, k, J + 1, k) of mu, theta_1, ..., theta_J given the cell means."""
    n_contexts, n_arms = tally.shape[1:]
    k = features.shape[1]
    shape = (n_contexts + 1, k)
    among = np.full((n_contexts + 1, n_contexts + 1), law.range)
    among[1:, 1:] += law.spread * np.eye(n_contexts)
    covariance = np.kron(among, np.eye(k))
    mean = np.full(shape, law.center).ravel()
    cells = [(j, a) for j in range(n_contexts) for a in range(n_arms) if tally[COUNT, j, a] > 0.0 and j != left_out]
    if cells:
        design = np.zeros((len(cells), *shape))
        for row, (j, a) in enumerate(cells):
            design[row, j + 1] = thinning[j, a] * features[a]
        flat = design.reshape(len(cells), -1)
        seen = np.array([tally[REWARD, j, a] / tally[COUNT, j, a] for j, a in cells])
        error = np.diag([law.noise / tally[COUNT, j, a] for j, a in cells])
        gain = np.linalg.solve(flat @ covariance @ flat.T + error, flat @ covariance).T
        mean = mean + gain @ (seen - flat @ mean)
        covariance = covariance - gain @ flat @ covariance
    return np.asarray(mean.reshape(shape)), np.asarray(covariance.reshape(*shape, *shape))


def squares(mean: Floats, covariance: Floats) -> float:
    """The sum over contexts of E |theta_j - mu|^2."""
    total = 0.0
    for j in range(1, mean.shape[0]):
        spread = covariance[j, :, j] + covariance[0, :, 0] - covariance[j, :, 0] - covariance[0, :, j]
        total += float(((mean[j] - mean[0]) ** 2).sum() + np.trace(spread))
    return total


@pytest.mark.parametrize("scale", SCALES)
def test_the_noise_is_recovered_at_any_scale(scale: float) -> None:
    rng = np.random.default_rng(1)
    _, _, means = linear_means(rng, scale)
    prior = new_prior(N_CONTEXTS, N_FEATURES, START)
    tally = tally_of(rng, means, 0.3 * scale, 4000)
    second_moment = measure_noise(prior, tally, False)
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
    measure_noise(prior, tally, False)
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
@pytest.mark.parametrize("n", [3, 150, 5000])
def test_estimates_are_the_posterior_given_all_contexts(scale: float, steps: int, thinned: bool, n: int) -> None:
    """What a context borrows from the others, and its own data, make the exact posterior: no context counts twice."""
    rng = np.random.default_rng(5)
    features, _, means = linear_means(rng, scale)
    thinning = rng.uniform(0.3, 1.0, means.shape) if thinned else np.ones(means.shape)
    tally = tally_of(rng, means, 0.3 * scale, n, thinning if thinned else None)
    prior, ridge = calibrated(features, tally, steps, thinning)
    second_moment = tally[SQUARE].sum() / tally[COUNT].sum()
    assert prior.scale[RANGE] == pytest.approx(second_moment / (features**2).sum(axis=1).mean())
    law = Law.of(prior)
    if steps == 1:
        assert law.spread == pytest.approx(SPREAD_GUESS * law.range)
    mean, covariance = posterior(law, features, tally, thinning)
    for j in range(N_CONTEXTS):
        assert ridge.estimate[j, :N_ARMS] == pytest.approx(features @ mean[j + 1], abs=1e-8 * scale)
        variance = np.einsum("ai,ij,aj->a", features, covariance[j + 1, :, j + 1], features)
        assert np.sqrt(law.noise) * ridge.norm[j, :N_ARMS] == pytest.approx(np.sqrt(variance), abs=1e-8 * scale)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_prior_of_a_context_is_what_the_others_tell(scale: float, steps: int) -> None:
    rng = np.random.default_rng(9)
    features, _, means = linear_means(rng, scale)
    tally = tally_of(rng, means, 0.3 * scale, 200)
    tally[:, 2] = 0.0  # one has no data at all,
    tally[:, 3, 1:] = 0.0  # and one has tried a single arm
    prior, ridge = calibrated(features, tally, steps)
    law = Law.of(prior)
    for j in range(N_CONTEXTS):
        mean, covariance = posterior(law, features, tally, np.ones(means.shape), left_out=j)
        assert ridge.offset[j] == pytest.approx(features @ mean[j + 1], abs=1e-8 * scale)
        expected = law.noise * np.linalg.inv(covariance[j + 1, :, j + 1])
        assert ridge.precision[j] == pytest.approx(expected, rel=1e-7, abs=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n", [3, 150, 5000])
def test_the_spread_moves_by_one_em_step(scale: float, n: int) -> None:
    rng = np.random.default_rng(10)
    features, _, means = linear_means(rng, scale)
    tally = tally_of(rng, means, 0.3 * scale, n)
    for steps in (1, 2, 10):
        prior, _ = calibrated(features, tally, steps)
        law = Law.of(prior)
        total = SPREAD_GUESS * law.range + squares(*posterior(law, features, tally, np.ones(means.shape)))
        assert prior.scale[SPREAD] == pytest.approx(total / (N_CONTEXTS * N_FEATURES + 1), rel=1e-7)


def test_one_context_has_nobody_to_learn_from() -> None:
    rng = np.random.default_rng(11)
    features, _, means = linear_means(rng, 1.0)
    tally = tally_of(rng, means[:1], 0.3, 100)
    prior, ridge = calibrated(features, tally, 4)
    law = Law.of(prior)
    assert not ridge.offset.any()
    expected = law.noise / (law.spread + law.range) * np.eye(N_FEATURES)
    assert ridge.precision[0] == pytest.approx(expected, abs=1e-9 * expected.max())
    mean, _ = posterior(law, features, tally, np.ones((1, N_ARMS)))
    assert ridge.estimate[0, :N_ARMS] == pytest.approx(features @ mean[1])


def test_what_nobody_has_tried_is_not_certain() -> None:
    """However much is known of other arms and contexts: the common mean is not known there either."""
    rng = np.random.default_rng(12)
    features = np.eye(N_FEATURES)
    theta = rng.normal([0.5, 1.0, -0.3], 0.2, (N_CONTEXTS, N_FEATURES))
    tally = tally_of(rng, theta, 0.3, 50_000)
    tally[:, :, 2] = 0.0
    prior, ridge = calibrated(features, tally, 10)
    law = Law.of(prior)
    width = np.sqrt(law.noise) * ridge.norm[:, :N_FEATURES]
    assert width[:, 2] == pytest.approx(np.full(N_CONTEXTS, np.sqrt(law.spread + law.range)))
    assert width[:, :2].max() < 0.1 * width[:, 2].min()


@pytest.mark.parametrize("factor", [1e-4, 0.3, 1e5])
def test_the_currency_of_rewards_does_not_matter(factor: float) -> None:
    rng = np.random.default_rng(13)
    features, _, means = linear_means(rng, 1.0)
    tally = tally_of(rng, means, 0.3, 150)
    for given in (features, np.zeros((N_ARMS, 0))):
        prior, ridge = calibrated(given, tally, 5)
        in_other = tally * np.array([1.0, factor, factor**2])[:, None, None]
        other_prior, other_ridge = calibrated(given, in_other, 5)
        assert other_ridge.estimate == pytest.approx(factor * ridge.estimate, rel=1e-8, abs=1e-12 * factor)
        assert other_ridge.norm == pytest.approx(ridge.norm, rel=1e-8)
        assert other_prior.sigma == pytest.approx(factor * prior.sigma)
        assert other_prior.scale[SPREAD] == pytest.approx(factor**2 * prior.scale[SPREAD], rel=1e-8)


@pytest.mark.parametrize("factor", [1e-4, 0.3, 1e5])
def test_the_units_of_features_do_not_matter(factor: float) -> None:
    rng = np.random.default_rng(14)
    features, _, means = linear_means(rng, 1.0)
    tally = tally_of(rng, means, 0.3, 150)
    prior, ridge = calibrated(features, tally, 5)
    other_prior, other_ridge = calibrated(factor * features, tally, 5)
    assert other_ridge.estimate == pytest.approx(ridge.estimate, rel=1e-8, abs=1e-12)
    assert other_ridge.norm == pytest.approx(ridge.norm, rel=1e-8)
    assert other_prior.scale[SPREAD] == pytest.approx(prior.scale[SPREAD] / factor**2, rel=1e-8)


def test_features_of_zero_say_nothing() -> None:
    rng = np.random.default_rng(15)
    tally = tally_of(rng, np.ones((N_CONTEXTS, N_ARMS)), 0.3, 150)
    _, ridge = calibrated(np.zeros((N_ARMS, N_FEATURES)), tally, 5)
    assert not ridge.estimate.any()
    assert not ridge.norm.any()


@pytest.mark.parametrize("scale", SCALES)
def test_the_common_mean_and_spread_are_found(scale: float) -> None:
    rng = np.random.default_rng(6)
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    theta = scale * rng.normal([0.5, 1.0, -0.3], 0.2, (60, N_FEATURES))
    tally = tally_of(rng, np.asarray(theta @ features.T), 0.1 * scale, 30_000)
    prior, ridge = calibrated(features, tally, 60)
    common = features @ theta.mean(axis=0)
    assert ridge.offset / scale == pytest.approx(np.tile(common / scale, (60, 1)), abs=0.03)
    assert np.sqrt(prior.scale[SPREAD]) / scale == pytest.approx(0.2, rel=0.15)


def test_contexts_that_are_all_alike_close_the_prior_down() -> None:
    """To what its guess still counts for, and contexts share their strength: better than each on its own."""
    rng = np.random.default_rng(7)
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    means = np.tile(features @ [0.5, 1.0, -0.3], (N_CONTEXTS, 1))
    tally = tally_of(rng, means, 0.3, 600)
    prior, ridge = calibrated(features, tally, 200)
    least = SPREAD_GUESS * prior.scale[RANGE] / (N_CONTEXTS * N_FEATURES + 1)
    assert least <= prior.scale[SPREAD] < 0.1 * prior.scale[RANGE]
    own = np.divide(tally[REWARD], tally[COUNT], out=np.zeros_like(means), where=tally[COUNT] > 0.0)
    shared_error, own_error = (float(np.abs(one - means).max()) for one in (ridge.estimate[:, :N_ARMS], own))
    assert shared_error < 0.15
    assert shared_error < own_error


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("n_contexts", [1, N_CONTEXTS])
def test_without_features_cells_are_shrunk_to_their_arm(scale: float, steps: int, n_contexts: int) -> None:
    """Every arm is a world of its own, around the mean of all: there, one feature that is 1."""
    rng = np.random.default_rng(8)
    _, _, means = linear_means(rng, scale)
    tally = tally_of(rng, means[:n_contexts], 0.3 * scale, 200)
    tally[:, :, 1] = 0.0  # nobody has tried this arm,
    tally[:, 1:, 2] = 0.0  # and that one only the first
    prior, ridge = calibrated(np.zeros((N_ARMS, 0)), tally, steps)
    law = Law.of(prior, center=tally[REWARD].sum() / tally[COUNT].sum())
    assert law.range == pytest.approx(tally[SQUARE].sum() / tally[COUNT].sum())
    one = np.ones((n_contexts, 1))
    total = SPREAD_GUESS * law.range
    for a in range(N_ARMS):
        mine = tally[:, :, a : a + 1]
        mean, covariance = posterior(law, np.ones((1, 1)), mine, one)
        total += squares(mean, covariance)
        assert ridge.estimate[:, a] == pytest.approx(mean[1:, 0], abs=1e-9 * scale)
        variance = np.array([covariance[j, 0, j, 0] for j in range(1, n_contexts + 1)])
        assert law.noise * ridge.norm[:, a] ** 2 == pytest.approx(variance, rel=1e-7)
        for j in range(n_contexts):
            mean, covariance = posterior(law, np.ones((1, 1)), mine, one, left_out=j)
            assert ridge.offset[j, a] == pytest.approx(mean[j + 1, 0], abs=1e-9 * scale)
            assert ridge.precision[j, a, 0] == pytest.approx(law.noise / covariance[j + 1, 0, j + 1, 0], rel=1e-7)
    assert prior.scale[SPREAD] == pytest.approx(total / (n_contexts * N_ARMS + 1), rel=1e-7)
