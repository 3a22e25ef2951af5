"""Scenarios with one thing changed about the world, for sweeps over it."""

from __future__ import annotations

import dataclasses

import numpy as np

from doral.delays import ByOutcome, Geometric, Law
from doral.experiments.beyond.names import DIVERSE_PARETO
from doral.problem import Arm
from doral.simulation.catalogue.paper import NOISE_SD, SCENARIOS
from doral.simulation.catalogue.stress import SCENARIOS as STRESS
from doral.simulation.scenario.scenario import Scenario

POSITIVES_FIRST = "stress/positives-first"

_SOON, _LATER = Geometric(150), Geometric(3_000)
FIRSTS: dict[str, tuple[Law, Law]] = {
    "positives": (_SOON, _LATER),
    "neither": (Geometric(500), Geometric(500)),
    "negatives": (_LATER, _SOON),
}
"""Which answers return first, and the delays of those above and below the split."""


def with_noise(noise_sd: float) -> Scenario:
    """Diverse Pareto delays with another noise of the rewards."""
    base = SCENARIOS[DIVERSE_PARETO]
    return dataclasses.replace(base, name=f"{base.name}@noise={noise_sd:g}", noise_sd=noise_sd)


def with_rewards_times(scale: float) -> Scenario:
    """Diverse Pareto delays with rewards in another unit of money: means and noise are multiplied, nothing else.

    Drawn parameters have no scale, so that theta and features are fixed numbers here, spread over (0, 1).
    """
    base = SCENARIOS[DIVERSE_PARETO]
    n_arms, n_features = base.problem.n_arms, base.problem.n_features
    numbers = np.modf(np.outer(np.arange(1, n_arms + base.problem.n_contexts + 1), np.sqrt([2, 3, 5, 7, 11])))[0]
    numbers = numbers[:, :n_features]
    features = numbers[:n_arms].tolist()
    arms = tuple(Arm(f"arm-{number}", features=row) for number, row in enumerate(features, start=1))
    return dataclasses.replace(
        base,
        name=f"{base.name}@rewards*{scale:g}",
        problem=dataclasses.replace(base.problem, arms=arms),
        theta=(scale * numbers[n_arms:]).tolist(),
        features="given",
        noise_sd=scale * NOISE_SD,
    )


def with_horizon_and_budget(horizon: int) -> Scenario:
    """Diverse Pareto delays over another horizon, with a budget for half of the rounds as before."""
    base = SCENARIOS[DIVERSE_PARETO]
    problem = dataclasses.replace(base.problem, horizon=horizon, budget=base.problem.rate * horizon)
    return dataclasses.replace(base, name=f"{base.name}@T={horizon}", problem=problem)


def with_end_and_horizon(horizon: int) -> Scenario:
    """The same, where only what has come by the last arrival counts."""
    base = with_horizon_and_budget(horizon)
    problem = dataclasses.replace(base.problem, counted="by_end")
    return dataclasses.replace(base, name=f"{base.name},by-end", problem=problem)


def with_first(first: str) -> Scenario:
    """Coins for rewards, of which one side returns sooner than the other, or neither."""
    base = STRESS[POSITIVES_FIRST]
    above, below = FIRSTS[first]
    law = ByOutcome(above=above, below=below, threshold=0.5)
    return dataclasses.replace(base, name=f"{base.name}@first={first}", delays=((law,) * base.problem.n_arms,))
