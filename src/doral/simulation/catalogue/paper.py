"""The paper's four scenarios and its sweeps, as data (`docs/paper.md`), and numbers that other scenarios share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from doral._arrays import Floats
from doral.delays import Geometric, Law, Pareto
from doral.problem import Arm, Context, Problem
from doral.simulation.scenario.scenario import Scenario

BUDGET = 85_000
HORIZON = 170_000
DEADLINE_ROUNDS = 500
N_FEATURES = 5
NOISE_SD = 0.1
SHARES = (0.09, 0.15, 0.11, 0.05, 0.1, 0.05, 0.08, 0.14, 0.13, 0.1)
PARETO_SHAPE = 2

SIMILAR = (100, 110, 120, 130, 140, 150, 160, 170, 180, 190)
DIVERSE_GEOMETRIC_MEANS = (100, 120, 140, 160, 200, 220, 240, 260, 280, 300)
DIVERSE_PARETO_MINIMA = (200, 220, 240, 260, 280, 320, 340, 360, 380, 400)

# The sweeps over what the paper does not give.
SWEEP_HORIZONS = (100_000, 130_000, 170_000, 255_000)
SWEEP_ACCEPTED = (1, 2, 3, 4, 5, 6, 7, 8, 9)


DIVERSE_PARETO = tuple(Pareto(minimum, PARETO_SHAPE) for minimum in DIVERSE_PARETO_MINIMA)
_DELAYS: dict[str, tuple[Law, ...]] = {
    "paper/similar-geometric": tuple(map(Geometric, SIMILAR)),
    "paper/similar-pareto": tuple(Pareto(minimum, PARETO_SHAPE) for minimum in SIMILAR),
    "paper/diverse-geometric": tuple(map(Geometric, DIVERSE_GEOMETRIC_MEANS)),
    "paper/diverse-pareto": DIVERSE_PARETO,
}
_ROOTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])


def spread(first: int, rows: int, columns: int) -> Floats:
    """Return fixed numbers (rows, columns), spread over (0, 1): fractions of multiples of square roots."""
    return np.asarray(np.modf(np.outer(np.arange(first, first + rows), _ROOTS[:columns]))[0])


def numbered_arms(features: Floats, costs: Sequence[float] | None = None) -> list[Arm]:
    """Return arms "arm-1", "arm-2" and so on, of which each costs 1 by default."""
    prices = [1.0] * len(features) if costs is None else costs
    rows = zip(features.tolist(), prices, strict=True)
    return [Arm(f"arm-{number}", features=row, cost=cost) for number, (row, cost) in enumerate(rows, start=1)]


def drawn_arms(costs: Sequence[float]) -> list[Arm]:
    """Return arms at these costs, whose features are drawn for every run."""
    return numbered_arms(np.full((len(costs), N_FEATURES), 0.5), costs)


def numbered_contexts(shares: Sequence[float] = SHARES) -> list[Context]:
    """Return contexts "context-1", "context-2" and so on."""
    return [Context(f"context-{number}", share) for number, share in enumerate(shares, start=1)]


def _scenario(name: str, delays: tuple[Law, ...]) -> Scenario:
    problem = Problem(
        arms=drawn_arms([1.0] * len(delays)),
        contexts=numbered_contexts(),
        budget=BUDGET,
        horizon=HORIZON,
        deadline=DEADLINE_ROUNDS,
    )
    return Scenario(name=name, problem=problem, delays=delays, features="drawn", noise_sd=NOISE_SD)


SCENARIOS = {name: _scenario(name, delays) for name, delays in _DELAYS.items()}


def with_horizon(scenario: Scenario, horizon: int) -> Scenario:
    """The same scenario, named after its new horizon."""
    problem = dataclasses.replace(scenario.problem, horizon=horizon)
    return dataclasses.replace(scenario, name=f"{scenario.name}@T={horizon}", problem=problem)
