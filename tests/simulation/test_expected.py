"""Expected rewards: what the choices of a run were worth, whatever luck made of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import doral
from doral import delays
from doral.simulation.api import AnyPolicy
from doral.simulation.results import files as saved
from doral.simulation.world.truth import make_truth

RUNS = 40


class Uniform:
    """Arms in turn."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.n_arms = problem.n_arms

    def decide(self, arrival: doral.Arrival) -> int | None:
        arm = arrival.round % self.n_arms
        return arm if arm in arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        pass


def scenario() -> doral.Scenario:
    """Coins whose law of delay depends on how they fell; weights, deadlines of their own, and a world that changes."""
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{i}", features=np.eye(3)[i], cost=1.0 + 0.5 * i) for i in range(3)],
        contexts=[doral.Context("x", 0.3, weight=2.0, deadline=10), doral.Context("y", 0.7)],
        budget=700,
        horizon=1000,
        deadline=25.5,
    )
    law = delays.ByOutcome(above=delays.Exponential(9), below=delays.Geometric(30), threshold=0.5)
    return doral.Scenario(
        name="coins",
        problem=problem,
        delays=[law, delays.Never(delays.Geometric(8), 0.2), delays.Pareto(5, 1.5)],
        means=[[0.2, 0.5, 0.4], [0.6, 0.3, 0.1]],
        noise="bernoulli",
        phases=3,
    )


@pytest.fixture(scope="module")
def result() -> doral.SimulationResult:
    policies: list[AnyPolicy] = ["doral-otf", "d-linucb", "random", Uniform]
    return doral.simulate(policies, scenario(), runs=RUNS, seed=4, keep_decisions=True)


def test_they_are_the_worth_of_what_was_chosen(result: doral.SimulationResult) -> None:
    counted = make_truth(scenario(), seed=4, run=0).counted
    for one in result.outcomes:
        assert one.log is not None
        phase = np.minimum((one.log.round - 1) // math.ceil(1000 / 3), 2)
        assert one.expected == pytest.approx(counted[phase, one.log.context, one.log.arm].sum(), rel=1e-12)


def test_they_are_the_mean_of_the_rewards_and_far_less_noisy(result: doral.SimulationResult) -> None:
    for policy in result.policies:
        luck = result.rewards("coins", policy) - result.expected("coins", policy)
        assert abs(luck.mean()) < 4.0 * stats.sem(luck)
        row = result.summary().filter(policy=policy, metric="within_deadline").row(0, named=True)
        assert row["expected_mean"] == pytest.approx(row["reward_mean"], abs=4.0 * stats.sem(luck))
        assert row["expected_share"] == pytest.approx(row["expected_mean"] / row["oracle_mean"])
    paired = {}
    for name, of in (("realised", result.rewards), ("expected", result.expected)):
        paired[name] = stats.sem(of("coins", "random") - of("coins", "Uniform"))
    assert paired["expected"] < 0.4 * paired["realised"]


def test_the_summary_pairs_them(result: doral.SimulationResult) -> None:
    row = result.summary().filter(policy="random", metric="within_deadline").row(0, named=True)
    mine, first = result.expected("coins", "random"), result.expected("coins", "doral-otf")
    assert row["expected_se"] == pytest.approx(stats.sem(mine))
    assert row["expected_difference_mean"] == pytest.approx((mine - first).mean())
    low, high = stats.ttest_rel(mine, first).confidence_interval(0.95)
    assert (row["expected_difference_low"], row["expected_difference_high"]) == pytest.approx((low, high))
    other = result.summary().filter(policy="random", metric="by_end").row(0, named=True)
    assert other["expected_mean"] is other["expected_share"] is other["expected_difference_mean"] is None


def test_they_are_kept_in_files(result: doral.SimulationResult, tmp_path: Path) -> None:
    saved.save(result, tmp_path / "result.npz")
    again = saved.load(tmp_path / "result.npz")
    assert [one.expected for one in again.outcomes] == [one.expected for one in result.outcomes]
    assert again.runs()["expected"].equals(result.runs()["expected"])
