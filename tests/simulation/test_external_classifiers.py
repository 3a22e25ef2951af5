"""Classifiers and pipelines from outside: probabilities instead of labels, one class, columns by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import doral
from doral.errors import InvalidValue
from doral.prediction.models import Known, ModelFailed, takes_names
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import BadDecision

TWO = [doral.Arm("a"), doral.Arm("b")]
ONE_NUMBER = doral.Problem(arms=TWO, person=["age"], budget=1, horizon=1)


def known(x: Any, rewards: Any) -> Known:
    n = len(rewards)
    return Known(
        np.zeros(n, dtype=np.int64),
        np.asarray(x, dtype=float)[:, None],
        np.zeros(n, dtype=np.int64),
        np.asarray(rewards, dtype=float),
    )


def predicted(model: Any, x: Any, rewards: Any, at: Any) -> list[float]:
    models = doral.external(model, min_answers=2).models(ONE_NUMBER, seed=(0,))
    models.refit(known(x, rewards))
    at = np.asarray(at, dtype=float)[:, None]
    return [float(one) for one in models.predict(np.zeros(len(at), dtype=np.int64), at)[:, 0]]


def test_a_classifier_says_probabilities() -> None:
    x = np.linspace(-2.0, 2.0, 80)
    rewards = (np.sin(37.0 * x) + x > 0).astype(float)
    ours = predicted(LogisticRegression(), x, rewards, [-1.0, 0.0, 1.0])
    theirs = LogisticRegression().fit(x[:, None], rewards).predict_proba([[-1.0], [0.0], [1.0]])[:, 1]
    assert ours == pytest.approx(theirs.tolist())
    assert len(set(ours)) == 3  # labels would be 0 and 1


def test_classes_are_worth_their_rewards() -> None:
    """Of three amounts, the mean under the probabilities of the classes."""
    x = np.repeat([0.0, 1.0], 60)
    rewards = np.tile([0.0, 2.5, 10.0], 40)
    (low,) = predicted(LogisticRegression(C=1e6), x, rewards, [0.5])
    assert low == pytest.approx(12.5 / 3.0, rel=1e-3)
    with pytest.raises(ModelFailed, match="give a regressor"):
        predicted(LogisticRegression(), np.arange(60.0), np.arange(60.0) / 7.0, [0.0])


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_while_all_answers_are_the_same_an_arm_is_worth_that(reward: float) -> None:
    assert predicted(LogisticRegression(), range(6), [reward] * 6, [3.0]) == [reward]


def test_a_regressor_says_what_it_predicts() -> None:
    assert predicted(LinearRegression(), [0.0, 1.0, 2.0], [1.0, 3.0, 5.0], [4.0]) == pytest.approx([9.0])


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(LinearSVC()),
        GaussianNB(),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
        HistGradientBoostingClassifier(max_iter=20),
        OneVsRestClassifier(LogisticRegression()),
        RandomForestClassifier(20, min_samples_leaf=10),
        SGDClassifier(loss="log_loss", alpha=0.1),
        StackingClassifier([("line", LogisticRegression()), ("bayes", GaussianNB())]),
        VotingClassifier([("line", LogisticRegression()), ("bayes", GaussianNB())], voting="soft"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_classifiers_of_many_kinds_say_probabilities(model: Any) -> None:
    x = np.linspace(-2.0, 2.0, 80)
    rewards = (np.random.default_rng(0).random(80) < 1.0 / (1.0 + np.exp(-2.0 * x))).astype(float)
    low, high = predicted(model, x, rewards, [-1.5, 1.5])
    assert 0.0 < low < 0.5 < high < 1.0


def test_labels_alone_are_refused() -> None:
    search = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]})
    for model in (LinearSVC(), make_pipeline(StandardScaler(), LinearSVC()), search, RidgeClassifier()):
        with pytest.raises(InvalidValue, match="predict_proba"):
            doral.external(model)


def successes(horizon: int = 6_000) -> Scenario:
    one = doral.Scenario.named("people/linear")
    rng = np.random.default_rng(0)
    age, clinic = rng.normal(size=2_000), rng.choice(["north", "south"], 2_000)
    problem = dataclasses.replace(
        one.problem,
        arms=tuple(TWO),
        person=(doral.Number("age"), doral.Category("clinic")),
        horizon=horizon,
        budget=float(horizon),
        deadline=40,
    )

    def means(people: Any, features: Any) -> Any:
        up = 1.0 / (1.0 + np.exp(-3.0 * people["age"] * np.where(people["clinic"] == "north", 1.0, -1.0)))
        return np.column_stack([up, 1.0 - up])

    return Scenario(
        name="successes",
        problem=problem,
        people={"age": age, "clinic": clinic.tolist()},
        means=means,
        delays=(doral.delays.Geometric(5), doral.delays.Geometric(5)),
        noise="bernoulli",
    )


def named_pipeline() -> Any:
    columns = ColumnTransformer(
        [("age", StandardScaler(), ["age"]), ("clinic", OneHotEncoder(handle_unknown="ignore"), ["clinic"])]
    )
    return make_pipeline(columns, LogisticRegression())


def test_a_pipeline_that_selects_by_name_gets_names() -> None:
    assert takes_names(named_pipeline())
    assert not takes_names(make_pipeline(StandardScaler(), LogisticRegression()))
    problem = successes().problem
    models = doral.external(named_pipeline(), min_answers=4).models(
        problem,
        seed=(0,),
        levels=doral.person.Levels([doral.Number("age"), doral.Category("clinic", levels=["n", "s"])]),
    )
    rng = np.random.default_rng(1)
    traits = np.column_stack([rng.normal(size=200), rng.integers(0, 2, 200)])
    rewards = (rng.random(200) < 0.2 + 0.6 * traits[:, 1]).astype(float)
    models.refit(Known(np.zeros(200, dtype=np.int64), traits, np.zeros(200, dtype=np.int64), rewards))
    frame = pl.DataFrame({"age": traits[:, 0], "clinic": np.where(traits[:, 1] == 0, "n", "s").tolist()})
    theirs = named_pipeline().fit(frame, rewards).predict_proba(frame)[:, 1]
    ours = models.predict(np.zeros(200, dtype=np.int64), traits)[:, 0]
    np.testing.assert_allclose(ours, theirs)


def test_a_joint_pipeline_sees_the_arm_by_its_name() -> None:
    columns = ColumnTransformer([("words", OneHotEncoder(), ["arm", "clinic"])], remainder="passthrough")
    models = doral.external(make_pipeline(columns, LogisticRegression()), fit="joint", min_answers=4).models(
        successes().problem, seed=(0,)
    )
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 400)
    traits = np.column_stack([rng.normal(size=400), rng.integers(0, 2, 400)])
    models.refit(Known(np.zeros(400, dtype=np.int64), traits, arms, (rng.random(400) < 0.1 + 0.8 * arms).astype(float)))
    found = models.predict(np.zeros(50, dtype=np.int64), traits[:50])
    assert (found[:, 1] > found[:, 0] + 0.5).all()


def test_the_same_pipeline_plays_and_runs_live() -> None:
    result = doral.simulate([doral.external(named_pipeline(), label="ours"), "a/b"], successes(), runs=3, seed=1)
    ours, trial = (sum(one.expected for one in result.of(successes().name, policy)) for policy in ("ours", "a/b"))
    assert ours > 1.2 * trial
    campaign = doral.open("memory://").create(
        "live",
        dataclasses.replace(successes().problem, horizon=400),
        policy=doral.external(named_pipeline(), min_answers=5),
    )
    rng = np.random.default_rng(3)
    for number in range(300):
        features = {"age": float(rng.normal()), "clinic": str(rng.choice(["north", "south"]))}
        decision = campaign.decide(features=features)
        if decision.arm is not None:
            campaign.feedback(decision.id, reward=float(number % 2))
    assert campaign.decide(features={"age": 0.0, "clinic": "west"}).features is not None


class ByName:
    """Chooses the first arm by its name."""

    said = "a"

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.problem = problem

    def decide(self, arrival: doral.Arrival) -> str | None:
        return self.said if 0 in arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        pass


class ByNumber(ByName):
    def decide(self, arrival: doral.Arrival) -> int | None:  # type: ignore[override]
        return 0 if 0 in arrival.available else None


def test_arms_by_name_are_arms_by_number() -> None:
    result = doral.simulate([ByName, ByNumber], successes(1_000), runs=1, seed=1)
    by_name, by_number = result.outcomes
    assert by_name.expected == by_number.expected > 0.0

    class Wrong(ByName):
        said = "aa"

    with pytest.raises(BadDecision, match="did you mean 'a'"):
        doral.simulate(Wrong, successes(1_000), runs=1, seed=1)
