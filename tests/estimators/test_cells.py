"""Cells that deviate from the line: the exact posterior, and variances that find out how wrong features are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats
from doral.estimators.cells import calibrate_cells
from doral.estimators.ridge import COUNT, REWARD, SQUARE, Ridge, draw, refactor, update
from doral.estimators.shrinkage import DEVIATION, EFFECT, NOISE, SPREAD_GUESS, SUCCESS, Prior, calibrate
from tests.estimators.ridges import first_ridge
from tests.estimators.states import new_prior, new_ridge

pytestmark = pytest.mark.usefixtures("compiled_alone")
N_CONTEXTS, N_ARMS, N_FEATURES = 10, 12, 3


# --- the posterior --------------------------------------------------------------------


def joint_posterior(
    features: Floats, precision: Floats, offset: Floats, kappa: Floats, phi: Floats, weight: Floats, target: Floats
) -> tuple[Floats, Floats]:
    """Means and standard deviations of the cells of a context, from their joint law, in units of the noise.

    A cell is offset + <theta, f_a> + deviation; what is seen of it is its mean reward, with an error of phi / weight.
    """
    covariance = features @ np.linalg.inv(precision) @ features.T + np.diag(kappa)
    seen = weight > 0.0
    gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)] + np.diag(phi[seen] / weight[seen]))
    mean = offset + gain @ (target[seen] / weight[seen] - offset[seen])
    return mean, np.sqrt(np.diag(covariance - gain @ covariance[seen]))


def a_ridge(rng: np.random.Generator, n_contexts: int, n_arms: int, n_features: int, copies: int) -> Ridge:
    """With a prior, deviations and noisiness of its own in every context."""
    features = rng.uniform(-1.0, 1.0, (n_arms, n_features))
    ridge = new_ridge(features, n_contexts, 1.0, copies=copies, deviates=True)
    roots = rng.normal(size=(n_contexts, n_features, n_features))
    ridge.precision[:] = roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(n_features)
    ridge.offset[:] = rng.normal(size=(n_contexts, n_arms))
    ridge.deviation[:] = rng.choice([0.0, 0.01, 1.0, 30.0], (n_contexts, n_arms))
    ridge.noisiness[:] = rng.choice([0.02, 1.0, 5.0], (n_contexts, n_arms))
    for row in range(n_contexts * copies):
        refactor(ridge, row)
    return ridge


@settings(max_examples=40)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5)),
    copies=st.integers(1, 2),
    seed=st.integers(0, 10**6),
    n_updates=st.sampled_from([0, 1, 50, 6000]),
)
def test_estimates_and_norms_are_the_joint_posterior(
    sizes: tuple[int, int, int], copies: int, seed: int, n_updates: int
) -> None:
    """After updates one by one, and again when all is rebuilt from the sums."""
    rng = np.random.default_rng(seed)
    ridge = a_ridge(rng, *sizes, copies)
    n_contexts, n_arms, _ = sizes
    for _ in range(n_updates):
        row, arm = int(rng.integers(n_contexts * copies)), int(rng.integers(n_arms))
        weight = float(rng.choice([1.0, 0.3]))
        update(ridge, row, arm, weight, weight * float(rng.normal()))
    for rebuilt in (False, True):
        for row in range(n_contexts * copies):
            if rebuilt:
                refactor(ridge, row)
            j = row % n_contexts
            mean, sd = joint_posterior(
                ridge.features,
                ridge.precision[j],
                ridge.offset[j],
                ridge.deviation[j],
                ridge.noisiness[j],
                ridge.weight[row],
                ridge.target[row],
            )
            assert ridge.estimate[row, :n_arms] == pytest.approx(mean, abs=1e-8 * (1.0 + np.abs(mean).max()))
            assert ridge.norm[row, :n_arms] == pytest.approx(sd, abs=1e-7)
            assert not ridge.norm[row, n_arms:].any()  # the padding stays empty


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_updates=st.sampled_from([0, 3, 200]))
def test_without_deviations_it_is_the_plain_ridge(seed: int, n_updates: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, (5, 3))
    plain, deviating = first_ridge(features, 2, 0.7), new_ridge(features, 2, 0.7, deviates=True)
    deviating.deviation[:] = 0.0
    for row in range(2):
        refactor(deviating, row)
    for _ in range(n_updates):
        row, arm, weight, target = int(rng.integers(2)), int(rng.integers(5)), float(rng.random()), float(rng.normal())
        for ridge in (plain, deviating):
            update(ridge, row, arm, weight, target)
    assert deviating.estimate == pytest.approx(plain.estimate, abs=1e-10)
    assert deviating.norm == pytest.approx(plain.norm, abs=1e-10)


def test_draws_are_as_wide_as_the_posterior_and_hang_together_as_it_does() -> None:
    rng = np.random.default_rng(2)
    ridge = a_ridge(rng, 1, 4, 2, 1)
    for _ in range(12):
        update(ridge, 0, int(rng.integers(3)), 1.0, float(rng.normal()))
    draws = np.zeros((4000, 4))
    for i in range(draws.shape[0]):
        draw(ridge, 0, np.uint64(3), np.uint64(0), 1 + i // 4, i % 4)  # four in every round
        draws[i] = ridge.shadow[:4]
    covariance = ridge.features @ np.linalg.inv(ridge.precision[0]) @ ridge.features.T + np.diag(ridge.deviation[0])
    seen = ridge.weight[0] > 0.0
    error = covariance[np.ix_(seen, seen)] + np.diag(ridge.noisiness[0, seen] / ridge.weight[0, seen])
    posterior = covariance - covariance[:, seen] @ np.linalg.solve(error, covariance[seen])
    scale = np.sqrt(np.outer(np.diag(posterior), np.diag(posterior)))
    assert np.abs(np.cov(draws.T) - posterior).max() < 6.0 * (scale * math.sqrt(2.0 / draws.shape[0])).max()
    assert np.abs(draws.mean(axis=0) / np.sqrt(np.diag(posterior))).max() < 4.0 / math.sqrt(draws.shape[0])


# --- variances --------------------------------------------------------------------


def tally_of(rng: np.random.Generator, means: Floats, sd: float, n: int) -> Floats:
    """Sums of n rewards in every cell."""
    rewards = rng.normal(means[..., None], sd, (*means.shape, n))
    return np.array([np.full(means.shape, float(n)), rewards.sum(axis=2), (rewards**2).sum(axis=2)])


def calibrated(features: Floats, tally: Floats, *, steps: int = 40, deviates: bool = True) -> tuple[Prior, Ridge]:
    """After so many calibrations with the same data."""
    n_contexts, n_arms = tally.shape[1:]
    prior = new_prior(n_contexts, features.shape[1], 1.0)
    ridge = new_ridge(features, n_contexts, 1.0, deviates=deviates)
    for row in range(n_contexts):
        refactor(ridge, row)
    for _ in range(steps):
        (calibrate_cells if deviates else calibrate)(prior, ridge, tally, np.ones((n_contexts, n_arms)))
    return prior, ridge


def world(rng: np.random.Generator, *, effect: float, deviation: float) -> tuple[Floats, Floats]:
    """Features and means, with these standard deviations of effects and of deviations."""
    features = rng.uniform(0.0, 1.0, (N_ARMS, N_FEATURES))
    theta = rng.normal([0.5, 1.0, -0.3], 0.2, (N_CONTEXTS, N_FEATURES))
    means = theta @ features.T + effect * rng.normal(size=N_ARMS)
    return features, np.asarray(means + deviation * rng.normal(size=means.shape))


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("effect", "deviation"), [(0.0, 0.0), (0.0, 0.3), (0.4, 0.0), (0.4, 0.3)])
def test_variances_are_found(effect: float, deviation: float, scale: float) -> None:
    """Over worlds, in which one observation of the guess and the cut at 0 count for little; at any scale of rewards."""
    found, guesses = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        features, means = world(rng, effect=effect, deviation=deviation)
        tally = tally_of(rng, scale * means, scale * 0.5, 40)
        prior, _ = calibrated(features, tally)
        found.append(prior.scale[[DEVIATION, EFFECT]] / scale**2)
        guesses.append(SPREAD_GUESS * tally[SQUARE].sum() / tally[COUNT].sum() / scale**2)
    cells, arms = np.mean(found, axis=0)
    error_of_mean = 0.5**2 / 40
    # 120 cells and 12 arms in each of 12 worlds; a variance has a relative error of sqrt(2 / n). Arms are thought to
    # deviate as far as what they bring, which these do not: with effects, that adds as much again.
    rel = 4.0 * math.sqrt(2.0 / 1000) * (1.0 if effect == 0.0 else 1.5)
    assert cells == pytest.approx(deviation**2, rel=rel, abs=error_of_mean / 3)
    if effect == 0.0:
        assert arms < 0.15 * np.mean(guesses)
    else:
        assert arms == pytest.approx(effect**2, rel=4.0 * math.sqrt(2.0 / 100), abs=0.02)


def test_wrong_features_are_found_out_and_right_ones_stay() -> None:
    """Features that say nothing mislead whoever believes them; where they are right, doubt costs little."""
    misled, warned, believed, doubted = (np.zeros(8) for _ in range(4))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        features, right = world(rng, effect=0.0, deviation=0.0)
        wrong = rng.normal(0.5, 0.4, N_ARMS) + rng.normal(0.0, 0.2, right.shape)
        for means, plain, cells in ((wrong, misled, warned), (right, believed, doubted)):
            tally = tally_of(rng, means, 0.5, 30)
            for found, deviates in ((plain, False), (cells, True)):
                _, ridge = calibrated(features, tally, deviates=deviates)
                found[seed] = np.sqrt(np.mean((ridge.estimate[:, :N_ARMS] - means) ** 2))
    assert warned.mean() < 0.4 * misled.mean()
    assert doubted.mean() < 1.25 * believed.mean()


def test_an_effect_is_what_the_other_contexts_say() -> None:
    """An arm that a context has not tried is thought to be as far beyond its features as it is elsewhere."""
    rng = np.random.default_rng(1)
    features, means = world(rng, effect=0.5, deviation=0.05)
    tally = tally_of(rng, means, 0.3, 40)
    tally[:, 0, :] = 0.0
    _, ridge = calibrated(features, tally)
    _, plain = calibrated(features, tally, deviates=False)
    effects, misses = (np.abs(one.estimate[0, :N_ARMS] - means[0]).mean() for one in (ridge, plain))
    assert effects < 0.6 * misses
    assert (ridge.norm[0, :N_ARMS] > ridge.norm[1, :N_ARMS]).all()


def test_deviations_of_an_arm_are_as_large_as_what_it_brings() -> None:
    """Relative to the average arm, and half of each is that average."""
    rng = np.random.default_rng(3)
    features, means = world(rng, effect=0.3, deviation=0.2)
    means[:, 0], means[:, 1] = 5.0, 0.0
    tally = tally_of(rng, means, 0.5, 40)
    tally[:, :, 2] = 0.0  # no answers: like the average
    prior, ridge = calibrated(features, tally, steps=1)
    noise, n = prior.scale[NOISE], tally[COUNT].sum(axis=0)
    tried = n > 0.0
    size = (tally[REWARD].sum(axis=0)[tried] / n[tried]) ** 2 + noise / n[tried]
    expected = np.ones(N_ARMS)
    expected[tried] = (size / size.mean() + 1.0) / 2.0
    assert ridge.reach**2 == pytest.approx(expected)
    assert (ridge.deviation[:, 0] > 3.0 * ridge.deviation[:, 1]).all()


@pytest.mark.parametrize("n", [1, 5, 400])
@pytest.mark.parametrize("n_contexts", [2, 3, 10])
def test_effects_converge(n: int, n_contexts: int) -> None:
    """With one feature and two arms the line takes nearly all of what a cell says."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        features = rng.uniform(0.1, 1.0, (2, 1))
        tally = tally_of(rng, rng.normal(0.5, 0.3, (n_contexts, 2)), 0.5, n)
        largest = np.abs(tally[REWARD] / n).max()
        last = [calibrated(features, tally, steps=steps)[1] for steps in (200, 201)]
        for ridge in last:
            assert np.abs(ridge.estimate[:, :2]).max() < 3.0 * largest
            assert np.abs(ridge.effect).max() < 3.0 * largest
        assert last[1].estimate == pytest.approx(last[0].estimate, abs=0.01 * largest)


# --- noise that follows the mean --------------------------------------------------------------------


def conversions(rng: np.random.Generator, rates: Floats, success: float, n: int) -> Floats:
    wins = rng.binomial(n, rates).astype(np.float64)
    return np.array([np.full(rates.shape, float(n)), success * wins, success**2 * wins])


@pytest.mark.parametrize("success", [0.02, 1.0, 30.0])
def test_the_noise_of_conversions_follows_their_mean(success: float) -> None:
    rng = np.random.default_rng(4)
    rates = rng.uniform(0.02, 0.6, (N_CONTEXTS, N_ARMS))
    prior, ridge = calibrated(np.ones((N_ARMS, 1)), conversions(rng, rates, success, 4000))
    assert prior.scale[SUCCESS] == pytest.approx(success)
    noise = ridge.noisiness * prior.scale[NOISE]
    assert noise == pytest.approx(success**2 * rates * (1.0 - rates), rel=0.25)
    assert prior.sigma == pytest.approx(np.full(N_CONTEXTS, math.sqrt(prior.scale[NOISE])))


@pytest.mark.parametrize("common", [0.03, 0.5, 0.95])
def test_few_answers_do_not_make_a_cell_quiet(common: float) -> None:
    """Without a success, or a failure, there still is noise: answers that could have shown four of the rarer outcome at
    the common rate speak for that, as many at the arm's for a cell. It is less than elsewhere all the same.
    """
    rates = np.full((N_CONTEXTS, N_ARMS), common)
    rates[0, 0] = 0.0 if common <= 0.5 else 1.0
    tally = conversions(np.random.default_rng(5), rates, 1.0, 50)
    common = float(tally[REWARD].sum() / tally[COUNT].sum())
    prior, ridge = calibrated(np.ones((N_ARMS, 1)), tally)
    noise = ridge.noisiness * prior.scale[NOISE]
    weight = 4.0 / min(common, 1.0 - common)
    of_arm = (tally[REWARD, :, 0].sum() + weight * common) / (tally[COUNT, :, 0].sum() + weight)
    weight = 4.0 / min(of_arm, 1.0 - of_arm)
    mean = (50 * rates[0, 0] + weight * of_arm) / (50 + weight)
    assert noise[0, 0] >= 0.999 * mean * (1.0 - mean)  # its estimate is drawn to the others
    assert noise[0, 0] < common * (1.0 - common)


@pytest.mark.parametrize("reward", [18.26, 0.1, 1.0 / 3.0, 7.7])
def test_answers_that_are_all_alike_have_no_failures_however_sums_are_rounded(reward: float) -> None:
    for n in range(1, 60):
        tally = np.zeros((3, N_CONTEXTS, N_ARMS))
        tally[COUNT] = n
        tally[REWARD], tally[SQUARE] = sum([reward] * n), sum([reward * reward] * n)
        tally[:, 1:] = 0.0
        prior, ridge = calibrated(np.ones((N_ARMS, 1)), tally)
        assert (ridge.noisiness == 1.0).all()
        assert np.isfinite(ridge.estimate).all()
        assert np.isfinite(prior.scale).all()


@pytest.mark.parametrize("rewards", ["normal", "all alike", "one other", "losses"])
def test_other_rewards_are_equally_noisy(rewards: str) -> None:
    rng = np.random.default_rng(6)
    tally = conversions(rng, np.full((N_CONTEXTS, N_ARMS), 0.4), 1.0, 50)
    if rewards == "normal":
        tally = tally_of(rng, np.full((N_CONTEXTS, N_ARMS), 0.4), 0.3, 50)
    elif rewards == "all alike":
        tally[REWARD] = tally[SQUARE] = tally[COUNT]
    elif rewards == "one other":
        tally[REWARD, 2, 3] += 0.5
        tally[SQUARE, 2, 3] += 0.25
    else:
        tally[REWARD] *= -1.0
    prior, ridge = calibrated(np.ones((N_ARMS, 1)), tally)
    assert prior.scale[SUCCESS] == 0.0
    assert (ridge.noisiness == 1.0).all()
