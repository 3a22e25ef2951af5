"""Lines against one dense regression over all that is not known: M and what arms have of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats
from doral.estimators.levels import LevelEffects, calibrate_lines, set_lines
from doral.estimators.line import (
    Line,
    expect_line,
    lay_out,
    learn_common,
    learn_line,
    narrow_lines,
    see,
    set_arm,
    set_kin,
    start_variances,
    value_by_lines,
    weigh_arm,
)
from tests.estimators.states import new_level_effects, new_line

pytestmark = pytest.mark.usefixtures("compiled_alone")


def valued(line: Line, x: Floats) -> tuple[Floats, Floats, Floats]:
    """What all arms are worth to one with these columns, what is not known of it, and what will not be."""
    lay_out(line)
    estimate, variance, narrowed = (np.zeros(line.mean_by_column.shape[1]) for _ in range(3))
    value_by_lines(line, x, estimate, variance, narrowed)
    n_arms = len(line.mean)
    return estimate[:n_arms], variance[:n_arms], narrowed[:n_arms]


class Answers:
    """Random answers, and the posterior by the dense formula."""

    def __init__(self, rng: Any, n_arms: int, p: int, q: int, n: int, *, scale: float = 1.0) -> None:
        self.arms = np.column_stack([np.ones(n_arms), rng.normal(size=(n_arms, q - 1))])
        self.x = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
        self.arm = rng.integers(n_arms, size=n)
        self.weight = rng.choice([1.0, 0.4, 2.5], n)
        self.reward = scale * rng.normal(1.0, 1.0, n)
        self.own = scale**2 * rng.uniform(0.01, 2.0, p)
        self.common = scale**2 * rng.uniform(0.01, 2.0, (p, q))
        self.noise = scale**2 * rng.uniform(0.1, 3.0, n_arms)

    def line(self, order: Any = None) -> Line:
        line = new_line(self.arms, np.arange(self.own.size), 1.0)
        line.own[:], line.common[:], line.noise[:] = self.own, self.common, self.noise
        for i in range(len(self.x)) if order is None else order:
            weight = float(self.weight[i])
            learn_line(line, int(self.arm[i]), self.x[i], weight, weight * float(self.reward[i]))
        follow(line)
        return line

    def dense(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean and covariance of M (feature by feature), and of every w_a."""
        (n_arms, q), p = self.arms.shape, self.own.size
        size = q * p + n_arms * p
        maps = np.zeros((n_arms, p, size))  # w_a of all that is not known
        for a in range(n_arms):
            maps[a, :, : q * p] = np.kron(self.arms[a], np.eye(p))
            maps[a, :, (q + a) * p : (q + a + 1) * p] = np.eye(p)
        prior = np.concatenate([self.common.T.ravel(), np.tile(self.own, n_arms)])
        rows = np.einsum("ni,nik->nk", self.x, maps[self.arm])
        precise = self.weight / self.noise[self.arm]
        # in units of the prior's spread: well conditioned
        root = np.sqrt(prior)
        inside = np.eye(size) + (root[:, None] * (rows.T * precise) @ rows) * root
        cov = root[:, None] * np.linalg.inv(inside) * root
        mean = cov @ (rows.T @ (precise * self.reward))
        w, w_cov = maps @ mean, np.einsum("aik,kl,ajl->aij", maps, cov, maps)
        return mean[: q * p], cov[: q * p, : q * p], w, w_cov


def follow(line: Line) -> None:
    see(line)
    for a in range(line.arms.shape[0]):
        weigh_arm(line, a)
    learn_common(line)
    for a in range(line.arms.shape[0]):
        set_arm(line, a)


def no_levels(line: Line) -> LevelEffects:
    return new_level_effects(0, line.arms.shape[0], line.own.size, 1.0)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    n_arms=st.integers(1, 6),
    p=st.integers(1, 5),
    q=st.integers(1, 3),
    n=st.sampled_from([0, 1, 7, 60]),
    scale=st.sampled_from([1.0, 1e-6, 1e9]),
)
def test_lines_are_the_posterior_of_one_dense_regression(
    seed: int, n_arms: int, p: int, q: int, n: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    answers = Answers(rng, n_arms, p, q, n, scale=scale)
    line = answers.line()
    hyper, hyper_cov, mean, cov = answers.dense()
    assert line.hyper_mean == pytest.approx(hyper, rel=1e-8, abs=1e-9 * scale)
    assert line.hyper_cov == pytest.approx(hyper_cov, rel=1e-8, abs=1e-9 * scale**2)
    assert line.mean == pytest.approx(mean, rel=1e-8, abs=1e-9 * scale)
    assert line.cov == pytest.approx(cov, rel=1e-8, abs=1e-9 * scale**2)
    x = rng.normal(size=p)
    for a in range(n_arms):
        estimate, variance, _ = valued(line, x)
        assert estimate[a] == pytest.approx(float(mean[a] @ x), rel=1e-7, abs=1e-8 * scale)
        assert variance[a] == pytest.approx(float(x @ cov[a] @ x), rel=1e-7, abs=1e-8 * scale**2)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_neither_the_order_of_answers_nor_that_of_arms_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    answers = Answers(rng, 4, 3, 2, 50)
    line, shuffled = answers.line(), answers.line(rng.permutation(50))
    assert shuffled.mean == pytest.approx(line.mean, rel=1e-9, abs=1e-11)
    turn = rng.permutation(4)
    place = np.argsort(turn)
    answers.arms, answers.noise, answers.arm = answers.arms[turn], answers.noise[turn], place[answers.arm]
    other = answers.line()
    assert other.mean == pytest.approx(line.mean[turn], rel=1e-9, abs=1e-11)
    assert other.cov == pytest.approx(line.cov[turn], rel=1e-9, abs=1e-11)
    assert other.hyper_mean == pytest.approx(line.hyper_mean, rel=1e-9, abs=1e-11)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), p=st.integers(1, 5), n_open=st.sampled_from([0, 1, 30]))
def test_open_decisions_narrow_as_if_they_were_answered(seed: int, p: int, n_open: int) -> None:
    rng = np.random.default_rng(seed)
    answers = Answers(rng, 3, p, 1, 20)
    line = answers.line()
    seen = np.zeros((3, p, p))
    for _ in range(n_open):
        a, x, weight = int(rng.integers(3)), rng.normal(size=p), float(rng.random())
        x[0] = 1.0
        expect_line(line, a, x, weight)
        seen[a] += weight * np.outer(x, x)
    narrow_lines(line)
    for a in range(3):
        right = np.linalg.inv(np.linalg.inv(line.cov[a]) + seen[a] / line.noise[a])
        assert line.narrowed[a] == pytest.approx(right, rel=1e-7, abs=1e-10)
        for _ in range(5):
            x = rng.normal(size=p)
            _, variance, narrowed = valued(line, x)
            assert narrowed[a] <= variance[a] * (1.0 + 1e-9)


def simulated(
    rng: Any, *, n_arms: int, n: int, own: Floats, common: Floats, noise: float, q: int = 1
) -> tuple[Line, Floats]:
    """A line with answers of the model, its scale set; and the truth."""
    p = own.size
    arms = np.column_stack([np.ones(n_arms), rng.normal(size=(n_arms, q - 1))])
    shared = rng.normal(size=(p, q)) * np.sqrt(common)
    w = arms @ shared.T + rng.normal(size=(n_arms, p)) * np.sqrt(own)
    line = new_line(arms, np.arange(p), 1.0)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
    arm = rng.integers(n_arms, size=n)
    reward = np.einsum("ni,ni->n", x, w[arm]) + np.sqrt(noise) * rng.normal(size=n)
    for a in range(n_arms):
        mine = arm == a
        line.gram[a], line.moment[a] = x[mine].T @ x[mine], x[mine].T @ reward[mine]
    line.noise[:] = noise
    line.scale[0] = float((reward**2).mean())
    start_variances(line)
    return line, w


def test_variances_come_near_the_truth() -> None:
    """With 200 arms, a variance is known to about 10%; noise columns go to nothing, and leave it again."""
    own, common = np.array([1.0, 0.25, 0.0, 0.0]), np.array([[4.0], [1.0], [1.0], [0.0]])
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        line, w = simulated(rng, n_arms=200, n=20_000, own=own, common=common, noise=1.0)
        line.common[0, 0] = line.scale[0]
        calibrate_lines(line, no_levels(line), True, 40)
        found.append(line.own.copy())
        assert np.sqrt(((line.mean - w) ** 2).mean(axis=0)).max() < 0.11  # an error of 1 / sqrt(100) at the most
    mean = np.mean(found, axis=0)
    error = np.sqrt(2.0 / 200 / 6)
    assert mean[0] == pytest.approx(1.0, abs=4 * error * 1.01)
    assert mean[1] == pytest.approx(0.25, abs=4 * error * 0.26)
    assert mean[2] < 0.002
    assert mean[3] < 0.002


def test_a_variance_that_was_nothing_comes_back() -> None:
    rng = np.random.default_rng(3)
    own = np.array([1.0, 0.0])
    line, _ = simulated(rng, n_arms=100, n=10_000, own=own, common=np.array([[1.0], [0.0]]), noise=1.0)
    levels = no_levels(line)
    calibrate_lines(line, levels, True, 60)
    assert line.own[1] < 0.003
    slopes = rng.normal(size=100)
    for a in range(100):  # the world changes: what was learned so far is forgotten, and slopes differ
        x = np.column_stack([np.ones(100), rng.normal(size=100)])
        line.gram[a], line.moment[a] = x.T @ x, x.T @ (x[:, 1] * slopes[a] + rng.normal(size=100))
    calibrate_lines(line, levels, True, 60)
    assert line.own[1] == pytest.approx(1.0, abs=0.45)


def test_units_of_a_feature_of_an_arm_do_not_count_after_scaling() -> None:
    """What is said of a person in other units, with its variance in those, is the same."""
    rng = np.random.default_rng(0)
    answers = Answers(rng, 4, 3, 1, 60)
    line = answers.line()
    units = np.array([1.0, 365.25, 1e-3])
    answers.x, answers.own, answers.common = (
        answers.x * units,
        answers.own / units**2,
        answers.common / units[:, None] ** 2,
    )
    other = answers.line()
    assert other.mean * units == pytest.approx(line.mean, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_kin_of_equal_classes(n_classes: int) -> None:
    """Whoever is in one of J classes of one size, of which nothing is known, is kin to a share of 1 / J."""
    line = new_line(np.ones((3, 1)), np.arange(n_classes), 1.0)
    for i in range(7 * n_classes):
        x = np.eye(n_classes)[i % n_classes]
        line.crowd[:] += np.outer(x, x)
    line.crowd[0, 0] = max(line.crowd[0, 0], 7.0)
    set_kin(line)
    assert line.kin[0] == pytest.approx(1.0 / n_classes)


def test_lines_that_follow_later_are_those_of_the_sums() -> None:
    """`set_lines` is exact for what arms were thought to share when it was last learned."""
    rng = np.random.default_rng(5)
    answers = Answers(rng, 3, 2, 1, 30)
    line = answers.line()
    before = line.mean.copy()
    set_lines(line, no_levels(line))
    assert line.mean == pytest.approx(before, rel=1e-12)
