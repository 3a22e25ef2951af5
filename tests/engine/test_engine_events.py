"""The engine's three events, called directly: whatever happens in whatever order, its promises hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doral
from doral._arrays import Bits, leaves
from doral.delays import Fixed, Geometric
from doral.engine import setup
from doral.engine.engine import Engine, Heard
from doral.engine.events import AFTER_CUTOFF, GONE, LEARNED, REPEATED
from doral.engine.explain import view_race
from doral.engine.options import PolicyOptions, policy, policy_of
from doral.engine.setup import Blueprint
from doral.engine.state import State
from doral.problem import Arm, Problem
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world import players

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)
N_ARMS, N_CONTEXTS = 4, 3

POLICIES = (
    policy("doral", min_answers=2),
    policy("doral", min_answers=2, censoring="min_age", learner="scaled"),
    policy("doral", min_answers=2, censoring="kaplan_meier", learner="thinned"),
    policy("d-alp/literal"),
    policy("d-linucb"),
    policy("random"),
)


def make_problem(
    *, budget: float = 60.0, horizon: int = 150, costs: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
) -> Problem:
    rng = np.random.default_rng(4)
    return Problem(
        arms=[Arm(f"a{i}", features=rng.uniform(0.0, 1.0, 2), cost=cost) for i, cost in enumerate(costs)],
        contexts={"x": 0.5, "y": 0.3, "z": 0.2},
        budget=budget,
        horizon=horizon,
        deadline=15.0,
    )


def flat(state: State) -> dict[str, bytes]:
    """All numbers of a state."""
    return {name: array.tobytes() for name, array in leaves(state)}


def start_with_room_for(capacity: int, patch: pytest.MonkeyPatch) -> None:
    """Let first states have room for so many decisions, and delays of an arm."""
    patch.setattr(setup, "FIRST_CAPACITY", capacity)


class Due(NamedTuple):
    """An answer on its way."""

    decision: int
    arm: int
    reward: float


class Driver:
    """Plays a policy round by round; keeps what was decided and when answers are due."""

    def __init__(self, options: PolicyOptions, problem: Problem) -> None:
        self.problem = problem
        self.engine = Engine(Blueprint(options=options, problem=problem, seed=11))
        self.choices: list[int] = []
        self.ledger: list[float] = []
        self.due: dict[int, list[Due]] = {}
        self.rng = np.random.default_rng(8)

    @property
    def state(self) -> State:
        return self.engine.state

    def answer(self, decision: int, reward: float, clock: int) -> int:
        [outcome] = self.engine.answer([Heard(decision, reward, float(clock))])
        return outcome

    def arrive(self, clock: int, context: int, available: Bits = ALL_ARMS) -> int:
        decided = self.engine.decide(context, available, float(clock))
        self.choices.append(decided.arm)
        self.ledger.append(float(self.state.now["budget_left"][0]))
        # draws are made whether or not they are used: what happens later does not depend on it
        delay, reward = int(self.rng.integers(1, 25)), float(self.rng.normal(0.6, 0.3))
        if decided.arm >= 0:
            self.due.setdefault(clock + delay, []).append(Due(decided.number, decided.arm, reward))
        return decided.arm

    def play(self, rounds: int, *, order: Callable[[Due], int] | None = None, repeat: bool = False) -> None:
        contexts = np.random.default_rng(9).choice(N_CONTEXTS, rounds, p=self.problem.shares)
        for clock in range(1, rounds + 1):
            answers = self.due.pop(clock, [])
            for decision, _, reward in answers if order is None else sorted(answers, key=order):
                first = self.answer(decision, reward, clock)
                assert first in (LEARNED, AFTER_CUTOFF, GONE)
                if repeat:
                    before = flat(self.state)
                    again = self.answer(decision, reward + 1.0, clock)
                    assert again == (GONE if first == GONE else REPEATED)
                    assert flat(self.state) == before
            self.arrive(clock, int(contexts[clock - 1]))


@pytest.mark.parametrize("options", POLICIES, ids=lambda options: f"{options.name}")
def test_repeated_feedback_counts_once(options: PolicyOptions) -> None:
    """A second answer to the same decision changes no number of the state, and is reported as such."""
    once, twice = Driver(options, make_problem()), Driver(options, make_problem())
    once.play(150)
    twice.play(150, repeat=True)
    assert once.choices == twice.choices
    assert flat(once.state) == flat(twice.state)


def test_an_answer_after_the_cutoff_is_late_and_still_feeds_the_return_curve() -> None:
    options = policy("doral", screening="none", cutoff=5.0)
    driver = Driver(options, make_problem(budget=1e6))
    driver.arrive(1, 0)
    estimate = driver.state.ridge.estimate.copy()
    assert driver.answer(0, 1.0, 7) == AFTER_CUTOFF
    assert (driver.state.ridge.estimate == estimate).all()
    for clock in range(8, 80):
        driver.arrive(clock, 0)
    assert driver.state.curves.returned.sum() >= 1.0
    assert driver.answer(0, 1.0, 80) == GONE


@settings(max_examples=60)
@given(index=st.integers(0, len(POLICIES) - 1), seed=st.integers(0, 10**6))
def test_the_order_within_a_tick_changes_no_later_decision(index: int, seed: int) -> None:
    """Rounding differs with the order, so scores may differ in their last digits; choices do not.

    One exception is meant: while delays race as they return, they are dealt into baskets in the order in which they
    came, so answers of the same arm keep theirs here.
    """
    options = POLICIES[index]
    forwards, backwards = (Driver(options, make_problem(budget=90.0)) for _ in range(2))
    for driver in (forwards, backwards):
        driver.rng = np.random.default_rng(seed)
    forwards.play(150)
    deals_in_order = options.screening == "race" and options.censoring == "returned"
    backwards.play(150, order=(lambda due: -due.arm) if deals_in_order else (lambda due: -due.decision))
    assert forwards.choices == backwards.choices
    assert forwards.state.ridge.estimate == pytest.approx(backwards.state.ridge.estimate, abs=1e-9)


EVENTS = st.lists(
    st.tuples(
        st.integers(0, N_CONTEXTS - 1),
        st.lists(st.integers(0, 1), min_size=N_ARMS, max_size=N_ARMS),  # availability
        st.integers(0, 3),  # time that passes
        st.lists(st.tuples(st.integers(0, 60), st.floats(-5.0, 5.0)), max_size=3),  # answers, to any decision
    ),
    min_size=1,
    max_size=80,
)


@settings(max_examples=60)
@given(
    events=EVENTS,
    index=st.integers(0, len(POLICIES) - 1),
    budget=st.floats(0.1, 30.0),
    costs=st.tuples(*[st.sampled_from([0.3, 0.7, 1.0, 2.5])] * N_ARMS),
)
def test_the_ledger_never_goes_below_zero(
    events: list[tuple[int, list[int], int, list[tuple[int, float]]]],
    index: int,
    budget: float,
    costs: tuple[float, ...],
) -> None:
    """Any arrivals, any availability, answers to any decision ever made, once or often, at any time."""
    driver = Driver(POLICIES[index], make_problem(budget=budget, costs=costs, horizon=60))
    clock = 0
    left = budget
    for context, available, passed, answers in events:
        clock += passed
        for decision, reward in answers:
            if decision < driver.state.now["next"][0]:
                driver.answer(decision, reward, clock)
        arm = driver.arrive(clock, context, np.array([available], dtype=np.uint8))
        if arm >= 0:
            assert available[arm] == 1
            assert costs[arm] <= left
            left -= costs[arm]
        assert driver.ledger[-1] == left >= 0.0
    assert sum(arm >= 0 for arm in driver.choices[60:]) == 0  # nothing after the horizon
    assert all(np.isfinite(value).all() for value in (driver.state.ridge.estimate, driver.state.ridge.norm))


@pytest.mark.parametrize("options", POLICIES, ids=lambda options: f"{options.name}")
@pytest.mark.parametrize("capacity", [1, 2, 8])
def test_growing_changes_no_decision(options: PolicyOptions, capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    roomy = Driver(options, make_problem())
    roomy.play(150)
    start_with_room_for(capacity, monkeypatch)
    tight = Driver(options, make_problem())
    assert tight.state.ring.size == capacity
    tight.play(150)
    assert tight.state.ring.size > capacity
    assert tight.choices == roomy.choices
    assert (tight.state.ridge.estimate == roomy.state.ridge.estimate).all()
    for field in ("budget_left", "cutoff"):
        assert tight.state.now[field] == roomy.state.now[field]
    assert view_race(tight.state) == view_race(roomy.state)


@pytest.mark.parametrize("censoring", ["returned", "min_age", "kaplan_meier", "instant"])
def test_growing_in_the_simulator_where_many_answers_come_in_one_round(
    censoring: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From room for a single delay on, with several answers of one arm in many rounds."""
    problem = make_problem(budget=5_000.0, horizon=3_000)
    delays = (Fixed(30), Fixed(29), Geometric(20), Geometric(19))
    options = policy_of("doral", {"censoring": censoring, "accept": 1, "min_answers": 10})
    growths: list[State] = []

    def grown(state: State) -> State:
        growths.append(state)
        return setup.grown(state)

    def played() -> doral.SimulationResult:
        # a scenario of its own: first states are kept with it
        scenario = Scenario(name="piled", problem=problem, delays=delays, theta=[[1.0, 0.5]] * N_CONTEXTS)
        return doral.simulate(options, scenario, runs=3, seed=2, keep_decisions=True)

    roomy = played()
    start_with_room_for(1, monkeypatch)
    monkeypatch.setattr(players, "grown", grown)
    tight = played()
    assert len(growths) > 3 * 4
    assert roomy.decisions().equals(tight.decisions())
    assert roomy.runs().equals(tight.runs())


def test_all_open_pulls_of_an_arm_may_answer_in_one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two questions of `is_full` a whole race may answer: there must be room for all of it."""
    start_with_room_for(4, monkeypatch)
    driver = Driver(policy("doral", min_answers=10**6, race_budget_share=1.0), make_problem(budget=1e6, horizon=500))
    for clock in range(1, 201):
        driver.arrive(clock, 0)
    assert driver.answer(0, 1.0, 300) == LEARNED
    with_room = driver.state
    for decision in range(1, driver.engine.played):
        assert driver.answer(decision, 1.0, 300) == LEARNED
    assert driver.state is with_room  # it did not have to grow meanwhile
    delays = driver.state.race.delays
    for arm in range(N_ARMS):
        answered = [300.0 - clock for clock in range(1, 201) if driver.choices[clock - 1] == arm]
        n = len(answered)
        assert delays.sums[arm, : n + 1].tolist() == pytest.approx(np.cumsum([0.0, *answered]).tolist())
    assert math.isinf(float(driver.state.now["cutoff"][0]))  # still racing
