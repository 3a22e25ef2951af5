"""Weights of answers whose kind is quicker or slower than the other: the product limit, and what it is good for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Flags, Floats, Ints
from doral.engine.engine import Engine, Heard
from doral.engine.options import policy
from doral.engine.setup import Blueprint
from doral.estimators.outcomes import BY, HEAVIEST, HIGH, INSIDE, LOW, PRIOR_ANSWERS, WEIGHT, count_answer, set_weights
from doral.estimators.ridge import COUNT, REWARD
from doral.problem import Arm, Problem
from tests.estimators.states import new_outcomes

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)
DEADLINE = 80


@dataclass(frozen=True)
class Sample:
    """Decisions: how old they are now, whether the outcome is good, and when its answer comes or came."""

    arm: Ints
    age: Floats
    is_high: Flags
    delay: Floats


def draw(
    rng: np.random.Generator, n: int, oldest: int, high: float, mean_delays: tuple[float, float], n_arms: int = 1
) -> Sample:
    """As many in each round up to now; delays are geometric, with a mean for bad and one for good outcomes."""
    is_high = rng.random(n) < high
    delay = rng.geometric(1.0 / np.where(is_high, mean_delays[1], mean_delays[0])).astype(np.float64)
    return Sample(rng.integers(n_arms, size=n), rng.integers(1, oldest + 1, n).astype(np.float64), is_high, delay)


def counted(sample: Sample, ages: Floats, last: int, n_arms: int = 1) -> Floats:
    """What the engine makes of it."""
    outcomes = new_outcomes(n_arms, ages.size)
    rows = zip(sample.arm.tolist(), sample.age.tolist(), sample.is_high.tolist(), sample.delay.tolist(), strict=True)
    for arm, age, is_high, delay in rows:
        for g, end in enumerate(ages.tolist()):
            if age > end >= delay:
                count_answer(outcomes, ages, HIGH if is_high else LOW, arm, g, delay)
    set_weights(outcomes, last)
    return outcomes


def weights(outcomes: Floats, sample: Sample, ages: Floats) -> Floats:
    """Of the answers of decisions as old as these."""
    passed = np.searchsorted(ages, sample.age, side="right")
    kind = np.where(sample.is_high, HIGH, LOW)
    return np.asarray(outcomes[WEIGHT, kind, sample.arm, passed])


def share_by(sample: Sample, ages: Floats, mine: Flags, passed: int, last: int, towards: Floats | None) -> float:
    """F(x) / F(R), from raw answers: of those by g, how many had come before the last interval."""
    product = 1.0
    for g in range(max(passed, 1), last + 1):
        by = mine & (sample.age > ages[g]) & (sample.delay <= ages[g])
        before = by & (sample.delay <= ages[g - 1])
        if towards is None:
            product *= float(before.sum() / by.sum()) if by.any() else 1.0
        else:
            product *= float((before.sum() + PRIOR_ANSWERS * towards[g]) / (by.sum() + PRIOR_ANSWERS))
    return product


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([0, 1, 20, 400]),
    ages=st.lists(st.floats(0.5, 60.0), min_size=2, max_size=8, unique=True),
    mean_delays=st.tuples(st.floats(1.0, 40.0), st.floats(1.0, 40.0)),
    data=st.data(),
)
def test_weights_are_the_product_limit_in_reversed_time(
    seed: int, n: int, ages: list[float], mean_delays: tuple[float, float], data: st.DataObject
) -> None:
    grid = np.array(sorted(ages))
    last = data.draw(st.integers(0, grid.size - 1))
    sample = draw(np.random.default_rng(seed), n, 80, 0.4, mean_delays, n_arms=2)
    outcomes = counted(sample, grid, last, n_arms=2)
    for arm in range(2):
        mine = sample.arm == arm
        stays = np.array([share_by(sample, grid, mine, g, g, None) for g in range(grid.size)])
        for passed in range(grid.size + 1):
            both = share_by(sample, grid, mine, passed, last, None)
            for kind, own in ((LOW, mine & ~sample.is_high), (HIGH, mine & sample.is_high)):
                one = share_by(sample, grid, own, passed, last, stays)
                expected = both / one if one > 0.0 else 1.0  # then all answers were so late, of both kinds
                expected = min(max(expected, 1.0 / HEAVIEST), HEAVIEST)
                assert outcomes[WEIGHT, kind, arm, passed] == pytest.approx(expected)
                if passed > last:
                    assert outcomes[WEIGHT, kind, arm, passed] == 1.0
    old = sample.age[:, None] > grid
    assert outcomes[BY].sum() == (old & (sample.delay[:, None] <= grid)).sum()
    assert (outcomes[INSIDE] <= outcomes[BY]).all()


def test_many_answers_find_the_true_laws() -> None:
    ages = np.arange(1.0, 31.0)
    means = (12.0, 4.0)  # of bad news and of good news
    sample = draw(np.random.default_rng(1), 200_000, 60, 0.5, means)
    found = counted(sample, ages, ages.size - 1)[WEIGHT, :, 0]
    low, high = (1.0 - (1.0 - 1.0 / mean) ** ages for mean in means)
    both = 0.5 * (low + high)
    for passed in range(1, ages.size + 1):
        x = passed - 1
        expected = [(both[x] / both[-1]) / (one[x] / one[-1]) for one in (low, high)]
        assert found[:, passed] == pytest.approx(expected, rel=0.05)


def test_weights_are_1_where_delays_do_not_depend_on_the_outcome() -> None:
    ages = np.geomspace(1.0, 40.0, 12)
    sample = draw(np.random.default_rng(2), 60_000, 80, 0.3, (9.0, 9.0))
    found = counted(sample, ages, ages.size - 1)[WEIGHT, :, 0]
    assert found == pytest.approx(np.ones_like(found), abs=0.05)
    few = draw(np.random.default_rng(3), 40, 80, 0.3, (9.0, 9.0))
    found = counted(few, ages, ages.size - 1)[WEIGHT, :, 0]
    assert found == pytest.approx(np.ones_like(found), abs=0.6)  # a few answers do not run away with it


def test_without_data_all_answers_count_alike() -> None:
    outcomes = new_outcomes(3, 5)
    set_weights(outcomes, 4)
    assert (outcomes[WEIGHT] == 1.0).all()
    assert new_outcomes(0, 5).shape == (3, 2, 0, 0)


def test_no_answer_counts_for_more_than_the_most() -> None:
    """Bad news comes all but always in the last interval: young decisions know only good news, and some bad."""
    ages = np.array([1.0, 2.0, 3.0])
    outcomes = new_outcomes(1, 3)
    for i in range(3000):
        count_answer(outcomes, ages, HIGH, 0, 1, 1.0)
        count_answer(outcomes, ages, HIGH, 0, 2, 1.0)
        count_answer(outcomes, ages, LOW, 0, 2, 3.0 if i else 2.0)
    set_weights(outcomes, 2)
    assert outcomes[WEIGHT, LOW, 0, :3].tolist() == [HEAVIEST] * 3
    assert outcomes[WEIGHT, HIGH, 0, 2] == pytest.approx(0.5, abs=0.01)
    outcomes[BY, HIGH] *= 100.0  # and a kind that is far too rare
    outcomes[INSIDE, LOW] = outcomes[BY, LOW]
    set_weights(outcomes, 2)
    assert (outcomes[WEIGHT] <= HEAVIEST).all()
    assert (outcomes[WEIGHT] >= 1.0 / HEAVIEST).all()
    assert (outcomes[WEIGHT, :, 0, 3] == 1.0).all()


@pytest.mark.parametrize(
    ("ages", "allowed"),
    [(np.arange(1.0, 61.0), 0.1), (np.geomspace(0.6, 60.0, 16), 0.35)],  # coarse steps overdo it a little
    ids=["every age", "the engine's"],
)
@pytest.mark.parametrize("means", [(25.0, 5.0), (5.0, 25.0)], ids=["good news first", "bad news first"])
def test_the_mean_of_answers_in_hand_is_biased_and_the_weighted_one_is_not(
    ages: Floats, allowed: float, means: tuple[float, float]
) -> None:
    """Half of all outcomes are good; of those who answer by R, a share that follows from the delays."""
    low, high = (1.0 - (1.0 - 1.0 / mean) ** 60 for mean in means)
    truth = high / (high + low)
    plain, weighted = [], []
    for seed in range(10):
        sample = draw(np.random.default_rng(seed), 8000, 90, 0.5, means)
        heavy = weights(counted(sample, ages, ages.size - 1), sample, ages)
        in_hand = (sample.delay <= sample.age) & (sample.delay <= 60.0)
        plain.append(sample.is_high[in_hand].mean())
        weighted.append(np.average(sample.is_high[in_hand], weights=heavy[in_hand]))
    bias = abs(np.mean(plain) - truth)
    assert bias > 0.04
    assert bias > 10 * np.std(plain) / math.sqrt(10)
    assert abs(np.mean(weighted) - truth) < allowed * bias


def learned_mean(outcome_split: float | None, seed: int) -> float:
    """What a young policy takes the mean reward for, half of which are 1 and soon here, and half 0 and late."""
    problem = Problem(arms=[Arm("a", features=[1.0])], contexts=["x"], budget=400, horizon=400, deadline=DEADLINE)
    options = policy("doral-otf", cutoff=None, until_end=False, outcome_split=outcome_split)
    engine = Engine(Blueprint(options=options, problem=problem, seed=seed))
    rng = np.random.default_rng(seed)
    due: list[tuple[int, int, float]] = []
    for round_ in range(1, 162):  # the last reading is in the last round
        for _, decision, reward in sorted(one for one in due if one[0] == round_):
            engine.answer([Heard(decision, reward, float(round_))])
        decided = engine.decide(0, ALL_ARMS, float(round_))
        if decided.arm >= 0:
            reward = float(rng.random() < 0.5)
            delay = int(rng.geometric(1 / 3 if reward else 1 / 40))
            due.append((round_ + delay, decided.number, reward))
    return float(engine.state.tally[REWARD].sum() / engine.state.tally[COUNT].sum())


def test_the_engine_learns_without_the_bias() -> None:
    late = 1.0 - (1.0 - 1 / 40) ** DEADLINE
    truth = 1.0 / (1.0 + late)
    plain, split = (np.mean([learned_mean(how, seed) for seed in range(40)]) for how in (None, 0.5))
    assert plain - truth > 0.02
    assert abs(split - truth) < 0.5 * (plain - truth)
