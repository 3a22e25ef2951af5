"""Silent feedback, learned as it comes: the law of delays from answers alone, and unbiased trials."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from doral._arrays import Floats
from doral.estimators.positives import (
    ARM_ANSWERS,
    BY,
    INSIDE,
    count_positive,
    mean_age,
    set_shares,
    share_by,
    trials,
)

DEADLINE = 60.0
AGES = np.unique(np.append(np.geomspace(0.6, DEADLINE, 60), [12.0]))


def law(mean: float) -> Floats:
    """F at the ages of the grid: exponential delays, of which those after the last age are not waited for."""
    return np.asarray(-np.expm1(-AGES / mean) / -math.expm1(-DEADLINE / mean))


class Campaign(NamedTuple):
    """Decisions of one arm at a moment: how many have passed each age, answers by their age, rewards in time."""

    passed: Floats
    counts: Floats
    rewards: float


def campaign(
    rng: np.random.Generator, *, n: int, clock: float, rate: float, mean: float, deadline: float = DEADLINE
) -> Campaign:
    """Decisions since 0, of which the share `rate` is answered with 1 at some time."""
    age = clock - rng.uniform(0.0, clock, n)
    delay = np.where(rng.random(n) < rate, rng.exponential(mean, n), math.inf)
    is_seen = (delay <= age) & (delay <= deadline)
    passed = np.append(n, (age[:, None] > AGES).sum(axis=0)).astype(np.float64)
    counts = np.zeros((2, 1, AGES.size))
    for own, answer in zip(age[is_seen].tolist(), delay[is_seen].tolist(), strict=True):
        for g in np.flatnonzero((own > AGES) & (answer <= AGES)).tolist():
            count_positive(counts, AGES, 0, g, answer)
    return Campaign(passed, counts, float(is_seen.sum()))


def test_counts_are_of_those_who_are_older_and_answered_by_then() -> None:
    counts = np.zeros((2, 2, 3))
    ages = np.array([1.0, 2.0, 4.0])
    count_positive(counts, ages, 1, 0, 0.5)
    count_positive(counts, ages, 1, 1, 0.5)
    count_positive(counts, ages, 1, 2, 3.0)
    assert counts[BY].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert counts[INSIDE].tolist() == [[0, 0, 0], [1, 0, 1]]


@pytest.mark.parametrize("mean", [5.0, 20.0, 100.0])
@pytest.mark.parametrize("clock", [66.0, 400.0])
def test_the_law_of_delays_is_found_though_slow_answers_are_missing(mean: float, clock: float) -> None:
    """Young decisions show only their quick answers; a plain histogram of what has come would be far off."""
    rng = np.random.default_rng(1)
    one = campaign(rng, n=30_000, clock=clock, rate=0.3, mean=mean)
    shares = np.zeros((1, AGES.size))
    set_shares(one.counts, AGES, shares)
    assert shares[0, -1] == 1.0
    assert (np.diff(shares[0]) >= 0.0).all()
    n_old = 30_000 * 0.3 * max(clock - DEADLINE, 6.0) / clock  # those who tell of the last ages
    assert np.abs(shares[0] - law(mean)).max() < 3.0 / math.sqrt(n_old)
    found = mean_age(one.counts, AGES, shares)
    truth = float((np.diff(law(mean), prepend=0.0) * (AGES + np.append(0.0, AGES[:-1])) / 2).sum())
    assert found == pytest.approx(truth, rel=0.15)


def test_before_there_are_answers_returns_are_even_and_arms_are_like_all() -> None:
    shares = np.zeros((2, AGES.size))
    set_shares(np.zeros((2, 2, AGES.size)), AGES, shares)
    assert shares == pytest.approx(np.array([AGES / DEADLINE] * 2))
    assert mean_age(np.zeros((2, 2, AGES.size)), AGES, shares) == 0.0
    rng = np.random.default_rng(2)
    counts = np.zeros((2, 2, AGES.size))
    counts[:, :1] = campaign(rng, n=20_000, clock=400.0, rate=0.5, mean=6.0).counts
    set_shares(counts, AGES, shares)
    assert np.abs(shares[1] - law(6.0)).max() < 0.05  # nothing is known of it but the other
    counts[:, 1:] = campaign(rng, n=2_000, clock=400.0, rate=0.5, mean=40.0).counts
    set_shares(counts, AGES, shares)
    assert np.abs(shares[0] - law(6.0)).max() < 0.05
    assert np.abs(shares[1] - law(40.0)).max() < 0.1
    assert ARM_ANSWERS < 10.0


def test_between_two_ages_shares_are_on_a_line() -> None:
    ages, shares = np.array([1.0, 3.0, 4.0]), np.array([[0.2, 0.8, 1.0]])
    asked = [0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 99.0]
    found = [share_by(shares, ages, 0, age) for age in asked]
    assert found == pytest.approx(np.interp(asked, [0.0, *ages], [0.0, *shares[0]]))


def test_a_decision_is_a_growing_part_of_a_trial() -> None:
    """Half way between the ages around its own; and whole by its deadline, which may be sooner than the last age."""
    ages, shares = np.array([1.0, 3.0, 4.0]), np.array([[0.2, 0.8, 1.0]])
    for deadline, parts in ((4.0, [0.1, 0.5, 0.9, 1.0]), (3.0, [0.125, 0.625, 1.0, 1.0])):
        for n_passed, part in enumerate(parts):
            passed = np.array([1.0] * (n_passed + 1) + [0.0] * (3 - n_passed))
            assert trials(passed, shares, ages, 0, deadline) == pytest.approx(part)
        some = np.array([7.0, 5.0, 2.0, 1.0])  # two of 7 have passed no age, three one, one two, and one all
        assert trials(some, shares, ages, 0, deadline) == pytest.approx(np.dot([2, 3, 1, 1], parts))


YOUNG = [(clock, deadline, True) for clock in (3.0, 20.0, 80.0, 300.0) for deadline in (12.0, DEADLINE)]
OLD = [(clock, deadline, False) for clock, deadline, _ in YOUNG if clock > deadline]


@pytest.mark.parametrize(("clock", "deadline", "is_known"), YOUNG + OLD)
def test_rewards_per_trial_are_what_comes_by_the_deadline(clock: float, deadline: float, is_known: bool) -> None:
    """From the first day on where the law of delays is known; where it is learned from the same answers, once it can
    be: before any decision has passed an age nobody knows what comes after it.
    """
    mean, rate = 15.0, 0.3
    truth = rate * -math.expm1(-deadline / mean)
    rewards, so_far = [], []
    for seed in range(30):
        one = campaign(np.random.default_rng(seed), n=2_000, clock=clock, rate=rate, mean=mean, deadline=deadline)
        shares = law(mean)[None, :].copy()
        if not is_known:
            all_of_it = campaign(np.random.default_rng(seed), n=2_000, clock=clock, rate=rate, mean=mean)
            set_shares(all_of_it.counts, AGES, shares)
        rewards.append(one.rewards)
        so_far.append(trials(one.passed, shares, AGES, 0, deadline))
    error = 1.0 / math.sqrt(sum(rewards))
    assert sum(rewards) / sum(so_far) == pytest.approx(truth, rel=4.0 * error + (0.0 if is_known else 0.05))


def test_a_deadline_of_ones_own_is_learned_from_its_own_answers() -> None:
    """Two contexts share an arm and its law; who waits for less counts whole trials sooner, and fewer rewards."""
    mean, rate = 15.0, 0.3
    shares = np.zeros((1, AGES.size))
    per_trial = {}
    soon, late = (
        campaign(np.random.default_rng(seed), n=20_000, clock=300.0, rate=rate, mean=mean, deadline=deadline)
        for seed, deadline in enumerate((12.0, DEADLINE))
    )
    set_shares(late.counts, AGES, shares)
    for one, deadline in ((soon, 12.0), (late, DEADLINE)):
        per_trial[deadline] = one.rewards / trials(one.passed, shares, AGES, 0, deadline)
    assert per_trial[12.0] == pytest.approx(rate * -math.expm1(-12.0 / mean), rel=0.05)
    assert per_trial[DEADLINE] == pytest.approx(rate * -math.expm1(-DEADLINE / mean), rel=0.05)
