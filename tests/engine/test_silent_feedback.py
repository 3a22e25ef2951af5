"""Silent feedback, learned as it comes, and planned first tries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import doral
from doral.engine.decide import PLAYED_FIRST
from doral.engine.engine import Engine, Heard
from doral.engine.setup import Blueprint
from doral.errors import InvalidValue
from doral.estimators.positives import BY
from doral.estimators.ridge import COUNT, REWARD

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)


def silent_problem(**changes: Any) -> doral.Problem:
    words: dict[str, Any] = {
        "arms": [doral.Arm("a", features=[1.0]), doral.Arm("b", features=[1.0], cost=2.0)],
        "contexts": [doral.Context("soon", 0.5, deadline=10), doral.Context("some day", 0.5)],
        "budget": 10_000,
        "horizon": 10_000,
        "deadline": 60,
        "feedback": "silent",
        **changes,
    }
    return doral.Problem(**words)


def played(problem: doral.Problem, *, rate: float, mean: float, n: int) -> Engine:
    """Both contexts in turn, always the same arm; the share `rate` converts, after exponential delays."""
    rng = np.random.default_rng(1)
    engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=problem, seed=1))
    due: dict[int, list[int]] = {}
    for clock in range(1, n + 1):
        engine.answer([Heard(number, 1.0, float(clock)) for number in due.pop(clock, [])])
        list(engine.decide_many([clock % 2], ALL_ARMS, [float(clock)], recorded=[(0, 1.0)]))
        if rng.random() < rate:
            delay = max(1, math.ceil(rng.exponential(mean)))
            due.setdefault(clock + delay, []).append(clock - 1)
    engine.state.now["read_at"] = 0
    engine.pass_time(n + 1.0)
    return engine


def test_what_is_learned_is_what_comes_by_the_deadline_of_the_context() -> None:
    """Answers with a shorter deadline say nothing of later ages: the law of delays is that of all answers."""
    mean, rate = 20.0, 0.5
    engine = played(silent_problem(), rate=rate, mean=mean, n=6_000)
    tally, ages, shares = engine.state.tally, engine.state.curves.ages, engine.state.silence.shares[0]
    law = 1.0 - np.exp(-ages / mean)
    assert np.abs(shares - law / law[-1]).max() < 0.05  # rounds are whole: half a round, and what chance does
    for j, deadline in enumerate((10.0, 60.0)):
        by_deadline = rate * -math.expm1(-deadline / mean)
        assert tally[REWARD, j, 0] / tally[COUNT, j, 0] == pytest.approx(by_deadline, rel=0.1)
    by, last = engine.state.silence.counts[BY, 0], int((ages <= 10.0).sum())
    assert by[last] < 0.8 * by[last - 1]  # from here on, only half of the decisions are asked


def test_silences_count_at_a_refresh_and_answers_at_once() -> None:
    engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=silent_problem(), seed=1))
    list(engine.decide_many([1], ALL_ARMS, [1.0], recorded=[(0, 1.0)]))
    engine.answer([Heard(0, 1.0, 5.0)])
    assert engine.state.tally[:, 1, 0].tolist() == [1.0, 1.0, 1.0]  # an answered decision is a whole trial
    for clock in range(6, 101):
        engine.decide(0, ALL_ARMS, float(clock))
    assert engine.state.tally[COUNT, 1, 0] == 1.0  # by now a whole trial
    assert (engine.state.tau == 1.0).all()
    assert not engine.state.tau_error[:, :2].any()


def test_trials_need_return_curves() -> None:
    with pytest.raises(InvalidValue, match="learner = 'early': counts trials when return curves are read"):
        doral.policy("doral-otf", learner="early", return_probability="one", cutoff=20.0)
    with pytest.raises(InvalidValue, match="outcome_split"):
        doral.policy("doral-otf", learner="early", outcome_split=0.5)


@pytest.mark.parametrize(("budget", "tries"), [(10_000.0, 4), (450.0, 3), (100.0, 0)])
def test_every_arm_is_tried_a_few_times_if_the_budget_allows_for_it(budget: float, tries: int) -> None:
    """Before any answer, four times: from two hundredths of the budget, 3 for a try of each, and not beyond it."""
    problem = silent_problem(budget=budget, horizon=100)
    engine = Engine(Blueprint(options=doral.policy("doral-otf", start_share=0.02), problem=problem, seed=1))
    made = [engine.decide(clock % 2, ALL_ARMS, float(clock)) for clock in range(1, 31)]
    first = [one.arm for one in made if one.reason == PLAYED_FIRST]
    assert [first.count(arm) for arm in (0, 1)] == [tries, tries]
    assert all(sorted(first[i : i + 2]) == [0, 1] for i in range(0, len(first), 2))  # the fewest first
    if tries:
        assert all(made[i].reason == PLAYED_FIRST for i in range(2))


def test_a_first_try_is_no_faster_than_the_budget() -> None:
    """At a quarter of a unit per round, an arm that costs 2 is tried in an eighth of the rounds."""
    problem = silent_problem(budget=2_500.0, horizon=10_000)
    options = doral.policy("doral-otf", start_share=1.0)
    engine = Engine(Blueprint(options=options, problem=problem, seed=1))
    made = [engine.decide(clock % 2, ALL_ARMS, float(clock)) for clock in range(1, 25)]
    played = [one for one in made if one.reason == PLAYED_FIRST]
    assert len(played) < 12
    assert {one.arm for one in played} == {0, 1}
    for one in played:
        assert one.probability == pytest.approx(0.25 if one.arm == 0 else 0.125, rel=0.02)


@pytest.mark.parametrize("rate", [0.3, 0.9])
@pytest.mark.parametrize("deadline", [60.0, 6_000.0])
def test_answers_before_their_trials_do_not_raise_estimates_beyond_rewards(rate: float, deadline: float) -> None:
    """Answers come at once: by the law of delays, decisions would still be small parts of a trial."""
    problem = silent_problem(deadline=deadline)
    engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=problem, seed=1))
    rng = np.random.default_rng(2)
    highest, due = 0.0, dict[int, list[int]]()
    for clock in range(1, 400):
        engine.answer([Heard(number, 1.0, float(clock)) for number in due.pop(clock, [])])
        arm = clock % 2
        list(engine.decide_many([clock // 2 % 2], ALL_ARMS, [float(clock)], recorded=[(arm, 1.0 + arm)]))
        if rng.random() < rate:
            due.setdefault(clock + 1, []).append(clock - 1)  # at once, when the decision is no trial yet
        tally, ridge = engine.state.tally, engine.state.ridge
        assert (tally[COUNT] >= tally[REWARD] - 1e-9).all()
        highest = max(highest, float(np.abs(ridge.estimate[:2, :2]).max()))
    assert 0.2 < highest <= 1.0 + 1e-9


@pytest.mark.parametrize("changes", [{"prior": "fixed"}, {"start_share": 1.5}])
def test_what_a_start_needs(changes: dict[str, Any]) -> None:
    words = {"bonus": "corrected", "start_share": 0.05, **changes}
    with pytest.raises(InvalidValue, match="start_share"):
        doral.policy("doral-otf", **words)
