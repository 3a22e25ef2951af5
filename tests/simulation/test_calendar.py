"""People arrive as they did in a log: rhythms, bursts and who comes when are kept, at the pace that was observed."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import doral
from doral import Arrivals, Bursts, Calendar
from doral._arrays import Floats, Ints
from doral.delays import Geometric
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.simulation.scenario.arrivals import Uniforms
from doral.simulation.scenario.calendar import block_length
from doral.simulation.world.truth import make_truth

DAY = 24.0
HOURS = (0.0,) * 6 + (1.0,) * 12 + (3.0,) * 6
WEEKDAYS = (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0)


def uniforms_of(seed: int) -> Uniforms:
    def uniforms(n: int, lane: int) -> Floats:
        return np.random.default_rng((seed, lane)).random((n, 1))[:, 0]

    return uniforms


def observed(arrivals: Arrivals, until: float, seed: int = 0) -> Floats:
    return arrivals.times(until, uniforms_of(seed))


def drawn(calendar: Calendar, until: float, seed: int) -> tuple[Floats, Ints]:
    return calendar.drawn(until, uniforms_of(seed))


def scenario(calendar: Any, **changes: Any) -> doral.Scenario:
    words = {word: changes.pop(word) for word in list(changes) if word in ("until", "budget", "contexts")}
    problem = doral.Problem(
        **{
            "arms": [doral.Arm("a", cost=1.0), doral.Arm("b", cost=2.0)],
            "contexts": ["x", "y", "z"],
            "budget": 120.0,
            "until": 14 * DAY,
            "expected_arrivals": 300,
            "deadline": 20.0,
            **words,
        }
    )
    given: dict[str, Any] = {
        "name": "calendar",
        "problem": problem,
        "delays": Geometric(4),
        "means": [[0.5, 0.8], [0.4, 1.0], [0.1, 0.9]],
        "noise": "bernoulli",
        "arrivals": calendar,
    }
    return doral.Scenario(**given | changes)


def test_hours_and_weekdays_stay_in_their_places() -> None:
    times = observed(Arrivals(number=2000, day=DAY, hours=HOURS, weekdays=WEEKDAYS), 42 * DAY)
    calendar = Calendar(times, day=DAY)
    assert calendar.block == DAY
    samples = [drawn(calendar, 21 * DAY, seed)[0] for seed in range(60)]
    every = np.concatenate(samples)
    assert all((np.diff(one) >= 0.0).all() for one in samples)
    assert (every % DAY >= 6.0).all()  # nobody comes at night
    weekday = np.bincount((every // DAY).astype(int) % 7, minlength=7) / 60
    seen = np.bincount((times // DAY).astype(int) % 7, minlength=7) / 2  # 3 weeks of 6
    assert weekday[6] == seen[6] == 0.0
    by_day = np.bincount((times // DAY).astype(int), minlength=42).reshape(6, 7)
    error = by_day.std(axis=0) * math.sqrt(3 / 60)  # of a mean over 60 runs of 3 such days each
    assert (np.abs(weekday - seen) <= 4.5 * error + 1e-9).all()


def test_who_comes_when_is_kept() -> None:
    times = observed(Arrivals(number=3000), 30 * DAY)
    contexts = np.where(times % DAY < 8.0, 0, np.where((times // DAY) % 7 >= 5, 2, 1))
    calendar = Calendar(times, contexts, day=DAY)
    clocks, who = drawn(calendar, 20 * DAY, 3)
    assert (who == np.where(clocks % DAY < 8.0, 0, np.where((clocks // DAY) % 7 >= 5, 2, 1))).all()


def test_part_of_a_day_is_filled_up_by_another() -> None:
    """A log that begins at three and ends at ten has no lazy days."""
    times = observed(Arrivals(number=4000), 40 * DAY)
    times = times[(times >= 15.0) & (times < 9 * DAY + 10.0)]
    calendar = Calendar(times, day=DAY)
    n = np.array([drawn(calendar, 28 * DAY, seed)[0].size for seed in range(300)])
    pace = times.size / (8 * DAY + 19.0)
    assert n.mean() / (28 * DAY) == pytest.approx(pace, rel=0.03)
    hours = np.concatenate([drawn(calendar, 28 * DAY, seed)[0] % DAY for seed in range(40)])
    assert np.histogram(hours, bins=8, range=(0, DAY))[0].min() > 0.08 * hours.size


def test_weeks_are_drawn_where_hundreds_of_days_were_observed() -> None:
    """A holiday is a week in which nobody comes: it is drawn whole."""
    times = observed(Arrivals(number=4000, day=DAY), 400 * DAY)
    week = (times // (7 * DAY)).astype(int)
    times = times[week % 5 != 0]
    calendar = Calendar(times, day=DAY)
    assert calendar.block == 7 * DAY
    seen = np.zeros(0)
    for seed in range(20):
        clocks, _ = drawn(calendar, 70 * DAY, seed)
        counts = np.bincount((clocks // (7 * DAY)).astype(int), minlength=10)[:10]
        assert ((counts == 0) | (counts > 40)).all()
        seen = np.append(seen, counts == 0)
    assert seen.mean() == pytest.approx(12 / 58, abs=4.5 * math.sqrt(0.16 / seen.size))


@pytest.mark.parametrize("length", [2.0, 10.0, 40.0])
def test_bursts_stay_together(length: float) -> None:
    """The spread of counts is that of the log, which single arrivals would lose."""
    until = 4000.0
    times = observed(Arrivals(number=4000, bursts=Bursts(share=0.7, arrivals=40, length=length)), until)
    calendar = Calendar(times)
    assert calendar.block > length

    def dispersion(clocks: Floats) -> float:
        counts = np.histogram(clocks, bins=int(until / 50), range=(0, until))[0]
        return float(counts.var() / counts.mean())

    alike = np.mean([dispersion(drawn(calendar, until, seed)[0]) for seed in range(60)])
    assert dispersion(times) > 8.0
    assert alike > 0.7 * dispersion(times)
    assert alike < 1.2 * dispersion(times)


def test_blocks_are_short_where_arrivals_do_not_depend_on_each_other() -> None:
    lengths = [block_length(observed(Arrivals(number=2000), 1000.0, seed), 0.0, 1000.0) for seed in range(40)]
    least = 1000.0 / 2000 * 2000 ** (1 / 3)
    assert np.median(lengths) == pytest.approx(least, rel=0.05)
    assert max(lengths) < 10 * least
    calendar = Calendar(observed(Arrivals(number=2000), 1000.0))
    counts = [drawn(calendar, 500.0, seed)[0].size for seed in range(300)]
    assert np.mean(counts) == pytest.approx(calendar.times.size / 2, abs=4.5 * math.sqrt(1000 / 300) + 5)
    assert np.var(counts) == pytest.approx(1000, rel=0.45)  # Poisson, as far as one log says


@pytest.mark.parametrize("until", [3.0, 50.0, 1000.0, 40_000.0])
def test_the_pace_is_that_of_the_log_however_long_a_run_is(until: float) -> None:
    times = observed(Arrivals(number=1000), 1000.0)
    counts = [drawn(Calendar(times), until, seed)[0].size for seed in range(200)]
    expected = until * times.size / 1000.0
    assert np.mean(counts) == pytest.approx(expected, abs=5.0 * math.sqrt(until / 200) + 0.01 * until + 0.2)
    assert all(drawn(Calendar(times), until, seed)[0][-1] <= until for seed in range(20))


def test_runs_are_functions_of_seed_and_run() -> None:
    place = scenario(Calendar(observed(Arrivals(number=600), 14 * DAY)), shares=(0.2, 0.3, 0.5))
    one, again, other = (make_truth(place, seed=1, run=run) for run in (0, 0, 1))
    assert one.times.tolist() == again.times.tolist()
    assert one.times.tolist() != other.times.tolist()


def test_contexts_of_a_run_are_those_of_the_calendar() -> None:
    times = observed(Arrivals(number=600, day=DAY, hours=HOURS), 14 * DAY)
    contexts = (times % DAY > 15.0).astype(int)  # z never comes
    place = scenario(Calendar(times, contexts, day=DAY))
    assert place.shares == (float((contexts == 0).mean()), float((contexts == 1).mean()), 0.0)
    result = doral.simulate(["doral-otf", "oracle", "random"], place, runs=3, keep_decisions=True)
    for outcome in result.outcomes:
        truth = make_truth(place, seed=0, run=outcome.run)
        assert outcome.arrivals is not None
        assert outcome.arrivals.context.tolist() == truth.world.come.tolist()
        assert (outcome.arrivals.context == (truth.times % DAY > 15.0)).all()
        assert outcome.spend <= 120.0


def test_exactly_those_who_came() -> None:
    """The oracle, by HiGHS, for the shares of those who come: it knows them."""
    times = np.sort(np.random.default_rng(3).integers(0, 14 * 24 * 64, 500) / 64.0)
    contexts = np.random.default_rng(4).choice(3, 500, p=[0.6, 0.3, 0.1])
    place = scenario(Calendar(times, contexts, resampled=False))
    for run in range(2):
        truth = make_truth(place, seed=9, run=run)
        assert truth.times.tolist() == times.tolist()
        assert truth.world.come.tolist() == contexts.tolist()
    shares = np.bincount(contexts) / 500
    worth = truth.counted[0] * shares[:, None] * 500
    costs = np.tile([1.0, 2.0], 3) * np.repeat(shares, 2) * 500
    found = optimize.linprog(
        -worth.ravel(), A_ub=[costs, *np.kron(np.eye(3), np.ones(2))], b_ub=[120.0, 1, 1, 1], bounds=(0, 1)
    )
    assert found.fun is not None
    assert truth.oracle == pytest.approx(-found.fun)
    half = scenario(Calendar(times, contexts, resampled=False), until=7 * DAY)
    assert make_truth(half, seed=0, run=0).times.tolist() == times[times <= 7 * DAY].tolist()


class Spending:
    """Takes the dearest that it can have."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        del problem, seed

    def decide(self, arrival: Arrival) -> int | None:
        return arrival.available[-1] if arrival.available else None

    def observe(self, answer: Answer) -> None:
        del answer


def test_a_clock_that_counts_rounds_is_no_other() -> None:
    """One in every unit of time: bills, answers and draws are those of rounds."""
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=1.0), doral.Arm("b", cost=2.0)],
        contexts={"x": 0.4, "y": 0.6},
        budget=60.0,
        horizon=400,
        deadline=12.5,
        paid="on_answer",
    )
    given: dict[str, Any] = {"delays": Geometric(9), "means": [[0.4, 0.2], [0.1, 0.7]], "noise": "bernoulli"}
    rounds = doral.Scenario(name="same", problem=problem, paid="on_success", **given)
    dated = dataclasses.replace(problem, horizon=0, until=400.0)
    calendar = Calendar(np.arange(1.0, 401.0), resampled=False)
    clock = doral.Scenario(name="same", problem=dated, paid="on_success", arrivals=calendar, **given)
    one, other = (doral.simulate(Spending, place, runs=2, keep_decisions=True) for place in (rounds, clock))
    assert one.decisions().equals(other.decisions())
    assert [a.spend for a in one.outcomes] == [a.spend for a in other.outcomes]
    assert one.outcomes[0].decisions > 60


@pytest.mark.parametrize("times", [[3.0], [5.0, 5.0, 5.0], [0.0], [1.0, 2.0], np.arange(9)])
@pytest.mark.parametrize("day", [None, 24.0, 0.5])
def test_few_are_enough(times: Any, day: float | None) -> None:
    for until in (0.5, 100.0):
        clocks, _ = drawn(Calendar(times, day=day), until, 0)
        assert clocks.size >= 1
        assert clocks[-1] <= until


def test_a_calendar_is_data() -> None:
    times, contexts = [3.0, 1.0, 2.0], [0, 1, 2]
    calendar = Calendar(times, contexts, day=1.0)
    assert calendar.times.tolist() == [1.0, 2.0, 3.0]
    assert calendar.contexts is not None
    assert calendar.contexts.tolist() == [1, 2, 0]
    assert pickle.loads(pickle.dumps(calendar)) == calendar
    assert len({calendar, Calendar(times, contexts, day=1.0), Calendar(times, day=1.0), Calendar(times, contexts)}) == 3
    place = scenario(calendar)
    assert pickle.loads(pickle.dumps(place)) == place
    assert dataclasses.replace(place, name="calendar") == place


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"times": []}, "number of times of Calendar = 0"),
        ({"times": [1.0, math.nan]}, "times of Calendar = nan: must be from 0"),
        ({"times": [-1.0]}, "times of Calendar = -1.0"),
        ({"times": [math.inf]}, "times of Calendar = inf"),
        ({"times": "soon"}, "times of Calendar = 'soon': must be a list of numbers"),
        ({"times": ["1", "2"]}, "must be a list of numbers"),
        ({"times": [[1.0], [2.0, 3.0]]}, "must be a list of numbers"),
        ({"times": 5}, "must be a list of numbers"),
        ({"contexts": [0]}, "number of contexts of Calendar = 1: must be one for every time, 3"),
        ({"contexts": [0, 1, -1]}, "contexts of Calendar = -1"),
        ({"contexts": [0, 1, 0.5]}, "contexts of Calendar = 0.5"),
        ({"contexts": [0, 1, math.nan]}, "contexts of Calendar = nan"),
        ({"contexts": ["x", "y", "z"]}, "must be a list of numbers"),
        ({"day": 0.0}, "^day = 0.0"),
        ({"block": -3}, "^block = -3"),
        ({"block": 1e-6}, "^block = 1e-06: is too short"),
        ({"day": 1e-6, "times": [1.0, 30.0]}, "^day = 1e-06: is too short"),
        ({"watched": 2.0}, "^watched = 2.0: must be a finite number of at least 3"),
        ({"resampled": "no"}, "^resampled = 'no'"),
    ],
)
def test_a_calendar_that_is_none_says_so(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        Calendar(**{"times": [1.0, 2.0, 3.0], **given})


@pytest.mark.parametrize(
    ("calendar", "changes", "says"),
    [
        (Calendar([1.0, 2.0], [0, 3]), {}, "contexts of Calendar = 3: must be from 0 to 2"),
        (Calendar([1.0, 2.0], [0, 1]), {"shares": (0.2, 0.3, 0.5)}, "shares = .*: follow from the contexts"),
        (Calendar(np.arange(1000.0) / 1e4, [0] * 1000), {"until": 1e9}, "block = .*: is too short"),
    ],
)
def test_a_calendar_that_does_not_fit_says_so(calendar: Calendar, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        scenario(calendar, **changes)


def test_people_have_frequencies_instead() -> None:
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=1)], person=["age"], budget=10, until=50, expected_arrivals=50, deadline=5
    )
    given: dict[str, Any] = {"people": [[0.1], [0.9]], "means": [[0.2], [0.8]], "delays": Geometric(2)}
    with pytest.raises(InvalidValue, match="contexts of Calendar = .*: are of contexts alone"):
        doral.Scenario(name="p", problem=problem, arrivals=Calendar([1.0, 2.0], [0, 0]), **given)
    place = doral.Scenario(name="p", problem=problem, arrivals=Calendar(np.arange(50.0)), **given)
    assert doral.simulate("doral-otf", place, runs=1).outcomes[0].spend > 5.0
