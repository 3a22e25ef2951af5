"""How long to wait: closed forms of an exponential law, and advice that a simulation bears out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from doral.errors import InvalidValue
from doral.logs.clock import Clock
from doral.logs.log import Log
from doral.planning.waiting import deadline_of, waiting
from tests.planning.made import DAY, made, uniform_watch

MEAN = 3 * DAY


def _log(n: int = 20_000, seed: int = 0, never: float = 0.5, reward: float = 2.0) -> Log:
    rng = np.random.default_rng(seed)
    delay = np.where(rng.random(n) < never, np.inf, rng.exponential(MEAN, n))
    return made(delay, uniform_watch(n, 90 * DAY, rng), reward=reward, cost=4.0)


def test_every_wait_is_what_the_law_says() -> None:
    told = waiting(_log(), deadline=14 * DAY)
    whole = 1.0 - math.exp(-14 * DAY / MEAN)
    pace = 20_000 / (90 * DAY)
    assert told.waits[-1].age == 14 * DAY
    for one in told.waits:
        by = 1.0 - math.exp(-one.age / MEAN)
        assert one.share == pytest.approx(0.5 * by, abs=0.015)
        assert one.share_low is not None
        assert one.share_high is not None
        assert one.share_low <= 0.5 * by <= one.share_high
        assert one.value == pytest.approx(by / whole, abs=0.015)
        assert one.bias_as_zero == pytest.approx(by / whole - 1.0, abs=0.015)
        # E[r | answered] = 2 instead of E[r 1{answered within the deadline}] = whole
        assert one.bias_ignored == pytest.approx(2.0 / whole - 1.0, rel=0.05)
        assert one.variance == pytest.approx(whole / by, rel=0.05)
        held = 0.5 * MEAN * by + 0.5 * one.age  # E[min(delay, age)]
        assert one.open_decisions == pytest.approx(pace * held, rel=0.03)
        assert one.open_budget == pytest.approx(4.0 * pace * held, rel=0.03)


def test_advice_keeps_what_it_says_and_its_interval_holds_the_truth() -> None:
    whole = 1.0 - math.exp(-14 * DAY / MEAN)
    truth = -MEAN * math.log(1.0 - 0.95 * whole)
    inside = 0
    for seed in range(20):
        told = waiting(_log(2_000, seed), deadline=14 * DAY)
        assert told.advised is not None
        assert told.advised_low is not None
        assert told.advised_high is not None
        assert told.advised_low <= told.advised <= told.advised_high
        assert told.advised_wait is not None
        assert told.advised_wait.value is not None
        assert told.advised_wait.value >= 0.95
        inside += told.advised_low <= truth <= told.advised_high
    assert inside >= 16  # 95% of 20 is 19; fewer than 16 in 1 of 400 such tests
    assert told.sentence.startswith("Wait ")
    assert "not 14 days" in told.sentence
    assert json.dumps(told.to_dict(), allow_nan=False)


def test_a_deadline_is_derived_where_none_is_given() -> None:
    found = deadline_of(_log())
    assert not found.is_given
    assert found.age is not None
    assert found.age == pytest.approx(MEAN * math.log(100), rel=0.1)  # 99% of an exponential law
    assert "99%" in found.sentence
    assert deadline_of(_log(), 200 * DAY).watched == 0
    assert "was watched for longer" in deadline_of(_log(), 200 * DAY).sentence


def test_a_deadline_beyond_what_was_watched_ends_where_watching_did() -> None:
    log = _log()
    assert waiting(log, deadline=400 * DAY).waits[-1].age == log.watched.max()


def test_rewards_below_0_are_not_kept_until_they_have_come() -> None:
    rng = np.random.default_rng(1)
    delay = rng.exponential(MEAN, 3_000)
    log = made(delay, np.full(3_000, 60 * DAY), reward=np.where(delay > 2 * MEAN, -0.5, 1.0), time=np.arange(3_000.0))
    told = waiting(log)
    assert told.advised is not None
    assert told.advised_wait is not None
    assert told.advised_wait.value == pytest.approx(1.0, abs=0.08)


def test_what_cannot_be_said_is_said() -> None:
    pending = made(np.full(40, np.inf), np.linspace(40, 1, 40))
    assert waiting(pending).advised is None
    assert "no answer has come" in waiting(pending).sentence
    at_once = made(np.zeros(9), np.zeros(9), has_delays=False, time=np.arange(9.0))
    assert "does not say when" in waiting(at_once).sentence
    few = waiting(made([1.0, 2.0, np.inf], [9.0, 9.0, 9.0]))
    assert few.advised is None
    assert few.waits[-1].share == pytest.approx(2 / 3)
    assert "Only 2 answers" in few.sentence
    with pytest.raises(InvalidValue, match="keep"):
        waiting(pending, keep=1.5)


def test_rounds_are_told_in_whole_rounds() -> None:
    rng = np.random.default_rng(2)
    log = made(rng.geometric(0.1, 500), np.arange(500.0)[::-1], clock=Clock("rounds", "rounds"))
    told = waiting(log)
    assert all(one.age == round(one.age) for one in told.waits)
    assert "rounds" in told.sentence
