"""The policy that knows the truth: the ceiling of what can be learned on the same draws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import doral
from doral import delays
from doral.engine.setup import Blueprint, first_state
from doral.errors import InvalidValue
from doral.simulation.world.truth import make_truth
from tests.engine.cases import SMALL_WORLDS, UNIT, URGENT
from tests.engine.test_engine_equals_twin import compare


def test_it_earns_what_the_oracle_expects() -> None:
    """In expectation: with a scarce budget and known shares, all but the last few units."""
    scenario = dataclasses.replace(
        UNIT, problem=dataclasses.replace(UNIT.problem, horizon=20_000, budget=9_000.0), theta=None, features="drawn"
    )
    result = doral.simulate(["oracle", "doral-otf", "d-linucb"], scenario, runs=10)
    best = result.summary().filter(metric="within_deadline", policy="oracle").row(0, named=True)
    assert 0.995 < best["expected_share"] <= 1.0 + 1e-9
    for other in ("doral-otf", "d-linucb"):
        difference = result.expected("unit", "oracle") - result.expected("unit", other)
        assert (difference > 0.0).all()


def test_it_learns_nothing_and_follows_the_world() -> None:
    """With no limit to the budget, the arm of every round is the best of its context in that phase."""
    rich = dataclasses.replace(
        URGENT.problem, budget=1e6, contexts=(doral.Context("x", 0.5), doral.Context("y", 0.5)), reserves=()
    )
    scenario = dataclasses.replace(URGENT, problem=rich, shares=(0.5, 0.5), noise_sd=5.0, phases=4)
    result = doral.simulate("oracle", scenario, runs=1, seed=3, keep_decisions=True)
    counted = make_truth(scenario, seed=3, run=0).counted
    log = result.outcomes[0].log
    assert log is not None
    best = counted.argmax(axis=2)
    assert len({tuple(row) for row in best.tolist()}) > 1  # the phases differ
    phase = (log.round - 1) // (rich.horizon // 4)
    worthy = counted.max(axis=2) > 0.0
    assert (log.arm == best[phase, log.context]).all()
    assert log.round.size >= 0.9 * worthy.mean() * rich.horizon


@pytest.mark.parametrize("scenario", SMALL_WORLDS, ids=lambda one: one.name)
def test_the_twin_wants_the_same_in_every_run(scenario: doral.Scenario) -> None:
    for run in range(3):
        assert compare(doral.policy("oracle"), scenario, run=run).decisions > 0


def test_arms_that_do_harm_are_not_played() -> None:
    problem = dataclasses.replace(UNIT.problem, horizon=300, budget=1_000.0)
    means = -np.ones((3, 5))
    means[1, 2] = 0.5
    scenario = doral.Scenario(name="harm", problem=problem, delays=delays.Fixed(3), means=means)
    log = doral.simulate("oracle", scenario, runs=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    assert set(zip(log.context.tolist(), log.arm.tolist(), strict=True)) == {(1, 2)}


def test_a_campaign_cannot_have_it() -> None:
    says = "sampling = 'oracle': needs the true values, which only a simulation has"
    with doral.open("memory://") as store, pytest.raises(InvalidValue, match=says):
        store.create("mine", problem=UNIT.problem, policy="oracle")


def test_it_takes_people_whose_silence_is_an_answer() -> None:
    result = doral.simulate(["oracle", "doral-otf"], "people/silent", runs=2)
    best = result.summary().filter(metric="within_deadline", policy="oracle").row(0, named=True)
    assert 0.98 < best["expected_share"] <= 1.0 + 1e-9
    assert (result.expected("people/silent", "oracle") > result.expected("people/silent", "doral-otf")).all()


@pytest.mark.parametrize("shape", [(1, 4, 9), (2, 5, 9), (5, 9)])
def test_known_return_probabilities_have_a_row_for_every_arm(shape: tuple[int, ...]) -> None:
    """With too few of them compiled code would read foreign memory."""
    options = doral.policy("doral", return_probability="oracle")
    with pytest.raises(InvalidValue, match=r"shape of oracle.*1 or 3 contexts, 5 arms, ages"):
        first_state(Blueprint(options=options, problem=UNIT.problem, seed=1, oracle=np.zeros(shape)))
