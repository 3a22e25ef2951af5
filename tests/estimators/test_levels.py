"""Effects of levels against the dense posterior of the mixed model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats
from doral.estimators.levels import (
    NO_LEVEL,
    LevelEffects,
    add_level,
    are_full,
    calibrate_lines,
    fade_levels,
    find_level,
    grown_levels,
    learn_levels,
    level_mean,
    level_variance,
    set_levels,
    set_lines,
    set_own_levels,
)
from doral.estimators.line import Line, learn_line, start_variances
from tests.estimators.states import new_level_effects, new_line

pytestmark = pytest.mark.usefixtures("compiled_alone")


def with_levels(n_levels: int, n_arms: int, p: int) -> LevelEffects:
    levels = new_level_effects(1, n_arms, p, 1.0)
    for code in range(n_levels):
        while are_full(levels):
            levels = grown_levels(levels)
        assert add_level(levels, 0, code) == code
    return levels


class Data:
    """Answers of people who are of one category."""

    def __init__(self, rng: Any, n_arms: int, p: int, n_levels: int, n: int) -> None:
        self.x = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
        self.arm, self.level = rng.integers(n_arms, size=n), rng.integers(n_levels, size=n)
        self.reward = rng.normal(1.0, 1.0, n) + self.level
        self.line = new_line(np.ones((n_arms, 1)), np.arange(p), 1.0)
        self.line.own[:], self.line.noise[:] = rng.uniform(0.2, 2.0, p), rng.uniform(0.2, 2.0, n_arms)
        self.levels = with_levels(n_levels, n_arms, p)
        self.levels.common[0], self.levels.own[0] = rng.uniform(0.1, 2.0), rng.uniform(0.1, 2.0)
        for i in range(n):
            a, reward = int(self.arm[i]), float(self.reward[i])
            learn_line(self.line, a, self.x[i], 1.0, reward)
            learn_levels(self.levels, self.level[i : i + 1], a, self.x[i], 1.0, reward)

    def effects(self) -> tuple[Floats, Floats]:
        """u + v of every level and arm, and what is not known of it, for the lines as they are."""
        n_levels, n_arms = int(self.levels.n[0]), self.line.arms.shape[0]
        prior = np.kron(np.eye(n_levels), self.levels.common[0] + self.levels.own[0] * np.eye(n_arms))
        rows = np.zeros((len(self.x), n_levels * n_arms))
        rows[np.arange(len(self.x)), self.level * n_arms + self.arm] = 1.0
        precise = 1.0 / self.line.noise[self.arm]
        cov = np.linalg.inv(np.linalg.inv(prior) + (rows.T * precise) @ rows)
        above = self.reward - np.einsum("ni,ni->n", self.x, self.line.mean[self.arm])
        mean = cov @ (rows.T @ (precise * above))
        return mean.reshape(n_levels, n_arms), np.diag(cov).reshape(n_levels, n_arms)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n_arms=st.integers(1, 4),
    p=st.integers(1, 3),
    n_levels=st.integers(1, 6),
    n=st.sampled_from([1, 5, 80]),
)
def test_effects_are_exact_given_the_line(seed: int, n_arms: int, p: int, n_levels: int, n: int) -> None:
    data = Data(np.random.default_rng(seed), n_arms, p, n_levels, n)
    set_lines(data.line, data.levels)
    mean, variance = data.effects()
    assert data.levels.mean[:n_levels] == pytest.approx(mean, rel=1e-8, abs=1e-10)
    assert data.levels.variance[:n_levels] == pytest.approx(variance, rel=1e-8, abs=1e-10)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n_arms=st.integers(1, 3), p=st.integers(1, 3), n_levels=st.integers(1, 6))
def test_the_line_is_learned_as_if_levels_had_effects_that_nobody_knows(
    seed: int, n_arms: int, p: int, n_levels: int
) -> None:
    """Answers of an arm at one level share an error of variance s + d: the line is their generalised regression."""
    data = Data(np.random.default_rng(seed), n_arms, p, n_levels, 60)
    set_lines(data.line, data.levels)
    for a in range(n_arms):
        mine = data.arm == a
        x, level, reward = data.x[mine], data.level[mine], data.reward[mine]
        shared = (data.levels.common[0] + data.levels.own[0]) * (level[:, None] == level[None, :])
        inverse = np.linalg.inv(data.line.noise[a] * np.eye(len(x)) + shared)
        cov = np.linalg.inv(np.diag(1.0 / data.line.own) + x.T @ inverse @ x)
        assert data.line.cov[a] == pytest.approx(cov, rel=1e-7, abs=1e-10)
        assert data.line.mean[a] == pytest.approx(cov @ (x.T @ (inverse @ reward)), rel=1e-7, abs=1e-9)


def test_one_who_was_never_seen_is_as_all_are() -> None:
    data = Data(np.random.default_rng(1), 2, 2, 3, 50)
    set_lines(data.line, data.levels)
    nobody = np.array([NO_LEVEL])
    prior = data.levels.common[0] + data.levels.own[0]
    assert level_mean(data.levels, nobody, 0) == 0.0
    assert level_variance(data.levels, nobody, 1) == prior
    assert find_level(data.levels, 0, 77) == NO_LEVEL
    new = add_level(data.levels, 0, 77)
    own = np.array([new])
    assert level_mean(data.levels, own, 0) == 0.0
    assert level_variance(data.levels, own, 1) == pytest.approx(prior)
    set_levels(data.levels, data.line)
    assert level_variance(data.levels, own, 1) == pytest.approx(prior)


def test_missing_and_unknown_levels_are_none() -> None:
    levels = new_level_effects(2, 1, 1, 1.0)
    own = np.zeros(2, dtype=np.int64)
    columns = np.array([NO_LEVEL, 1])
    set_own_levels(levels, columns, 4, np.array([9.0, np.nan]), own, True)
    assert own.tolist() == [0, NO_LEVEL]
    set_own_levels(levels, columns, 3, np.array([9.0, 3.0]), own, False)
    assert own.tolist() == [NO_LEVEL, NO_LEVEL]
    set_own_levels(levels, columns, 4, np.array([9.0, 4.0]), own, True)
    assert own.tolist() == [0, 1]  # the same code in another category is another level
    assert levels.came[:2].tolist() == [2.0, 1.0]


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.sampled_from([1, 40, 3000]))
def test_a_table_that_grows_finds_all_levels(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    levels, known = new_level_effects(3, 1, 1, 1.0), dict[tuple[int, int], int]()
    for _ in range(n):
        key = int(rng.integers(3)), int(rng.integers(10 ** int(rng.integers(1, 7))))
        if are_full(levels):
            levels = grown_levels(levels)
        known.setdefault(key, len(known))
        assert add_level(levels, *key) == known[key]
    for (category, code), place in known.items():
        assert find_level(levels, category, code) == place
        assert levels.category[place] == category
    assert levels.n[0] == len(known)


def test_growth_changes_nothing() -> None:
    data = Data(np.random.default_rng(2), 3, 2, 12, 200)
    set_lines(data.line, data.levels)
    n, larger = data.levels.n.copy(), data.levels
    for _ in range(2):
        larger.n[0] = larger.category.size  # as if it were full
        larger = grown_levels(larger)
    larger.n[:] = n
    assert larger.category.size == 4 * data.levels.category.size
    mean, variance = data.levels.mean[:12].copy(), data.levels.variance[:12].copy()
    line = data.line.mean.copy()
    set_lines(data.line, larger)
    assert (larger.mean[:12] == mean).all()
    assert (larger.variance[:12] == variance).all()
    assert (data.line.mean == line).all()


def simulated(rng: Any, *, n_levels: int, common: float, own: float, n: int) -> tuple[Line, LevelEffects, Floats]:
    n_arms = 4
    effect = np.sqrt(common) * rng.normal(size=(n_levels, 1)) + np.sqrt(own) * rng.normal(size=(n_levels, n_arms))
    line, levels = new_line(np.ones((n_arms, 1)), np.arange(1), 1.0), with_levels(n_levels, n_arms, 1)
    arm, level = rng.integers(n_arms, size=n), rng.integers(n_levels, size=n)
    reward = 1.0 + effect[level, arm] + rng.normal(size=n)
    for a in range(n_arms):
        line.gram[a, 0, 0], line.moment[a, 0] = (arm == a).sum(), reward[arm == a].sum()
    np.add.at(levels.answers, (level, arm), 1.0)
    np.add.at(levels.reward, (level, arm), reward)
    levels.told[:] = levels.reward
    levels.x[:, :, 0] = levels.answers
    line.scale[0] = float((reward**2).mean())
    start_variances(line)
    line.common[0, 0] = line.scale[0]
    levels.common[0] = levels.own[0] = 0.1 * line.scale[0]
    calibrate_lines(line, levels, True, 60)
    return line, levels, effect


@pytest.mark.parametrize(("common", "own"), [(1.0, 0.25), (0.25, 1.0), (1.0, 0.0), (0.0, 0.5), (0.0, 0.0)])
def test_variances_of_levels_come_near_the_truth(common: float, own: float) -> None:
    found = []
    for seed in range(4):
        line, levels, effect = simulated(np.random.default_rng(seed), n_levels=200, common=common, own=own, n=16_000)
        found.append([levels.common[0], levels.own[0]])
        worth = line.mean[:, 0] + levels.mean[:200]
        assert np.sqrt(((worth - 1.0 - effect) ** 2).mean()) < 0.23  # 1 / sqrt(20), and no more
    s, d = np.mean(found, axis=0)
    error = np.sqrt(2.0 / 200 / 4)  # of a variance, relative; noise adds to it
    assert s == pytest.approx(common, abs=5.0 * error * (common + own / 4 + 0.0125) + 0.002)
    assert d == pytest.approx(own, abs=5.0 * error * (own + 0.05) + 0.002)


def test_what_is_forgotten_counts_less() -> None:
    data = Data(np.random.default_rng(4), 2, 2, 3, 50)
    answers, reward, x = data.levels.answers.copy(), data.levels.reward.copy(), data.levels.x.copy()
    fade_levels(data.levels, 0.25)
    assert data.levels.answers == pytest.approx(0.25 * answers)
    assert data.levels.reward == pytest.approx(0.25 * reward)
    assert data.levels.x == pytest.approx(0.25 * x)
