"""Campaigns that end with a date."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.compiled import Block
from doral.delays import Geometric
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.problem import Arm, Problem
from doral.simulation.scenario.arrivals import Arrivals
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

DAY = 86_400.0
HOURS = (0.1,) * 8 + (1.5,) * 12 + (0.5,) * 4


def _problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "arms": [Arm("a", features=[1.0, 0.2]), Arm("b", features=[0.3, 0.9])],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": 120.0,
        "until": 28 * DAY,
        "expected_arrivals": 300,
        "deadline": DAY,
    }
    return Problem(**(given | changes))


def _monday() -> float:
    """Midnight, more than four weeks ago."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (today - timedelta(days=today.weekday() + 35)).timestamp()


def _scenario() -> Scenario:
    arrivals = Arrivals(number=600, day=DAY, hours=HOURS, weekdays=(1.2, 1.2, 1.2, 1.2, 1.2, 0.6, 0.4))
    return Scenario(
        name="weeks",
        problem=_problem(),
        delays=(Geometric(9_000), Geometric(40_000)),
        means=[[0.5, 0.8], [0.4, 1.0]],
        noise="bernoulli",
        arrivals=arrivals,
    )


def _play(campaign: Campaign, place: Scenario, began: float, last: float = 28 * DAY) -> list[tuple[int, str]]:
    """What the tape of a simulation brings, in the order of time; (round, arm) of all decisions."""
    truth, log = make_truth(place, seed=1, run=0), None
    log = doral.simulate("doral-otf", place, runs=1, seed=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, 1, 0, 1)
    answers = {
        int(r): (float(t + d), float(y)) for r, t, d, y in zip(log.round, log.time, log.delay, log.reward, strict=True)
    }
    made, waiting = list[tuple[int, str]](), list[tuple[float, int, str, float]]()
    for round_, clock in enumerate(truth.times[truth.times <= last].tolist(), start=1):
        # as the simulation tells them: all that are there when somebody comes, the oldest decision first
        due = sorted((one for one in waiting if one[0] <= clock), key=lambda one: one[1])
        waiting = [one for one in waiting if one[0] > clock]
        if due:
            campaign.feedback_many(
                [{"decision_id": id_, "reward": reward, "at": began + when} for when, _, id_, reward in due]
            )
        decision = campaign.decide(place.problem.context_names[int(tape.context[round_ - 1])], at=began + clock)
        if decision.arm is not None:
            made.append((round_, decision.arm))
            if round_ in answers and answers[round_][0] < np.inf:
                waiting.append((answers[round_][0], round_, decision.id, answers[round_][1]))
    return made


def test_a_campaign_decides_as_the_simulation_does() -> None:
    place, began = _scenario(), _monday()
    log = doral.simulate("doral-otf", place, runs=1, seed=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    with doral.open("memory://") as store:
        campaign = store.create("weeks", place.problem, seed=1, at=began)
        made = _play(campaign, place, began)
        expected = [(int(r), place.problem.arm_names[int(a)]) for r, a in zip(log.round, log.arm, strict=True)]
        assert made == expected
        assert campaign.ledger().left <= 4


def test_the_report_shows_what_will_come_and_a_log_read_again_says_the_same(tmp_path: Path) -> None:
    place, began = _scenario(), _monday()
    url = f"sqlite:///{tmp_path / 'c.db'}"
    total = make_truth(place, seed=1, run=0).rounds
    with doral.open(url) as store:
        campaign = store.create("weeks", place.problem, seed=1, at=began)
        _play(campaign, place, began, last=20 * DAY)
        report = campaign.report()
        assert report.until == began + 28 * DAY
        assert report.time_share == pytest.approx(20 / 28, abs=0.02)
        ahead = report.forecast
        assert ahead is not None
        assert ahead.low < total - report.arrivals < ahead.high
        assert ahead.expected == pytest.approx(total - report.arrivals, rel=0.2)
        assert report.horizon == report.arrivals + round(ahead.expected)
        assert max(ahead.hours) > 1.2
        assert "forecast" in str(report)
        assert json.loads(json.dumps(report.to_dict()))["forecast"]["expected"] == ahead.expected
    with doral.open(url) as store:
        again = store.campaign("weeks")
        assert again.report() == report
        assert not again.verify().differences
        again.save_snapshot()
    with doral.open(url) as store:
        assert store.campaign("weeks").report() == report


def test_after_the_date_nobody_is_served_until_it_is_moved() -> None:
    began = time.time() - DAY - 60.0
    later = began + 3 * DAY
    with doral.open("memory://") as store:
        campaign = store.create("short", _problem(), at=began, until=began + DAY)
        for i in range(48):
            campaign.decide("xy"[i % 2], at=began + i * 1_800.0)
        assert campaign.decide("x", at=began + DAY + 1).reason_code == "over"
        assert "date of its end has passed" in " ".join(campaign.health().warnings)
        campaign.extend(until=later, key="longer")
        campaign.extend(until=later, key="longer")
        campaign.extend(until=later)  # it is there already
        late = [campaign.decide("xy"[i % 2]) for i in range(40)]
        assert any(one.arm is not None for one in late)
        report = campaign.report()
        assert report.until == pytest.approx(later)
        assert report.forecast is not None
        with pytest.raises(InvalidValue, match="only moved to a later date"):
            campaign.extend(until=began + 2 * DAY)
        with pytest.raises(InvalidValue, match=r"extend\(until=...\) moves it"):
            campaign.extend(50)
        with pytest.raises(InvalidValue, match="give one of them"):
            campaign.extend(50, until=began + 9 * DAY)


def test_a_date_is_told_in_many_ways_and_takes_the_place_of_a_horizon() -> None:
    day = date.fromtimestamp(time.time() + 40 * DAY)
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)  # that day included
    counted = _problem(until=None, expected_arrivals=None, horizon=777)
    with doral.open("memory://") as store:
        for name, said in {
            "a": day,
            "b": day.isoformat(),
            "c": end,
            "d": end.isoformat(),
            "e": end.timestamp(),
        }.items():
            campaign = store.create(name, counted, until=said)
            report = campaign.report()
            assert report.until == pytest.approx(end.timestamp(), abs=1e-3)
            assert report.horizon == 777
        with pytest.raises(InvalidValue, match="extend it by rounds"):
            store.create("f", counted).extend(until=end)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clock": "rounds", "until": None}, "a clock that counts rounds shows no dates"),
        ({"until": "2001-01-01"}, "must be after the beginning"),
        ({"until": 56 * 86_400}, "a number is seconds since 1970 here"),
        ({"until": "31 March"}, "give a date such as"),
        ({"until": "9999-12-31"}, "is no day that ends"),
        ({"until": "2099-03-31T18:00"}, "must say its time zone"),
    ],
)
def test_ends_that_are_none(changes: dict[str, Any], message: str) -> None:
    with doral.open("memory://") as store, pytest.raises(InvalidValue, match=message):
        store.create("c", _problem(), **changes)


def test_an_arm_may_join_and_the_forecast_stays() -> None:
    began = _monday()
    with doral.open("memory://") as store:
        campaign = store.create("grows", _problem(), at=began, seed=3)
        for i in range(100):
            campaign.decide("xy"[i % 2], at=began + i * 3_600.0)
        before = campaign.report().forecast
        campaign.add_arm(Arm("c", features=[0.5, 0.5]))
        assert campaign.report().forecast == before


def test_the_command_line(tmp_path: Path) -> None:
    problem, storage = tmp_path / "problem.json", f"sqlite:///{tmp_path / 'c.db'}"
    problem.write_text(json.dumps(_problem(until=None, expected_arrivals=None, horizon=400).to_dict()))
    run = CliRunner().invoke
    made = run(app, ["campaign", "create", "spring", "-f", str(problem), "--until", "2099-03-31", "-s", storage])
    assert made.exit_code == 0, made.output
    shown = run(app, ["campaign", "show", "spring", "-s", storage]).output
    assert "until 2099-04-01 00:00 UTC" in shown
    assert "forecast  400 more until then" in shown
    moved = run(app, ["campaign", "extend", "spring", "--until", "2100-03-31", "-s", storage])
    assert moved.exit_code == 0, moved.output
    assert "until 2100-04-01" in run(app, ["campaign", "show", "spring", "-s", storage]).output
    assert run(app, ["campaign", "extend", "spring", "10", "-s", storage]).exit_code == 2
