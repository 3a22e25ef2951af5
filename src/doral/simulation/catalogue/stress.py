"""Scenarios that each make one thing hard. Their numbers are fixed here; theta and features are drawn for every run."""

from __future__ import annotations

from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.delays import AnyLaw, ByOutcome, Geometric, Never, Pareto
from doral.numerics.elementary import product
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import (
    DEADLINE_ROUNDS,
    DIVERSE_PARETO,
    DIVERSE_PARETO_MINIMA,
    N_FEATURES,
    drawn_arms,
    numbered_arms,
    numbered_contexts,
    spread,
)
from doral.simulation.scenario.scenario import Scenario

HORIZON = 60_000
BUDGET = 30_000
N_ARMS = 10

COSTS = (0.5, 0.8, 1.0, 1.0, 1.5, 1.5, 2.0, 2.0, 2.5, 3.0)
NEVER_SHARES = tuple(float(share) for share in np.linspace(0.0, 0.6, N_ARMS))  # 30% on average
HEAVY_SHAPE = 1.1


def _problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "arms": drawn_arms((1.0,) * N_ARMS),
        "contexts": numbered_contexts(),
        "budget": BUDGET,
        "horizon": HORIZON,
        "deadline": DEADLINE_ROUNDS,
    }
    return Problem(**(given | changes))


def _scenario(name: str, problem: Problem, delays: Any, **changes: Any) -> Scenario:
    return Scenario(name=f"stress/{name}", problem=problem, delays=delays, **({"features": "drawn"} | changes))


def _context_delays() -> dict[str, list[AnyLaw]]:
    """The arms that answer half of the contexts at once keep the other half waiting, and the other way round."""
    quick, slow = Geometric(60), Geometric(900)
    return {
        context.name: [quick if (number + arm) % 2 == 0 else slow for arm in range(N_ARMS)]
        for number, context in enumerate(numbered_contexts())
    }


def _urgent() -> Problem:
    """Every fifth arrival is urgent, every third pressing: worth more, due sooner, with money kept for them."""
    contexts = [
        Context("urgent-1", 0.08, weight=3, deadline=250, tier=2),
        Context("urgent-2", 0.12, weight=3, deadline=250, tier=2),
        *(Context(f"pressing-{number}", 0.1, weight=1.5, tier=1) for number in range(1, 4)),
        *(Context(f"ordinary-{number}", 0.1) for number in range(1, 6)),
    ]
    return _problem(contexts=contexts, reserves={2: 0.15, 1: 0.1})


def _rate_parameters() -> tuple[Any, Any]:
    """Features and thetas whose products, over the number of features, are rates: linear, as the learner believes."""
    numbers = spread(1, 2 * N_ARMS, N_FEATURES)
    return numbers[:N_ARMS], numbers[N_ARMS:]


def _described(features: Floats) -> list[Arm]:
    """Return arms with one more feature, always 1, since rates do not start at 0."""
    return numbered_arms(np.column_stack([np.ones(N_ARMS), features]))


def _silent() -> Scenario:
    """Conversion rates between 1% and 12%."""
    features, theta = _rate_parameters()
    problem = _problem(arms=_described(features), feedback="silent")
    means = (0.01 + 0.11 * product(theta, features.T) / N_FEATURES).tolist()
    return _scenario("silent", problem, DIVERSE_PARETO, means=means, noise="bernoulli", features="given")


def _positives_first() -> Scenario:
    """A positive answer is passed on at once, a negative one late."""
    features, theta = _rate_parameters()
    problem = _problem(arms=_described(features), horizon=30_000, budget=15_000, deadline=3_000)
    law = ByOutcome(above=Geometric(150), below=Geometric(3_000), threshold=0.5)
    means = (0.1 + 0.8 * product(theta, features.T) / N_FEATURES).tolist()
    return _scenario("positives-first", problem, law, means=means, noise="bernoulli", features="given")


def many_arms(n_arms: int = 1_000) -> Scenario:
    """Far more arms than can be tried in every context; only features tell about most of them."""
    delays = [Geometric(float(mean)) for mean in np.linspace(50, 400, n_arms)]
    return _scenario("many-arms", _problem(arms=drawn_arms((1.0,) * n_arms), horizon=20_000, budget=10_000), delays)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _scenario(
            "never-30",
            _problem(),
            [Never(Geometric(mean), share) for mean, share in zip(range(100, 200, 10), NEVER_SHARES, strict=True)],
        ),
        _scenario("costs", _problem(arms=drawn_arms(COSTS)), DIVERSE_PARETO),
        _scenario("context-delays", _problem(), _context_delays()),
        _scenario("urgent", _urgent(), DIVERSE_PARETO),
        _silent(),
        _positives_first(),
        _scenario("drift", _problem(), DIVERSE_PARETO, phases=3),
        _scenario("short", _problem(horizon=5_000, budget=2_500), DIVERSE_PARETO),
        many_arms(),
        _scenario("heavy", _problem(), [Pareto(minimum / 4, HEAVY_SHAPE) for minimum in DIVERSE_PARETO_MINIMA]),
    )
}
