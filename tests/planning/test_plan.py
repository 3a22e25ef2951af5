"""A plan from a log: what it says is true, the same whoever works on it, and can be run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.errors import DoralError, InvalidValue
from doral.evaluation.policies import STATUS_QUO
from doral.inference.intervals import Estimate
from doral.inference.log_problem import asked_of, list_prices
from doral.inference.truths import truths_of
from doral.logs.log import SKIPPED, Log
from doral.planning.earnings import earn, earnings_of
from doral.planning.recommendation import recommended
from doral.planning.values import chances_of
from doral.simulation.api import made_policies
from doral.simulation.scenario.from_log import world_of
from doral.simulation.world.truth import make_truth
from tests.inference.test_cells import kits
from tests.logs import HOUR, file_of, log_of
from tests.planning.plans import a_plan

FEW = ("doral-otf", "random", "oracle")


@pytest.fixture(scope="module")
def log() -> Log:
    return log_of(kits(), "status-quo", watched_after=300.0)


@pytest.fixture(scope="module")
def made(log: Log) -> doral.Plan:
    return doral.plan(log, policies=FEW, truths=12)


def test_the_answer_says_what_the_numbers_say(made: doral.Plan) -> None:
    assert made.earnings is not None
    best = recommended(made.earnings)
    assert made.recommendation.policy == (None if best is None else best.policy) == "doral-otf"
    assert "the same budget" in made.answer[0]
    assert "more positives" in made.answer[0]
    assert any("ait" in sentence for sentence in made.answer)
    assert made.problem.budget == pytest.approx(made.log.paid.sum())
    assert made.problem.horizon == len(made.log)
    assert made.problem.deadline == made.deadline
    worths = [one.worth.value for one in made.earnings.policies]
    assert worths == sorted(worths, reverse=True)


def test_the_same_seed_gives_the_same_plan_on_any_number_of_workers(log: Log, made: doral.Plan) -> None:
    again = doral.plan(log, policies=FEW, truths=12, n_jobs=2)
    other = doral.plan(log, policies=FEW, truths=12, seed=1)
    assert again.earnings == made.earnings != other.earnings
    assert again.answer == made.answer


def test_a_plan_is_plain_values_and_a_folder(made: doral.Plan, tmp_path: Path) -> None:
    page = made.save(tmp_path / "plan")
    stored = json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8"))
    assert page.name == "index.html"
    assert stored["answer"] == list(made.answer)
    assert doral.Problem.from_dict(json.loads((tmp_path / "plan" / "problem.json").read_text())) == made.problem
    assert made.answer[0] in repr(made)
    assert made.answer[0].split(",")[0] in made.text()


def test_budget_horizon_and_deadline_are_those_that_are_given(log: Log) -> None:
    wanted = doral.plan(log, policies=["random"], truths=4, budget=100, horizon=400, deadline="30h")
    assert (wanted.problem.budget, wanted.problem.horizon, wanted.problem.deadline) == (100.0, 400, 30 * HOUR)
    assert "a budget of 100" in wanted.answer[0]
    assert wanted.earnings is not None
    spend = wanted.earnings.of(STATUS_QUO).spend
    assert spend == pytest.approx(100.0, rel=0.15)  # as many of everything, as far as the money goes
    for given in ({"budget": -1}, {"horizon": 0}, {"deadline": "soon"}, {"truths": 1}, {"n_jobs": 0}, {"seed": -1}):
        with pytest.raises(InvalidValue, match=next(iter(given))):
            doral.plan(log, policies=["random"], **given)
    with pytest.raises(DoralError, match="nonsense"):
        doral.plan(log, policies=["nonsense"])
    with pytest.raises(InvalidValue, match="read already"):
        doral.plan(log, arm="arm")


@pytest.mark.parametrize("kind", ["successes", "amounts"])
def test_intervals_hold_what_is_truly_earned(kind: str) -> None:
    """`benchmarks/earnings_coverage.py` measures it; here, intervals that ignore the log's own luck would fail."""
    scenario = kits() if kind == "successes" else kits(noise="gaussian", noise_sd=0.5)
    policies = made_policies(["oracle"])
    true = float(doral.simulate("oracle", scenario, runs=100).expected("kits", "oracle").mean())
    truth = make_truth(scenario, seed=0, run=0)
    held, too_narrow = [], []
    for run in range(30):
        log = log_of(scenario, "status-quo", run=run, seed=3)
        asked = asked_of(log, deadline=60 * HOUR, budget=scenario.problem.budget)
        chances = chances_of(log)
        world = world_of(log, asked, truths_of(log, deadline=60 * HOUR, n=40, seed=run))
        found, _ = earn(world, policies, chances, truths=16, seed=run)
        said = earnings_of(found, arrivals=asked.arrivals, budget=asked.problem.budget, unit="")
        today = float((truth.arrived[:, None] * chances * truth.counted[0]).sum())
        one, quo = said.of("oracle"), said.of(STATUS_QUO)
        assert one.more is not None
        held += [one.worth.low <= true <= one.worth.high, quo.worth.low <= today <= quo.worth.high]
        held.append(one.more.low <= true - today <= one.more.high)
        usual = doral.simulate("oracle", world.usual(), runs=8)
        worth = usual.expected(world.name, "oracle")
        too_narrow.append(abs(worth.mean() - true) <= 2.4 * worth.std(ddof=1) / np.sqrt(8))
    assert np.mean(held) >= 0.87
    assert np.mean(too_narrow) < 0.7


def test_policies_that_are_the_same_cannot_be_told_apart(log: Log) -> None:
    twice: list[Any] = ["random", doral.policy("random", label="random, again")]
    found = doral.plan(log, policies=twice, truths=12).earnings
    assert found is not None
    gap = found.difference("random", "random, again")
    assert gap.low <= 0.0 <= gap.high
    assert found.difference("random, again", "random").value == -gap.value


def test_a_log_without_answers_says_so(log: Log) -> None:
    nothing = np.full(len(log), np.inf)
    silent = replace(log, delay=nothing, reward=np.full(len(log), np.nan))
    made = doral.plan(silent)
    assert made.earnings is None
    assert "Nothing was answered yet" in made.answer[0]
    assert made.recommendation.policy is None
    with pytest.raises(InvalidValue, match="no answers"):
        doral.Scenario.from_log(silent)


def test_a_scenario_from_a_log_is_the_one_it_came_from(tmp_path: Path) -> None:
    scenario = kits(means=[[0.2, 0.6], [0.5, 0.1]])
    problem = replace(scenario.problem, horizon=20_000, budget=20_000.0)
    log = log_of(replace(scenario, problem=problem), "status-quo")
    path = tmp_path / "log.csv"
    file_of(log).write_csv(path)
    again = doral.Scenario.from_log(path, deadline="60h")
    true = make_truth(scenario, seed=0, run=0).counted[0]
    order = [[again.problem.arm_index(arm) for arm in "ab"], [again.problem.context_index(one) for one in "xy"]]
    found = make_truth(again, seed=0, run=0).counted[0][np.ix_(order[1], order[0])]
    assert found == pytest.approx(true, abs=0.03)
    assert again.problem.costs[order[0]].tolist() == [1.0, 2.0]
    assert again.true_shares[order[1]] == pytest.approx([0.6, 0.4], abs=0.02)
    assert again.problem.deadline == 60 * HOUR
    assert again.problem.until == pytest.approx(20_000 * HOUR, rel=0.01)
    assert doral.Scenario.from_dict(json.loads(json.dumps(again.to_dict()))) == again


def test_prices_of_a_log(log: Log) -> None:
    assert list_prices(log).tolist() == [[1.0, 2.0], [1.0, 2.0]]
    elsewhere = replace(log, cost=np.where(log.arm == SKIPPED, 0.0, 3.0 + log.context))
    assert list_prices(elsewhere).tolist() == [[3.0, 3.0], [4.0, 4.0]]


# --- campaigns -----------------------------------------------------------------------------------------------------


def test_a_campaign_from_a_plan_has_lived_through_the_log(made: doral.Plan) -> None:
    log = made.log
    store = doral.open("memory://")
    campaign = made.create(store, "new", seed=5)
    assert campaign.report().spent_share == 0.0
    # The same things, entered one by one in the order of time by somebody who was there.
    assert log.start is not None
    begins = log.start.timestamp()
    assert made.recommendation.policy is not None
    lived = store.create("lived", made.problem, policy=made.recommendation.policy, seed=5, at=begins)
    came = (log.time + log.delay)[log.is_answered]
    times = np.concatenate([log.time, came])
    rows = np.concatenate([np.arange(len(log)), np.flatnonzero(log.is_answered)])
    ids: dict[int, str] = {}
    for i in np.argsort(times, kind="stable").tolist():
        row, at = int(rows[i]), begins + float(times[i])
        if row in ids:
            lived.feedback(ids[row], reward=float(log.reward[row]), at=at)
            continue
        arm, chance = int(log.arm[row]), float(log.probability[row])
        one = lived.record(
            log.contexts[log.context[row]],
            None if arm == SKIPPED else log.arms[arm],
            at,
            probability=None if np.isnan(chance) else chance,
        )
        ids[row] = one.id
    assert [d.arm for d in campaign.decide_many([{"context": one} for one in log.contexts] * 20)] == [
        d.arm for d in lived.decide_many([{"context": one} for one in log.contexts] * 20)
    ]


def test_a_long_log_is_entered_in_stretches(made: doral.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    store = doral.open("memory://")
    whole = made.create(store, "whole", seed=5).report()
    monkeypatch.setattr("doral.planning.campaign.STRETCH", 90)
    parts = made.create(store, "parts", seed=5).report()
    assert parts.decisions == whole.decisions
    assert parts.reward == whole.reward
    for one, other in zip(parts.arms, whole.arms, strict=True):
        assert (one.plays, one.answers, one.reward) == (other.plays, other.answers, other.reward)
        assert one.view.values == pytest.approx(other.view.values, rel=0.05, abs=0.01)


def test_an_exported_campaign_becomes_a_plan(tmp_path: Path) -> None:
    store = doral.open("memory://")
    problem = replace(kits().problem, horizon=300, budget=200.0, deadline=60.0)
    campaign = store.create("kits", problem, clock="rounds", seed=1)
    draws = np.random.default_rng(0)
    for round_ in range(250):
        decision = campaign.decide("x" if draws.random() < 0.6 else "y")
        if decision.arm is not None and draws.random() < 0.8:
            campaign.feedback(decision.id, reward=float(draws.random() < 0.4))
        assert round_ >= 0
    path = tmp_path / "decisions.parquet"
    campaign.export(path)
    made = doral.plan(path, policies=["random"], truths=4)
    assert len(made.log) == 250
    assert set(made.log.arms) <= {"a", "b"}
    assert made.log.told == "all"
    assert made.recommendation.policy is None  # random is no better than what was done
    with pytest.raises(InvalidValue, match="go on as today"):
        made.create(store, "again")
    again = made.create(store, "again", policy="doral-otf")
    assert again.report().spent_share == 0.0


def test_a_table_keeps_its_columns_where_it_is_wide() -> None:
    """Amounts of many digits with their intervals: cut at the end of a line, and not wrapped."""
    plan = a_plan()
    assert plan.earnings is not None
    large = [
        replace(one, worth=Estimate(1e12, 1e11, 1e13), more=one.more and Estimate(-1e12, -1e13, 1e11))
        for one in plan.earnings.policies
    ]
    lines = replace(plan, earnings=replace(plan.earnings, policies=tuple(large))).text().splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("Earnings over")) + 2
    rows = lines[begin : begin + len(large)]
    assert len({line.index("(100,000,000,000") for line in rows}) == 1
    assert all(len(line) <= 100 for line in lines)


def test_a_deadline_for_which_no_decision_was_watched_is_refused_before_the_work() -> None:
    days = [f"2026-03-{day:02d}" for day in range(1, 29)]
    came = [day if place % 3 else None for place, day in enumerate(days)]
    rewards = [None if day is None else 1.0 for day in came]
    log = doral.read_log({"time": days, "arm": ["a", "b"] * 14, "reward": rewards, "answered_at": came})
    stages: list[str] = []
    with pytest.raises(InvalidValue, match="watched for so long"):
        doral.plan(log, deadline="9999h", policies=FEW, on_progress=lambda _, stage: stages.append(stage))
    assert stages == ["reading"]
