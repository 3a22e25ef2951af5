"""People who arrive in time: their times, what the oracle makes of them, and what is told to policies."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import doral
from doral._arrays import Floats
from doral.delays import Geometric, Pareto
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Arm, Problem
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth

UNTIL = 14 * 24.0
NIGHTS = (0.0,) * 6 + (1.0,) * 12 + (3.0,) * 6


def _times(arrivals: Arrivals, seed: int) -> Floats:
    def uniforms(n: int, lane: int) -> Floats:
        return np.random.default_rng((seed, lane)).random((n, 1))[:, 0]

    return arrivals.times(UNTIL, uniforms)


def _scenario(**changes: Any) -> Scenario:
    problem = Problem(
        arms=[Arm("a", features=[1.0, 0.2], cost=1.0), Arm("b", features=[0.3, 0.9], cost=2.0)],
        contexts={"x": 0.3, "y": 0.7},
        budget=200.0,
        until=UNTIL,
        expected_arrivals=300,
        deadline=10.0,
    )
    given: dict[str, Any] = {
        "name": "in time",
        "problem": problem,
        "delays": (Geometric(4), Pareto(3, 2)),
        "arrivals": Arrivals(number=600, day=24, hours=NIGHTS),
        "means": [[0.5, 0.8], [0.4, 1.0]],
    }
    return Scenario(**(given | changes))


def test_times_follow_the_rhythm() -> None:
    arrivals = Arrivals(number=500, day=24, hours=NIGHTS, weekdays=(1, 1, 1, 1, 1, 0.5, 0))
    samples = [_times(arrivals, seed) for seed in range(200)]
    counts = np.array([one.size for one in samples])
    assert counts.mean() == pytest.approx(500, abs=4 * math.sqrt(500 / 200))
    assert counts.var() == pytest.approx(500, rel=0.5)  # Poisson
    every = np.concatenate(samples)
    assert all((np.diff(one) >= 0.0).all() for one in samples)
    assert (every >= 0.0).all()
    assert (every <= UNTIL).all()
    by_hour = np.bincount((every % 24).astype(int), minlength=24) / every.size
    assert by_hour == pytest.approx(np.array(NIGHTS) / sum(NIGHTS), abs=0.005)
    by_day = np.bincount((every / 24 % 7).astype(int), minlength=7) / every.size
    assert by_day == pytest.approx(np.array([1, 1, 1, 1, 1, 0.5, 0]) / 5.5, abs=0.01)


def test_bursts_add_no_arrivals_but_bring_them_together() -> None:
    even, lumpy = Arrivals(number=500), Arrivals(number=500, bursts=Bursts(share=0.5, arrivals=25, length=2))
    counts = np.array([[_times(one, seed).size for seed in range(300)] for one in (even, lumpy)])
    # a burst is cut off by the end at most once in a while
    assert counts[1].mean() == pytest.approx(500, rel=0.03)
    assert counts[1].var() > 5 * counts[0].var()
    in_hours = [np.bincount(_times(one, 1).astype(int)).var() for one in (even, lumpy)]
    assert in_hours[1] > 3 * in_hours[0]


def test_every_run_has_its_own_times_and_the_same_ones_again() -> None:
    place = _scenario()
    one, again, other = (make_truth(place, seed=1, run=run).times for run in (0, 0, 1))
    assert np.array_equal(one, again)
    assert one.size != other.size or not np.array_equal(one, other)


def test_the_oracle_knows_how_many_will_have_come() -> None:
    """The LP of one run, by HiGHS."""
    truth = make_truth(_scenario(), seed=3, run=2)
    shares = np.array([0.3, 0.7])
    gain = (shares[:, None] * truth.counted[0]).ravel()
    spent = (shares[:, None] * np.array([1.0, 2.0])).ravel()
    one_each = np.kron(np.eye(2), np.ones(2))
    found = linprog(
        -gain, A_ub=np.vstack([spent, one_each]), b_ub=[200.0 / truth.rounds, 1.0, 1.0], bounds=(0, 1), method="highs"
    )
    assert truth.oracle == pytest.approx(-float(found.fun or 0.0) * truth.rounds, rel=1e-9)


def test_what_counts_is_what_came_within_its_deadline_on_the_clock() -> None:
    place = _scenario(noise="none")
    for name in ("doral-otf", "beta-ts-lp"):
        one = doral.simulate(name, place, runs=1, keep_decisions=True).outcomes[0]
        assert one.log is not None
        in_time = one.log.delay <= 10.0
        assert one.rewards[0] == pytest.approx(one.log.reward[in_time].sum())
        by_end = one.log.time + one.log.delay <= make_truth(place, seed=0, run=0).times[-1]
        assert one.rewards[1] == pytest.approx(one.log.reward[by_end].sum())


class Listening:
    """Keeps all it is told."""

    told: list[Arrival]
    heard: list[Answer]

    def __init__(self, problem: Problem, seed: int) -> None:
        type(self).told, type(self).heard = [], []

    def decide(self, arrival: Arrival) -> int | None:
        self.told.append(arrival)
        return arrival.available[0] if arrival.available else None

    def observe(self, answer: Answer) -> None:
        self.heard.append(answer)


def test_a_policy_in_python_is_told_the_time_and_the_pace() -> None:
    place = _scenario()
    doral.simulate(Listening, place, runs=1)
    times = make_truth(place, seed=0, run=0).times
    assert [one.time for one in Listening.told] == times.tolist()
    assert {one.until for one in Listening.told} == {UNTIL}
    half = Listening.told[times.size // 2]
    assert half.rounds_left == pytest.approx(times.size / 2, rel=0.3)
    assert Listening.told[-1].rounds_left < 20
    for answer in Listening.heard:
        assert answer.delay == int(answer.delay) >= 1  # whole units of the clock, exactly
        assert answer.time is not None
        assert times[answer.round - 2] < answer.time <= times[answer.round - 1]


def test_runs_of_different_lengths_have_common_tables() -> None:
    result = doral.simulate(["doral-otf", "random"], _scenario(), runs=3)
    assert len({one.rounds[-1] for one in result.outcomes}) == 3
    curves = result.curves()
    assert curves["reward_mean"].is_finite().all()
    assert result.courses().height == curves.height
    assert result.summary().height > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrivals": None}, "say how people arrive"),
        ({"arrivals": 5}, "must be doral.Arrivals"),
        ({"phases": 2}, "must be 1 where the problem ends with a date"),
        ({"arrivals": Arrivals(number=1, day=1e-6)}, "too short"),
    ],
)
def test_a_scenario_says_what_it_lacks(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        _scenario(**changes)


def test_times_are_for_problems_that_end_with_a_date() -> None:
    place = _scenario()
    counted = dataclasses.replace(place.problem, until=None, expected_arrivals=None, horizon=10)
    with pytest.raises(InvalidValue, match="horizon says how many come"):
        dataclasses.replace(place, problem=counted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": 0}, "number of arrivals"),
        ({"hours": [1.0] * 23}, "must be 24"),
        ({"hours": [0.0] * 24}, "must not all be 0"),
        ({"weekdays": [1, 1, 1, 1, 1, 1, -1]}, "weekdays"),
        ({"day": None, "weekdays": [1, 1, 1, 1, 1, 1, 0]}, "needs to know how long a day is"),
        ({"bursts": 3}, "doral.Bursts"),
    ],
)
def test_bad_arrivals(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Arrivals(**({"number": 10, "day": 24} | changes))
