"""Models from outside: what they are told, when they are fitted, and that budget and delays are ours."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import doral
from doral.compiled import Block
from doral.engine.people import KNOWN
from doral.errors import InvalidValue, UnknownName
from doral.prediction.external import External
from doral.prediction.models import Columns, Known, ModelFailed, Schedule, fresh
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import ExternalPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth
from doral.testing import check_policy

TWO = [doral.Arm("a"), doral.Arm("b")]


class LeastSquares:
    """A model that knows nothing of scikit-learn."""

    def fit(self, x: Any, y: Any) -> None:
        self.weights = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]

    def predict(self, x: Any) -> Any:
        return np.column_stack([np.ones(len(x)), x]) @ self.weights


class Watched(LeastSquares):
    """Says what it was fitted on."""

    seen: list[tuple[int, int]]

    def __init__(self) -> None:
        self.seen = []

    def __deepcopy__(self, memo: Any) -> Watched:
        made = Watched()
        made.seen = self.seen
        return made

    def fit(self, x: Any, y: Any) -> None:
        self.seen.append(x.shape)
        super().fit(x, y)


def short(name: str, horizon: int, **changes: Any) -> Scenario:
    one = doral.Scenario.named(name)
    problem = dataclasses.replace(one.problem, horizon=horizon, budget=horizon / 2, **changes)
    return dataclasses.replace(one, problem=problem)


def outcomes(policies: Any, scenario: Scenario, **given: Any) -> dict[str, Outcome]:
    result = doral.simulate(policies, scenario, **{"runs": 1, "seed": 1, **given})
    return {one.policy: one for one in result.outcomes}


def played(external: External, scenario: Scenario, *, seed: int = 1) -> ExternalPlayer:
    truth = make_truth(scenario, seed=seed, run=0)
    player = ExternalPlayer(external, scenario, truth, seed=seed, run=0)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, seed, 0, 1)
    player.play(tape, 1)
    return player


# --- what it earns ---------------------------------------------------------------------------------------------------


def test_a_linear_model_earns_nearly_what_our_lines_do() -> None:
    """But for what exploring costs: it is counted."""
    ours = outcomes("doral-otf", short("people/linear", 20_000))["doral-otf"]
    found = outcomes(doral.external(Ridge(), explore=0.0, label="ridge"), short("people/linear", 20_000))["ridge"]
    assert found.expected > 0.96 * ours.expected
    assert found.expected > 0.93 * found.oracle


def by_distance_from_zero(people: Any, features: Any) -> Any:
    """One arm is for those near it, the other for all others: no line can tell."""
    near = np.abs(people["x"]) < 0.7
    return np.column_stack([near, ~near]).astype(np.float64)


def test_a_forest_sees_what_a_line_does_not() -> None:
    scenario = Scenario(
        name="near or far",
        problem=doral.Problem(arms=TWO, person=["x"], budget=4_000, horizon=4_000, deadline=40),
        people={"x": np.random.default_rng(0).normal(size=2_000)},
        means=by_distance_from_zero,
        delays=(doral.delays.Geometric(5), doral.delays.Geometric(9)),
        noise_sd=0.3,
    )
    forest = RandomForestRegressor(n_estimators=10, min_samples_leaf=5)
    policies = [doral.external(Ridge(), label="ridge"), doral.external(forest, refit_every=0.5, label="forest")]
    found = outcomes(policies, scenario)
    assert found["forest"].expected > 0.85 * found["forest"].oracle
    assert found["forest"].expected > found["ridge"].expected + 0.1 * found["ridge"].oracle


def test_where_nobody_says_no() -> None:
    found = outcomes([doral.external(LeastSquares(), label="model"), "a/b"], short("people/silent", 20_000))
    assert found["model"].expected > 0.8 * found["model"].oracle > found["a/b"].expected


def test_a_model_for_all_arms_sees_the_arm() -> None:
    policy = doral.external(
        RandomForestRegressor(n_estimators=10, min_samples_leaf=20), fit="joint", refit_every=0.5, label="joint"
    )
    found = outcomes([policy, "a/b"], short("people/hybrid", 10_000))
    assert found["joint"].expected > found["a/b"].expected + 0.05 * found["joint"].oracle


def test_contexts_alone_are_enough() -> None:
    found = outcomes([doral.external(LeastSquares(), label="model"), "a/b"], short("paper/diverse-pareto", 10_000))
    assert found["model"].expected > found["a/b"].expected + 0.1 * found["model"].oracle


# --- budget, bits, jobs ----------------------------------------------------------------------------------------------


def test_it_keeps_what_every_policy_promises() -> None:
    """Same seed, same decisions; whatever the number of jobs; never more than the budget, only arms that are there."""
    check_policy(doral.external(Ridge(), min_answers=5, label="ridge"))


def test_randomness_of_a_model_comes_from_the_seed() -> None:
    forest = doral.external(RandomForestRegressor(n_estimators=3), refit_every=0.5, label="forest")
    one, again, other = (
        doral.simulate(forest, short("people/linear", 3_000), runs=1, seed=seed, keep_decisions=True).decisions()
        for seed in (1, 1, 2)
    )
    assert one.equals(again)
    assert not one.equals(other)
    inner = fresh(make_pipeline(RandomForestRegressor()), (1, 2))
    states = [value for name, value in inner.get_params().items() if name.endswith("random_state")]  # type: ignore[attr-defined]
    assert len(states) == 1
    assert isinstance(states[0], int)
    assert fresh(Ridge(random_state=7), (1, 2)).random_state == 7  # type: ignore[attr-defined]


def test_the_budget_holds() -> None:
    scenario = short("people/linear", 3_000)
    scenario = dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, budget=100.5))
    found = outcomes(doral.external(LeastSquares(), label="model"), scenario)["model"]
    assert 99.5 < found.spend <= 100.5


# --- the schedule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "expected"), [(0.1, [20, 22, 25, 28]), (5.0, [20, 25, 30, 35]), (0.001, [20, 21])])
def test_when_a_model_is_due(every: float, expected: list[int]) -> None:
    schedule, found = Schedule(every, 20), [20]
    while len(found) < len(expected):
        found.append(schedule.after(found[-1]))
    assert found == expected


def test_models_are_fitted_when_they_are_due_and_on_answers_in_time() -> None:
    model = Watched()
    scenario = short("people/linear", 4_000)
    player = played(doral.external(model, refit_every=0.5, min_answers=30), scenario)
    assert len(model.seen) == player.models.n_fits
    assert {width for _, width in model.seen} == {5}
    sizes = sorted(n for n, _ in model.seen)
    assert 30 <= sizes[0] < 60
    known = player._known(4_000)
    entries = player._book.tree.entries[: player._book.tree.counts["decisions"][0]]
    deadline = float(scenario.problem.deadlines.max())
    in_time = [one for one in entries.tolist() if one[1] <= deadline and one[2] + one[1] <= 4_000]
    assert known.rewards.tolist() == [one[0] for one in in_time]
    assert player.state.tree.predictions.counts[KNOWN] == len(in_time)
    most = 10 * (1 + math.log(len(in_time) / 30) / math.log(1.5))
    assert 10 <= len(model.seen) <= most


def test_silence_is_known_when_it_is_older_than_the_deadline() -> None:
    scenario = short("people/silent", 4_000)
    player = played(doral.external(LeastSquares()), scenario)
    deadline = float(scenario.problem.deadlines.max())
    entries = player._book.tree.entries[: player._book.tree.counts["decisions"][0]].tolist()
    old = [one for one in entries if 4_000 - one[2] > deadline]
    assert player._known(4_000).rewards.tolist() == [one[0] if one[1] <= deadline else 0.0 for one in old]
    assert player.state.tree.predictions.counts[KNOWN] == len(old)


def test_every_arm_is_tried_before_there_are_models() -> None:
    player = played(doral.external(LeastSquares(), min_answers=10, explore=0.0), short("people/linear", 8_000))
    arms = player._book.tree.entries["arm"][:200]
    assert np.bincount(arms, minlength=10).tolist() == [20] * 10


# --- what a model sees -----------------------------------------------------------------------------------------------


def test_columns() -> None:
    problem = doral.Problem(
        arms=TWO, person=["age", doral.Category("clinic")], contexts=["x", "y"], budget=1, horizon=1
    )
    nan = math.nan
    traits = np.array([[40.0, 3.0], [nan, 5.0], [60.0, 5.0], [50.0, 3.0], [50.0, 5.0], [50.0, 9.0]])
    columns = Columns(problem, np.zeros(6, dtype=np.int64), traits)
    seen = columns.of(np.array([0, 1, 1, 0]), np.array([[nan, 3.0], [41.0, 5.0], [42.0, 9.0], [43.0, nan]]))
    assert seen.tolist() == [
        [1, 0, 50, 0, 1, 0],
        [0, 1, 41, 1, 0, 0],  # the most frequent level stands first
        [0, 1, 42, 0, 0, 1],  # seen once
        [1, 0, 43, 0, 0, 1],
    ]


def test_an_arm_has_a_model_when_it_has_answers() -> None:
    problem = doral.Problem(arms=TWO, person=["age"], budget=1, horizon=1)
    models = doral.external(LeastSquares(), min_answers=4).models(problem, seed=(0,))
    x = np.arange(6.0)[:, None]
    arms = np.array([0, 0, 0, 0, 1, 1])
    models.refit(Known(np.zeros(6, dtype=np.int64), x, arms, 1.0 + 2.0 * x[:, 0]))
    found = models.predict(np.zeros(2, dtype=np.int64), np.array([[10.0], [20.0]]))
    assert found[:, 0].tolist() == pytest.approx([21.0, 41.0])
    assert np.isnan(found[:, 1]).all()


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": Ridge}, "is a class"),
        ({"model": 3}, "needs a method fit and a method predict"),
        ({"fit": "both"}, "per-arm, joint"),
        ({"refit_every": 0}, "refit_every"),
        ({"refit_every": 2.5}, "refit_every"),
        ({"min_answers": 1}, "min_answers"),
        ({"explore": 1.5}, "explore"),
        ({"label": ""}, "label"),
        ({"basis": "splines"}, "leave it out"),
    ],
)
def test_what_cannot_be_asked_for(given: dict[str, Any], message: str) -> None:
    model = given.pop("model", Ridge())
    with pytest.raises(InvalidValue, match=message):
        doral.external(model, **given)
    with pytest.raises(UnknownName, match="reservoir"):
        doral.external(Ridge(), resevoir=3)  # type: ignore[call-arg]


class Sick(LeastSquares):
    said: Any = 0.0

    def predict(self, x: Any) -> Any:
        return self.said(x)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (lambda x: np.full(len(x), math.nan), "predicts nan: predictions must be finite"),
        (lambda x: np.zeros((len(x), 2)), r"predicts an array of shape \(\d+, 2\) for \d+ rows"),
        (lambda x: 3.0, r"predicts an array of shape \(\) for"),
        (lambda x: ["high"] * len(x), "cannot predict: ValueError"),
        (lambda x: x.missing, "cannot predict: AttributeError"),
    ],
)
def test_a_model_that_says_nonsense_is_named_with_its_arm(said: Any, message: str) -> None:
    model = Sick()
    model.said = said
    with pytest.raises(ModelFailed, match=f"the model Sick for arm 'arm-[0-9]+' {message}"):
        doral.simulate(doral.external(model), short("people/linear", 2_000), runs=1)


def test_a_model_that_cannot_be_fitted_is_named_with_its_arm() -> None:
    class Refuses(LeastSquares):
        def fit(self, x: Any, y: Any) -> None:
            raise RuntimeError("no\nway")

    with pytest.raises(ModelFailed, match=r"Refuses for all arms cannot be fitted on 2\d\d answers: RuntimeError: no;"):
        doral.simulate(doral.external(Refuses(), fit="joint"), short("people/linear", 2_000), runs=1)
