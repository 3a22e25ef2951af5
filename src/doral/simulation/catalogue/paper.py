"""The paper's four scenarios and its sweeps, as data. What the paper leaves open is fixed in `docs/paper.md`."""

from __future__ import annotations

import dataclasses

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


def _geometric(means: tuple[int, ...]) -> tuple[Law, ...]:
    return tuple(Geometric(mean) for mean in means)


def _pareto(minima: tuple[int, ...]) -> tuple[Law, ...]:
    return tuple(Pareto(minimum, PARETO_SHAPE) for minimum in minima)


_DELAYS = {
    "paper/similar-geometric": _geometric(SIMILAR),
    "paper/similar-pareto": _pareto(SIMILAR),
    "paper/diverse-geometric": _geometric(DIVERSE_GEOMETRIC_MEANS),
    "paper/diverse-pareto": _pareto(DIVERSE_PARETO_MINIMA),
}


def _scenario(name: str, delays: tuple[Law, ...]) -> Scenario:
    problem = Problem(
        arms=[Arm(f"arm-{number}", features=[0.5] * N_FEATURES) for number in range(1, len(delays) + 1)],
        contexts=[Context(f"context-{number}", share) for number, share in enumerate(SHARES, start=1)],
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
