"""Three contexts, five arms and a few hundred rounds: the worlds in which the engine is compared, step by step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from doral.delays import AnyLaw, ByOutcome, Empirical, Exponential, Fixed, Geometric, Lognormal, Never, Pareto, Weibull
from doral.problem import Arm, Problem
from doral.simulation.scenario.scenario import Scenario

# One of each kind, with answers that are lost, and some that depend on the outcome.
MIXED_LAWS: tuple[AnyLaw, ...] = (
    Never(Geometric(4), 0.2),
    ByOutcome(above=Exponential(5), below=Lognormal(12, 0.7), threshold=0.6),
    Weibull(8, 0.8),
    Empirical([1, 2, 5, 9, math.inf]),
    Fixed(15),
)


def make_scenario(
    *,
    costs: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0),
    budget: float = 300.0,
    horizon: int = 500,
    deadline: float | None = 40.0,
    delays: tuple[AnyLaw, ...] | None = None,
    shares: tuple[float, ...] | None = (0.5, 0.2, 0.3),
    availability: Any = None,
    seed: int = 0,
    name: str = "unit",
    **truth: Any,
) -> Scenario:
    """Small enough for the twin, with a race that ends early and answers that matter."""
    rng = np.random.default_rng(seed)
    names = ["ann", "bob", "cy"]
    problem = Problem(
        arms=[Arm(f"a{i}", features=rng.uniform(-0.2, 1.0, 3), cost=cost) for i, cost in enumerate(costs)],
        contexts=names if shares is None else dict(zip(names, shares, strict=True)),
        budget=budget,
        horizon=horizon,
        deadline=deadline,
    )
    spread: tuple[AnyLaw, ...] = (Geometric(3), Pareto(20, 2), Geometric(9), Pareto(4, 2), Geometric(30))
    return Scenario(
        name=name,
        problem=problem,
        delays=spread if delays is None else delays,
        shares=(0.4, 0.35, 0.25) if shares is None else None,
        availability=availability,
        **{"theta": rng.uniform(0.1, 1.0, (3, 3)), "noise_sd": 0.1, **truth},
    )
