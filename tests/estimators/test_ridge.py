"""Rank-one updates against the inverse of the sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats, Ints
from doral.compiled import kernel
from doral.estimators.ridge import REFACTOR_EVERY, Ridge, add_weight, refactor, update
from tests.estimators.ridges import first_ridge

pytestmark = pytest.mark.usefixtures("compiled_alone")

PENALTY = 0.7


def check(
    ridge: Ridge,
    context: int,
    features: Floats,
    weight: Floats,
    target: Floats,
    tolerance: float,
    precision: Floats | None = None,
    mean: Floats | None = None,
) -> None:
    """estimate = <theta, f_a> and norm = ||f_a|| in V^-1, with V and G from their definitions."""
    prior = PENALTY * np.eye(features.shape[1]) if precision is None else precision
    inverse = np.linalg.inv(prior + (features.T * weight) @ features)
    theta = inverse @ (features.T @ target + (0.0 if mean is None else prior @ mean))
    size = 1.0 + np.abs(features @ theta).max()
    n_arms = features.shape[0]
    assert ridge.estimate[context, :n_arms] == pytest.approx(features @ theta, abs=tolerance * size)
    norm = np.sqrt(np.einsum("ai,ij,aj->a", features, inverse, features))
    assert ridge.norm[context, :n_arms] == pytest.approx(norm, abs=tolerance)
    assert not ridge.norm[context, n_arms:].any()  # the padding stays empty


@settings(max_examples=40)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5)),
    seed=st.integers(0, 10**6),
    n_updates=st.sampled_from([0, 1, 50, 6000]),
)
def test_updates_equal_the_inverse(sizes: tuple[int, int, int], seed: int, n_updates: int) -> None:
    n_contexts, n_arms, n_features = sizes
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, (n_arms, n_features))
    ridge = first_ridge(features, n_contexts, PENALTY)
    weight, target = np.zeros((n_contexts, n_arms)), np.zeros((n_contexts, n_arms))
    for _ in range(n_updates):
        j, a = int(rng.integers(n_contexts)), int(rng.integers(n_arms))
        w = float(rng.choice([0.0, 1.0, 0.3]))  # an answer to an open pull, a pull or answer, a scaled one
        r = float(rng.normal())
        update(ridge, j, a, w, r)
        weight[j, a] += w
        target[j, a] += r
    for j in range(n_contexts):
        check(ridge, j, features, weight[j], target[j], 1e-9)
        refactor(ridge, j)
        check(ridge, j, features, weight[j], target[j], 1e-9)


@settings(max_examples=40)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5)),
    copies=st.integers(1, 2),
    seed=st.integers(0, 10**6),
    n_updates=st.sampled_from([0, 1, 50, 6000]),
)
def test_any_prior(sizes: tuple[int, int, int], copies: int, seed: int, n_updates: int) -> None:
    """A prior with a mean and a full precision, of each context its own; further rows of a context share it."""
    n_contexts, n_arms, n_features = sizes
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, (n_arms, n_features))
    ridge = first_ridge(features, n_contexts, PENALTY, copies=copies)
    roots = rng.normal(size=(n_contexts, n_features, n_features))
    precision = roots @ roots.transpose(0, 2, 1) + 0.2 * np.eye(n_features)
    mean = rng.normal(size=(n_contexts, n_features))
    ridge.precision[:], ridge.offset[:] = precision, mean @ features.T
    n_rows = copies * n_contexts
    for row in range(n_rows):
        refactor(ridge, row)
    weight, target = np.zeros((n_rows, n_arms)), np.zeros((n_rows, n_arms))
    for _ in range(n_updates):
        row, a = int(rng.integers(n_rows)), int(rng.integers(n_arms))
        w, r = float(rng.choice([0.0, 1.0, 0.3])), float(rng.normal())
        update(ridge, row, a, w, r)
        weight[row, a] += w
        target[row, a] += r
    for row in range(n_rows):
        j = row % n_contexts
        check(ridge, row, features, weight[row], target[row], 1e-9, precision[j], mean[j])
        refactor(ridge, row)
        check(ridge, row, features, weight[row], target[row], 1e-9, precision[j], mean[j])


def test_without_features_cells_stand_for_themselves() -> None:
    rng = np.random.default_rng(2)
    ridge = first_ridge(np.zeros((4, 0)), 2, PENALTY, copies=2)
    precision, mean = rng.uniform(0.1, 3.0, (2, 4)), rng.normal(size=(2, 4))
    ridge.precision[:, :, 0], ridge.offset[:] = precision, mean
    for row in range(4):
        refactor(ridge, row)
    weight, target = np.zeros((4, 4)), np.zeros((4, 4))
    for _ in range(300):
        row, a, w, r = int(rng.integers(4)), int(rng.integers(4)), float(rng.choice([0.0, 1.0])), float(rng.normal())
        update(ridge, row, a, w, r)
        weight[row, a] += w
        target[row, a] += r
    total = weight + np.tile(precision, (2, 1))
    assert ridge.estimate[:, :4] == pytest.approx((target + np.tile(precision * mean, (2, 1))) / total)
    assert ridge.norm[:, :4] == pytest.approx(np.sqrt(1.0 / total))


@kernel
def _change_sums(ridge: Ridge, arms: Ints, weights: Floats) -> None:
    for i in range(arms.size):
        add_weight(ridge, 0, arms[i], weights[i])


@pytest.mark.parametrize("n_features", [0, 3])
def test_a_changed_sum_is_in_the_norms_at_once_or_after_a_rebuild(n_features: int) -> None:
    """Cells are worked out anew; with features the norms stand for the old sums until all is rebuilt."""
    features = np.random.default_rng(3).uniform(0.0, 1.0, (4, n_features))
    ridge, other = (first_ridge(features, 1, PENALTY) for _ in range(2))
    for a in (0, 1, 1, 2):
        update(ridge, 0, a, 1.0, 0.0)
    before = ridge.norm.copy()
    _change_sums(ridge, np.array([1, 2]), np.array([-0.6, -5.0]))  # never below zero
    assert ridge.weight[0].tolist() == pytest.approx([1.0, 1.4, 0.0, 0.0])
    assert (ridge.norm == before).all() == (n_features > 0)
    refactor(ridge, 0)
    update(other, 0, 0, 1.0, 0.0)
    update(other, 0, 1, 1.4, 0.0)
    assert ridge.norm == pytest.approx(other.norm)


@kernel
def _many_updates(ridge: Ridge, arms: Ints, rewards: Floats, rounds: int) -> None:
    for _ in range(rounds):
        for i in range(arms.size):
            update(ridge, 0, arms[i], 1.0, rewards[i])


def test_millions_of_updates_do_not_drift() -> None:
    rng = np.random.default_rng(1)
    features = rng.uniform(0.0, 1.0, (10, 5))
    ridge = first_ridge(features, 1, PENALTY)
    arms, rewards = rng.integers(0, 10, 1000), rng.normal(0.5, 1.0, 1000)
    repeats = 2000
    _many_updates(ridge, arms, rewards, repeats)
    assert 0 <= ridge.updates[0] < REFACTOR_EVERY
    weight = repeats * np.bincount(arms, minlength=10).astype(np.float64)
    target = repeats * np.bincount(arms, weights=rewards, minlength=10).astype(np.float64)
    check(ridge, 0, features, weight, target, 1e-9)


def test_features_that_do_not_span_the_space() -> None:
    """Equal and zero features: V stays invertible through the penalty alone."""
    features = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    ridge = first_ridge(features, 1, PENALTY)
    for _ in range(REFACTOR_EVERY + 10):
        update(ridge, 0, 0, 1.0, 1.0)
    n = REFACTOR_EVERY + 10.0
    check(ridge, 0, features, np.array([n, 0.0, 0.0]), np.array([n, 0.0, 0.0]), 1e-9)
    assert ridge.norm[0, 2] == 0.0
