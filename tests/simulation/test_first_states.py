"""First states that are copied are those that are made, to the bit; what a run does to its copy stays there."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tests.small_worlds import MIXED_LAWS, make_scenario

import doral
from doral.engine import setup
from doral.engine.options import POLICY_NAMES, PolicyOptions, make_policy, policy
from doral.engine.setup import Blueprint, FirstStates, first_state
from doral.pacing import Pacer, solve
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.oracle import true_return_table
from doral.simulation.world.truth import make_truth

DRAWN = make_scenario(theta=None, features="drawn", delays=MIXED_LAWS)
GIVEN = make_scenario(costs=(1.0, 2.0, 1.0, 3.0, 1.0), shares=None)
OPTIONS = [
    *(make_policy(name) for name in POLICY_NAMES),
    policy("doral-otf", features="none", label="without features"),
    policy("doral-otf", outcome_split=0.5, label="telling"),
    policy("doral-otf", half_life=100.0, label="forgetful"),
    policy("doral", censoring="min_age", label="min_age"),
]


def _bits(tree: Any) -> list[Any]:
    return [
        _bits(one)
        if hasattr(one, "_fields")
        else (one.dtype, one.shape, one.tobytes())
        if isinstance(one, np.ndarray)
        else repr(one)
        for one in tree
    ]


def _blueprint(options: PolicyOptions, scenario: Scenario, *, seed: int, run: int) -> Blueprint:
    truth = make_truth(scenario, seed=seed, run=run)
    oracle = scenario.once(true_return_table) if options.return_probability == "oracle" else None
    return Blueprint(
        options=options,
        problem=scenario.problem,
        seed=seed,
        run=run,
        given_features=truth.features,
        oracle=oracle,
        true_values=truth.counted,
    )


@pytest.mark.parametrize("scenario", [DRAWN, GIVEN], ids=["drawn", "given"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options.name)
def test_a_copy_is_what_would_be_made(options: PolicyOptions, scenario: Scenario) -> None:
    states = FirstStates()
    for seed, run in ((0, 0), (2**53, 7), (3, 10**6)):
        blueprint = _blueprint(options, scenario, seed=seed, run=run)
        made, copy = first_state(blueprint), states.block(blueprint).tree
        assert type(copy) is type(made)
        assert _bits(copy) == _bits(made)
        for array in (copy.now, copy.ridge.weight, copy.tau, copy.ring):
            array.view(np.uint8)[:] = 255  # a run leaves nothing as it was


def test_given_return_probabilities_are_not_copied() -> None:
    blueprint = _blueprint(policy("doral/literal"), GIVEN, seed=0, run=0)
    states = FirstStates()
    assert states.block(blueprint).tree.known_returns is blueprint.oracle


def test_no_more_policies_are_remembered_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "MOST_POLICIES", 3)
    states = FirstStates()
    for penalty in (1.0, 2.0, 3.0, 4.0, 1.0):
        blueprint = _blueprint(policy("doral-otf", penalty=penalty), DRAWN, seed=1, run=2)
        assert _bits(states.block(blueprint).tree) == _bits(first_state(blueprint))
        assert len(states._templates) <= 3


def test_runs_are_the_same_one_by_one_in_any_order_and_in_threads() -> None:
    names = ["doral-otf", "doral", "d-lints"]
    together = doral.simulate(names, DRAWN, runs=6, n_jobs=3).runs()
    assert together.equals(doral.simulate(names, DRAWN, runs=6).runs())
    for run in (5, 0, 3):
        alone = doral.simulate(names, dataclasses.replace(DRAWN), runs=1, first_run=run).runs()
        assert alone.equals(together.filter(together["run"] == run))


def test_one_pacer_solves_table_after_table() -> None:
    rng = np.random.default_rng(4)
    costs, shares = rng.choice([1.0, 2.0, 5.0], 6), rng.dirichlet(np.ones(80))
    depths, caps = rng.integers(0, 2, 80), np.array([0.8, 0.5])
    pacer = Pacer(costs=costs, shares=shares, rate=0.8, caps=caps, depths=depths)
    for _ in range(5):
        values = rng.normal(0.3, 0.5, (80, 6))
        ours = pacer.solve(values)
        alone = solve(values=values, costs=costs, shares=shares, rate=0.8, caps=caps, depths=depths)
        assert (ours.value, ours.price) == (alone.value, alone.price)
        assert np.array_equal(ours.play, alone.play)
