"""Scenarios as people have them are as hard as they say."""

from __future__ import annotations

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.simulation.world.truth import make_truth


def counted(name: str) -> tuple[doral.Scenario, Floats]:
    scenario = doral.Scenario.named(f"stress/{name}")
    return scenario, make_truth(scenario, seed=0, run=0).counted[0]


@pytest.mark.parametrize("name", ["silent-slow", "dear-is-right", "tiny", "wrong-features", "no-features", "rare"])
def test_there_is_something_to_learn(name: str) -> None:
    """Who serves everybody alike, with the one arm that is best on average, loses at least a tenth."""
    scenario = doral.Scenario.named(f"stress/{name}")
    truth = make_truth(scenario, seed=0, run=0)
    problem, shares = scenario.problem, scenario.true_shares
    alone = np.minimum(1.0, problem.rate / problem.costs) * (shares @ truth.counted[0])
    assert alone.max() * problem.horizon < 0.9 * truth.oracle
    assert alone.mean() * problem.horizon < 0.75 * truth.oracle  # and with any arm, a quarter


def test_positives_come_early_and_the_deadline_is_far() -> None:
    scenario, _ = counted("silent-slow")
    assert scenario.problem.deadline == scenario.problem.horizon / 6
    log = doral.simulate("random", scenario, runs=1, keep_decisions=True).decisions().drop_nulls("arm")
    due = (log["round"] + log["delay"]).to_numpy()
    assert ((log["reward"].to_numpy() > 0.0) & (due < 2_000)).sum() > 10


def test_the_dear_arm_is_right() -> None:
    scenario, worth = counted("dear-is-right")
    dearest = int(scenario.problem.costs.argmax())
    per_cost = worth / scenario.problem.costs
    assert (per_cost.argmax(axis=1) == dearest).sum() == 3
    assert scenario.problem.costs.min() == 1.0
    assert scenario.problem.costs.max() == 4.0


def test_features_that_say_nothing() -> None:
    """A line through the features explains no more of the means than one through any numbers does."""
    scenario, _ = counted("wrong-features")
    assert scenario.means is not None
    means = np.array(scenario.means)
    rng = np.random.default_rng(0)

    def explained(features: Floats) -> float:
        design = np.column_stack([np.ones(len(features)), features])
        fitted = design @ np.linalg.lstsq(design, means.T, rcond=None)[0]
        rest = ((means.T - fitted) ** 2).sum() / ((means - means.mean(axis=1, keepdims=True)) ** 2).sum()
        return 1.0 - float(rest)

    others = [explained(rng.uniform(0, 1, scenario.problem.features.shape)) for _ in range(200)]
    assert np.quantile(others, 0.025) < explained(scenario.problem.features) < np.quantile(others, 0.975)


def test_rare_is_rare() -> None:
    scenario, _ = counted("rare")
    assert scenario.means is not None
    assert (np.min(scenario.means), np.max(scenario.means)) == pytest.approx((0.01, 0.04))
    assert scenario.problem.feedback == "silent"
