"""Rows that were not watched until the deadline: against sums that are slow and plain, and against the truth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import doral
from doral._arrays import Flags, Floats, Ints
from doral.evaluation.censoring import Censoring, finest_groups
from doral.evaluation.valuing import interval_of
from doral.problem import Feedback
from tests.evaluation.worlds import mixed, small_world

HEAVY = dataclasses.replace(small_world(1), days=40.0)
DEADLINE = 25.0


def slow_weights(age: Floats, watched: Floats, done: Flags, group: Ints, own: Floats) -> Floats:
    weight = np.zeros(age.size)
    for i in np.flatnonzero(done):
        same = group == group[i]
        weight[i] = own[same].sum() / own[same & (watched >= age[i])].sum()
    return weight


def test_weights_are_one_by_the_share_that_was_watched_so_long() -> None:
    rng = np.random.default_rng(0)
    n = 300
    age, watched = rng.integers(0, 12, n).astype(float), rng.integers(0, 12, n).astype(float)
    age = np.minimum(age, 9.0)
    done, group, own = age <= watched, rng.integers(0, 3, n), rng.uniform(0.5, 3.0, n)
    censoring = Censoring(is_complete=done, age=age, watched=watched, group=group, own=own)
    assert censoring.weight == pytest.approx(slow_weights(age, watched, done, group, own))


def test_what_rows_add_is_how_the_estimate_moves_with_them() -> None:
    """The influence of a row by its definition: give it a little more mass, in the estimate and in G alike."""
    rng = np.random.default_rng(1)
    n = 60
    age, watched = rng.uniform(0, 8, n), rng.uniform(0, 12, n)
    done, group, amount = age <= watched, rng.integers(0, 2, n), rng.normal(size=n)
    own = rng.uniform(0.5, 3.0, n)

    def estimate(mass: Floats) -> float:
        weight = slow_weights(age, watched, done, group, own * mass)
        return float((mass * amount * weight).sum() / n)

    added = Censoring(is_complete=done, age=age, watched=watched, group=group, own=own).spread(amount)
    assert added.mean() == pytest.approx(estimate(np.ones(n)))
    for i in range(0, n, 7):
        more, less = np.ones(n), np.ones(n)
        more[i] += 1e-5
        less[i] -= 1e-5
        assert added[i] == pytest.approx((estimate(more) - estimate(less)) / 2e-5 * n, rel=1e-4, abs=1e-6)


def test_thin_groups_share_the_watches_of_coarser_ones() -> None:
    coarse = np.repeat([0, 1], [100, 10]).astype(np.int64)
    fine = np.repeat([0, 1, 2], [90, 10, 10]).astype(np.int64)
    groups = finest_groups([coarse, fine], np.ones(110, dtype=bool))
    assert len(set(groups[:90].tolist())) == 1  # enough of its own
    assert set(groups[90:100].tolist()) != set(groups[:90].tolist())  # with the coarse group
    assert len(set(groups.tolist())) == 3


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
def test_logs_that_end_in_the_middle_are_set_right_and_would_be_wrong_without(feedback: Feedback) -> None:
    world = dataclasses.replace(HEAVY, feedback=feedback)
    table = mixed(world, 0)
    truth = world.value(table, DEADLINE)
    log = world.log(60_000, 3)
    told = doral.evaluate(log, ("mixed", table), deadline=DEADLINE)
    for one in ("ips", "snips", "dr"):
        value = told.of("mixed", one)
        assert value.low <= truth <= value.high, one
        assert value.high - value.low < 0.1 * truth
    # Open rows for zeros: as if all had been watched until the deadline.
    ignored = dataclasses.replace(log, watched=np.maximum(log.watched, DEADLINE))
    for one in ("ips", "snips", "dr"):
        value = doral.evaluate(ignored, ("mixed", table), deadline=DEADLINE).of("mixed", one)
        assert not value.low <= truth <= value.high, one


def test_what_was_done_is_right_though_the_policy_changed_while_people_came() -> None:
    world = dataclasses.replace(HEAVY, done_later=small_world(3).done)
    off = []
    for seed in range(40):
        log = world.log(2_000, seed)
        done = doral.evaluate(log, "uniform", deadline=DEADLINE).of("status-quo")
        off.append(done.value - world.value(world.logged(), DEADLINE))
    said = interval_of(np.array(off))
    assert said.low <= 0.0 <= said.high


def test_errors_are_as_large_as_values_scatter() -> None:
    table = mixed(HEAVY, 0)
    values: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for seed in range(120):
        result = doral.evaluate(HEAVY.log(800, seed), ("mixed", table), deadline=DEADLINE)
        for one in result.values:
            values.setdefault(one.estimator, []).append(one.value)
            errors.setdefault(one.estimator, []).append((one.high - one.low) / 2.0 / 1.97)
    for name in values:
        assert np.mean(errors[name]) == pytest.approx(np.std(values[name]), rel=0.17), name


def test_a_deadline_that_nobody_was_watched_for_is_refused() -> None:
    with pytest.raises(doral.InvalidValue, match="no decision was watched for so long; half of them were for 19 units"):
        doral.evaluate(HEAVY.log(500, 0), "uniform", deadline=90)


def test_without_a_deadline_the_longest_that_is_supported_is_used_and_said() -> None:
    result = doral.evaluate(HEAVY.log(2_000, 0), "uniform")
    assert result.deadline == pytest.approx(20.0, abs=1.0)
    assert "The deadline is 20 units, the longest that this log supports" in result.text()
    calm = dataclasses.replace(HEAVY, days_after=500.0).log(500, 0)
    assert doral.evaluate(calm, "uniform").deadline == calm.delay[calm.is_answered].max()
