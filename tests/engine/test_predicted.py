"""Values that are given, and so many tries of each arm at least, as the engine sees them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import doral
from doral.engine.decide import PLAYED_FIRST
from doral.engine.engine import Engine, Who
from doral.engine.options import policy as policy_by_name
from doral.engine.setup import PREDICTION_PREFIX, Blueprint
from doral.errors import InvalidValue
from doral.simulation.scenario.scenario import Scenario
from tests.engine.cases import MIXED, SILENT, UNIT
from tests.engine.test_engine_equals_twin import compare

TWO = [doral.Arm("a"), doral.Arm("b")]


class Nothing:
    """A model that is never asked."""

    def fit(self, x: Any, y: Any) -> None:
        raise AssertionError

    def predict(self, x: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("scenario", [UNIT, MIXED, SILENT], ids=lambda one: str(one.name))
def test_the_twin_tries_as_often(scenario: Scenario) -> None:
    options = policy_by_name("doral-otf", start_tries=9, start_share=0.3, label="tries")
    compare(options, scenario)


def test_every_arm_is_tried_as_often_as_is_asked() -> None:
    options = policy_by_name("doral-otf", start_tries=9, start_share=0.3)
    log = doral.simulate(options, UNIT, runs=1, keep_decisions=True).outcomes[0].log
    assert log is not None
    assert np.bincount(log.arm[:45]).tolist() == [9] * 5


def test_the_engine_serves_those_for_whom_most_is_predicted() -> None:
    """Arms cost the same and everything returns: whoever is among the best of those who came lately is served, with the
    arm of which most is said.
    """
    policy = doral.external(Nothing(), explore=0.0, reservoir=200, return_probability="one", cutoff=1.0)
    options = dataclasses.replace(policy.options, start_tries=0, start_share=0.0)
    problem = policy.problem_of(
        doral.Problem(
            arms=[doral.Arm("a"), doral.Arm("b"), doral.Arm("c")],
            person=["age"],
            budget=1_000,
            horizon=4_000,
            deadline=10,
        )
    )
    engine, rng = Engine(Blueprint(options=options, problem=problem, seed=1)), np.random.default_rng(2)
    said = rng.normal(0.5, 0.2, (2_000, 3))
    spent, wrong = 0, 0
    for i, predictions in enumerate(said):
        decided = engine.decide(0, np.zeros((1, 0), dtype=np.uint8), float(i), who=Who((50.0, *predictions)))
        if i >= 200:
            best = said[i - 199 : i + 1].max(axis=1)
            rho = (1_000 - spent) / (4_000 - i)
            price = np.quantile(best, 1.0 - rho)
            clear = abs(predictions.max() - price) > 0.02
            wrong += clear and (decided.arm >= 0) != (predictions.max() > price)
            wrong += decided.arm >= 0 and decided.arm != predictions.argmax()
        spent += decided.arm >= 0
    assert wrong == 0
    assert abs(spent - 500) < 60


def test_an_arm_without_a_prediction_is_valued_as_it_is_on_average() -> None:
    policy = doral.external(Nothing(), explore=0.0)
    problem = policy.problem_of(doral.Problem(arms=TWO, person=["age"], budget=50, horizon=400, deadline=10))
    engine = Engine(Blueprint(options=policy.options, problem=problem, seed=1))
    decided = engine.decide(0, np.zeros((1, 0), dtype=np.uint8), 0.0, who=Who((50.0, math.nan, math.nan)))
    assert decided.reason == PLAYED_FIRST or decided.arm < 0
    rows = slice(1, 2)
    assert engine.state.ridge.norm[rows, :2].min() > 0.0
    engine.decide(0, np.zeros((1, 0), dtype=np.uint8), 1.0, who=Who((50.0, 0.75, math.nan)))
    assert engine.state.ridge.estimate[2, 0] == 0.75
    assert engine.state.ridge.norm[2, 0] == 0.0 < engine.state.ridge.norm[2, 1]


def test_predictions_are_named_by_their_arms() -> None:
    policy = doral.external(Nothing())
    problem = doral.Problem(arms=TWO, person=["age"], budget=50, horizon=400, deadline=10)
    assert policy.problem_of(problem).person_names == ("age", f"{PREDICTION_PREFIX}a", f"{PREDICTION_PREFIX}b")
    with pytest.raises(InvalidValue, match="needs features that hold predictions"):
        Engine(Blueprint(options=policy.options, problem=problem, seed=1))
    cases: list[dict[str, Any]] = [
        {"screening": "race", "start_share": 0.0},
        {"sampling": "thompson"},
    ]
    for wrong in cases:
        options = dataclasses.replace(policy.options, **wrong)
        with pytest.raises(InvalidValue, match="values"):
            Engine(Blueprint(options=options, problem=policy.problem_of(problem), seed=1))
