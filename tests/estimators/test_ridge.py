"""Rank-one updates against the inverse of the sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats, Ints
from doral._jit import jit
from doral.estimators.ridge import REFACTOR_EVERY, Ridge, new_ridge, refactor, update

PENALTY = 0.7


def check(ridge: Ridge, context: int, features: Floats, weight: Floats, target: Floats, tolerance: float) -> None:
    """estimate = <theta, f_a> and norm = ||f_a|| in V^-1, with V and G from their definitions."""
    v = PENALTY * np.eye(features.shape[1]) + (features.T * weight) @ features
    inverse = np.linalg.inv(v)
    theta = inverse @ (features.T @ target)
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
    ridge = new_ridge(features, n_contexts, PENALTY)
    weight, target = np.zeros((n_contexts, n_arms)), np.zeros((n_contexts, n_arms))
    for _ in range(n_updates):
        j, a = int(rng.integers(n_contexts)), int(rng.integers(n_arms))
        w = float(rng.choice([0.0, 1.0, 0.3]))  # an answer to an open pull, a pull or answer, a scaled one
        r = float(rng.normal())
        update(ridge, j, a, w, r, PENALTY)
        weight[j, a] += w
        target[j, a] += r
    for j in range(n_contexts):
        check(ridge, j, features, weight[j], target[j], 1e-9)
        refactor(ridge, j, PENALTY)
        check(ridge, j, features, weight[j], target[j], 1e-9)


@jit
def _many_updates(ridge: Ridge, arms: Ints, rewards: Floats, rounds: int, penalty: float) -> None:
    for _ in range(rounds):
        for i in range(arms.size):
            update(ridge, 0, arms[i], 1.0, rewards[i], penalty)


def test_millions_of_updates_do_not_drift() -> None:
    rng = np.random.default_rng(1)
    features = rng.uniform(0.0, 1.0, (10, 5))
    ridge = new_ridge(features, 1, PENALTY)
    arms, rewards = rng.integers(0, 10, 1000), rng.normal(0.5, 1.0, 1000)
    repeats = 2000
    _many_updates(ridge, arms, rewards, repeats, PENALTY)
    assert 0 <= ridge.updates[0] < REFACTOR_EVERY
    weight = repeats * np.bincount(arms, minlength=10).astype(np.float64)
    target = repeats * np.bincount(arms, weights=rewards, minlength=10).astype(np.float64)
    check(ridge, 0, features, weight, target, 1e-9)


def test_features_that_do_not_span_the_space() -> None:
    """Equal and zero features: V stays invertible through the penalty alone."""
    features = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    ridge = new_ridge(features, 1, PENALTY)
    for _ in range(REFACTOR_EVERY + 10):
        update(ridge, 0, 0, 1.0, 1.0, PENALTY)
    n = REFACTOR_EVERY + 10.0
    check(ridge, 0, features, np.array([n, 0.0, 0.0]), np.array([n, 0.0, 0.0]), 1e-9)
    assert ridge.norm[0, 2] == 0.0
