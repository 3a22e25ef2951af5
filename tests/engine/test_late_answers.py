"""Answers recorded after their time, and decisions made elsewhere, teach as they would have in time."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import doral
from doral.engine.engine import ASK, Engine, Heard
from doral.engine.events import AFTER_CUTOFF, GONE, LEARNED, REPEATED
from doral.engine.setup import Blueprint
from doral.estimators.ridge import REWARD

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)
DEADLINE = 40.0
PROBLEM = doral.Problem(
    arms=[doral.Arm("a", features=[1.0, 0.1]), doral.Arm("b", features=[0.2, 1.0], cost=0.5)],
    contexts=["x", "y", "z"],
    budget=10_000,
    horizon=10_000,
    deadline=DEADLINE,
)
POLICIES: dict[str, Any] = {
    "doral-otf": doral.policy("doral-otf", cutoff=DEADLINE),
    "d-linucb": doral.policy("d-linucb"),
    "thinned": doral.policy("doral", screening="none", learner="thinned"),
    "scaled": doral.policy("doral", screening="none", learner="scaled"),
    "split": doral.policy("doral-otf", cutoff=DEADLINE, outcome_split=0.5),
    "race": doral.policy("doral", min_answers=3),
    "early": doral.policy("doral-otf", cutoff=DEADLINE, learner="early"),
}


def stream(n: int) -> list[tuple[float, int, int, float, float]]:
    """(time, context, arm, reward, delay); a third never answers, some answer too late."""
    rng = np.random.default_rng(5)
    delays = np.where(rng.random(n) < 0.3, math.inf, rng.exponential(25.0, n))
    return [
        (float(i + 1), int(rng.integers(3)), int(rng.integers(2)), float(rng.random()), float(delays[i]))
        for i in range(n)
    ]


def play(policy: Any, recorded: Any, n: int = 400) -> tuple[Engine, dict[int, int]]:
    """Decisions as they were made; each answer is recorded at the time that `recorded` says, at or after its own."""
    engine = Engine(Blueprint(options=policy, problem=PROBLEM, seed=1))
    decisions = stream(n)
    answers = sorted(
        (recorded(number, time + delay), number)
        for number, (time, _, _, _, delay) in enumerate(decisions)
        if delay < math.inf and recorded(number, time + delay) <= n
    )
    outcomes: dict[int, int] = {}
    following = iter([*answers, (math.inf, -1)])
    when, number = next(following)
    for time, context, arm, _, _ in decisions:
        while when <= time:
            made, of, by, reward, delay = decisions[number]
            recalled = made + delay < engine.clock
            heard = Heard(number, reward, made + delay, ASK, recalled, of, by, delay)
            outcomes[number] = engine.answer([heard])[0]
            when, number = next(following)
        list(engine.decide_many([context], ALL_ARMS, [time], recorded=[(arm, 1.0 if arm == 0 else 0.5)]))
    engine.state.now["read_at"] = 0
    engine.pass_time(n + 500.0)
    return engine, outcomes


def after_an_hour(number: int, due: float) -> float:
    return due + (number % 3) * 60.0


def all_at_the_end(number: int, due: float) -> float:
    return due if number % 2 else max(due, 390.0)


@pytest.mark.parametrize("recorded", [after_an_hour, all_at_the_end])
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_late_record_is_learned_as_if_it_had_been_in_time(name: str, recorded: Any) -> None:
    late, second = play(POLICIES[name], recorded)
    in_time, first = play(POLICIES[name], lambda number, due: due if number in second else math.inf)
    assert set(first) == set(second)
    assert len(first) > 150
    if name == "race":  # it ends when it has heard enough, and only then is the cut-off known
        return
    assert all((first[number] == LEARNED) == (second[number] == LEARNED) for number in first)
    one, other = in_time.state, late.state
    assert np.array_equal(one.curves.at_risk, other.curves.at_risk)
    assert np.array_equal(one.curves.returned, other.curves.returned)
    if name == "early":
        assert np.array_equal(one.silence.passed, other.silence.passed)
        assert np.array_equal(one.silence.counts, other.silence.counts)
        assert one.silence.counts.sum() > 100
    if name != "split":  # there, an answer counts for more or less by when it is weighed
        assert np.allclose(one.tally, other.tally, rtol=0, atol=1e-9)
    if name in ("d-linucb", "thinned"):
        assert np.allclose(one.ridge.target, other.ridge.target, rtol=0, atol=1e-9)
        assert np.allclose(one.ridge.weight, other.ridge.weight, rtol=0, atol=1e-9)
        assert np.allclose(one.ridge.estimate, other.ridge.estimate, rtol=0, atol=1e-9)


def test_what_came_after_its_own_deadline_teaches_nothing_early() -> None:
    """Recorded in time or not: what is learned is by the deadline of the context, not by the longest one."""
    contexts = (doral.Context("soon", deadline=10), doral.Context("some day"))
    problem = dataclasses.replace(PROBLEM, contexts=contexts, feedback="silent")
    states = []
    for recorded in (33.0, 64.0):  # before, and after, the decision has passed the ages in question
        engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=problem, seed=1))
        for time in range(1, 101):
            if time == recorded:
                late = [Heard(n, 1.0, 31.0 - n, ASK, True, n, 0, 30.0 - 2 * n) for n in (0, 1)]
                assert engine.answer(late) == [AFTER_CUTOFF, LEARNED]
            list(engine.decide_many([(time - 1) % 2], ALL_ARMS, [float(time)], recorded=[(0, 1.0)]))
        engine.state.now["read_at"] = 0
        engine.pass_time(200.0)
        states.append(engine.state)
    one, other = states
    assert np.array_equal(one.silence.passed, other.silence.passed)
    assert np.array_equal(one.silence.counts, other.silence.counts)
    assert one.silence.counts.any()
    assert np.allclose(one.tally, other.tally, rtol=0, atol=1e-12)
    assert one.tally[REWARD].tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_twice_is_once_and_too_old_is_too_old() -> None:
    engine = Engine(Blueprint(options=doral.policy("d-linucb"), problem=PROBLEM, seed=1))
    for round_ in range(1, 101):
        engine.decide(0, ALL_ARMS, float(round_))
    old = Heard(95, 1.0, 99.0, ASK, True, 0, 0, 3.0)
    assert engine.answer([old, old]) == [LEARNED, REPEATED]
    assert engine.answer([Heard(0, 1.0, 60.0, ASK, True, 0, 0, 59.0)]) == [AFTER_CUTOFF]
    assert engine.answer([Heard(1, 1.0, 99.0)]) == [GONE]


def test_what_the_log_says_of_an_answer_is_what_happens() -> None:
    """Another engine with another cut-off has learned what this one would not, and the other way round."""
    engine = Engine(Blueprint(options=doral.policy("d-linucb"), problem=PROBLEM, seed=1))
    engine.decide(0, ALL_ARMS, 1.0)
    engine.decide(0, ALL_ARMS, 2.0)
    before = engine.state.ridge.target.copy()
    assert engine.answer([Heard(0, 1.0, 3.0, AFTER_CUTOFF)]) == [AFTER_CUTOFF]
    assert np.array_equal(engine.state.ridge.target, before)
    assert engine.answer([Heard(1, 1.0, 2.0 + DEADLINE + 1, LEARNED)]) == [LEARNED]
    assert engine.state.ridge.target.sum() == before.sum() + 1.0


@pytest.mark.parametrize("name", ["doral-otf", "d-linucb", "scaled", "thinned", "early", "race"])
def test_decisions_made_elsewhere_teach_like_ones_own(name: str) -> None:
    own, _ = play(POLICIES[name], lambda _, due: due, 200)
    recorded = Engine(Blueprint(options=POLICIES[name], problem=PROBLEM, seed=1))
    decisions = stream(200)
    due = sorted((time + delay, number) for number, (time, *_, delay) in enumerate(decisions) if time + delay <= 200)
    following = iter([*due, (math.inf, -1)])
    when, number = next(following)
    for time, context, arm, _, _ in decisions:
        while when <= time:
            recorded.answer([Heard(number, decisions[number][3], when)])
            when, number = next(following)
        assert recorded.record(context=context, arm=arm, cost=0.0, time=time, clock=time, is_arrival=False) == time - 1
    assert (recorded.budget_left, recorded.state.now["round"][0], recorded.played) == (PROBLEM.budget, 0, 200)
    recorded.pass_time(700.0)
    if name != "race":
        assert np.array_equal(own.state.tally, recorded.state.tally)
        assert np.array_equal(own.state.curves.at_risk, recorded.state.curves.at_risk)
        assert np.array_equal(own.state.curves.returned, recorded.state.curves.returned)
    assert recorded.state.now["opened"][0] == 200.0


def test_a_long_history_does_not_fill_the_ring() -> None:
    engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=PROBLEM, seed=1))
    for time in range(1, 20_001):
        engine.record(context=0, arm=time % 2, cost=0.0, time=float(time), clock=float(time), is_arrival=False)
    assert engine.state.ring.size <= 2048
    assert engine.decide(0, ALL_ARMS, 20_001.0).round == 1


def test_a_clock_that_is_set_back() -> None:
    engine = Engine(Blueprint(options=doral.policy("doral-otf"), problem=PROBLEM, seed=1))
    for round_ in range(1, 6):
        engine.decide(0, ALL_ARMS, float(round_))
    engine.decide(0, ALL_ARMS, 1e9)  # a host whose clock is wrong
    engine.set_clock(7.0)
    assert engine.clock == 7.0
    assert engine.state.ring["time"][:6].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    # All had left the cut-off: they are recalled, and count by their own age.
    heard = [Heard(number, 1.0, 9.0, ASK, True, 0, 0, 9.0 - time) for number, time in ((0, 1.0), (5, 7.0))]
    assert engine.answer(heard) == [LEARNED, LEARNED]
    engine.decide(0, ALL_ARMS, 10.0)
    assert engine.clock == 10.0
