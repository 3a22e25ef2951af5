"""Where the end is a date: what the engine thinks will still come, and what it then does with the budget."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.delays import Geometric
from doral.engine.decide import SKIPPED_OVER
from doral.engine.engine import Engine
from doral.engine.options import policy
from doral.engine.setup import Blueprint, rules_of
from doral.problem import Arm, Problem
from doral.simulation.catalogue.stress import HOURS, WEEKDAYS, until
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.scenario import Scenario

DAY = 24.0
ALL = np.zeros((1, 0), dtype=np.uint8)


def _problem(**changes: object) -> Problem:
    given: dict[str, object] = {
        "arms": [Arm("a", features=[1.0, 0.2]), Arm("b", features=[0.3, 0.9])],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": 500.0,
        "until": 28 * DAY,
        "expected_arrivals": 2_000,
        "deadline": 12.0,
    }
    return Problem(**(given | changes))  # type: ignore[arg-type]


def _engine(problem: Problem, day: float | None = DAY) -> Engine:
    return Engine(Blueprint(options=policy("doral-otf"), problem=problem, seed=1, day=day))


def _times(arrivals: Arrivals, until: float, seed: int = 0) -> Floats:
    def uniforms(n: int, lane: int) -> Floats:
        return np.random.default_rng((seed, lane)).random((n, 1))[:, 0]

    return arrivals.times(until, uniforms)


def _play(engine: Engine, times: Floats) -> None:
    for i, clock in enumerate(times.tolist()):
        engine.decide(i % 2, ALL, clock)


def _ahead(engine: Engine) -> int:
    """Return how many are expected after the last arrival."""
    return engine.horizon - int(engine.state.now["round"][0])


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 20.0])
def test_the_forecast_finds_the_pace_whatever_was_expected(share: float, factor: float) -> None:
    problem = _problem()
    arrivals = Arrivals(number=factor * 2_000, day=DAY, hours=HOURS, weekdays=WEEKDAYS)
    errors = []
    for seed in range(6 if factor < 20 else 1):
        times, engine = _times(arrivals, 28 * DAY, seed), _engine(problem)
        seen = times[times <= share * 28 * DAY]
        _play(engine, seen)
        errors.append(_ahead(engine) / (times.size - seen.size) - 1.0)
    # three days say little of a week, and a guess that is wrong by a factor still counts
    assert abs(np.mean(errors)) < (0.6 if share < 0.2 else 0.12)


def test_a_rhythm_is_found_where_there_is_one_and_none_where_there_is_not() -> None:
    for hours, weekdays in ((HOURS, WEEKDAYS), ((1.0,) * 24, (1.0,) * 7)):
        arrivals = Arrivals(number=8_000, day=DAY, hours=hours, weekdays=weekdays)
        engine = _engine(_problem(until=56 * DAY))
        _play(engine, _times(arrivals, 56 * DAY))
        found = engine.state.forecast
        for true, factors in ((hours, found.hour_factors), (weekdays, found.weekday_factors)):
            assert factors.mean() == pytest.approx(1.0)
            assert np.abs(factors - np.array(true) / np.mean(true)).mean() < 0.1
    assert np.abs(found.hour_factors - 1.0).max() < 0.15  # of 333 arrivals an hour: half of the noise at most


def test_recent_arrivals_count_for_more_where_the_pace_has_changed_and_only_there() -> None:
    """A pace that stands still is the mean; one that has grown is not."""
    until = 1_000.0
    steady, grown = np.arange(0.1, 600.0, 0.1), np.concatenate([np.arange(0, 300, 0.4), np.arange(300, 600, 0.05)])
    rng = np.random.default_rng(3)
    for times, true in ((np.sort(rng.uniform(0, 600, steady.size)), 10.0), (grown, 20.0)):
        engine = _engine(_problem(until=until, expected_arrivals=10_000), day=None)
        _play(engine, times)
        level = float(engine.state.forecast.pace["level"][0])
        assert level == pytest.approx(true, rel=0.1), true
    assert level > 1.3 * grown.size / 600.0


def test_after_the_date_no_arrival_is_served() -> None:
    engine = _engine(_problem())
    _play(engine, np.linspace(0.0, 28 * DAY, 200))
    assert engine.decide(0, ALL, 28 * DAY).reason != SKIPPED_OVER  # the last moment is not after the end
    assert engine.decide(0, ALL, 28 * DAY + 0.001).reason == SKIPPED_OVER


def test_all_at_once_is_no_pace() -> None:
    """A batch at the very start takes its share of what is expected, and no more."""
    engine = _engine(_problem())
    _play(engine, np.zeros(300))
    spent = 500.0 - engine.budget_left
    assert 0.3 * 75 < spent < 1.5 * 75


@pytest.mark.parametrize("times_expected", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", ["doral-otf", "d-lints", "eva"])
def test_the_budget_lasts_to_the_date(times_expected: float, name: str) -> None:
    place = until(times_expected)
    runs = doral.simulate(name, place, runs=2, seed=5, keep_decisions=True).outcomes
    for one in runs:
        assert one.log is not None
        assert one.spend >= 0.97 * place.problem.budget
        assert one.log.time[-1] >= 0.95 * (place.problem.until or 0.0)
        early = float((one.log.time <= 0.5 * (place.problem.until or 0.0)).mean())
        assert 0.4 < early < 0.6


def test_a_budget_that_may_be_spent_at_any_pace_is_not_held_back_by_bursts() -> None:
    """Without a guess, with half of the arrivals in bursts, and without a known length of the day."""
    problem = _problem(expected_arrivals=None, budget=300.0)
    arrivals = Arrivals(number=1_500, bursts=Bursts(share=0.5, arrivals=30, length=2.0))
    place = Scenario(name="bursts", problem=problem, delays=Geometric(3), arrivals=arrivals)
    for one in doral.simulate("doral-otf", place, runs=5, seed=2, keep_decisions=True).outcomes:
        assert one.log is not None
        assert one.spend >= 0.97 * problem.budget
        assert one.log.time[-1] >= 0.9 * 28 * DAY


def test_a_horizon_is_what_it_was() -> None:
    """A number of arrivals needs no forecast."""
    problem = _problem(until=None, expected_arrivals=None, horizon=2_000)
    for one, is_forecast in ((problem, False), (_problem(), True)):
        assert rules_of(Blueprint(options=policy("doral-otf"), problem=one, seed=1)).has_forecast == is_forecast
    assert dataclasses.replace(problem, budget=1.0).horizon == 2_000


@pytest.mark.parametrize("at_once", [1, 71, 400])
def test_many_at_once_in_the_beginning_are_no_pace(at_once: int) -> None:
    """As typed in by hand, or from a file: they came within a second, and as many are not expected in the next."""
    engine = _engine(_problem())
    _play(engine, np.linspace(1e-4, 3e-4, at_once))
    assert 2_000 * 0.9 < _ahead(engine) < 2_000 * 1.7
    # A good part of what so many would get of the budget is spent: the rest is for those to come.
    spent = 500.0 - engine.budget_left
    assert spent >= 0.25 * 500.0 * at_once / 2_000 - 1.0
