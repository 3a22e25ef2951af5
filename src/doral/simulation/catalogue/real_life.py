"""Problems as people have them: slow silence, dear arms, few arrivals, features that say nothing, rare conversions.

Their numbers are fixed here, spread over their ranges by fractions of square roots, and made for no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral._elementary import power
from doral.delays import AnyLaw, Geometric, Pareto
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import DEADLINE_ROUNDS, DIVERSE_PARETO_MINIMA, SHARES
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.sums import product

_ROOTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])


def _spread(first: int, rows: int, columns: int) -> Floats:
    """Fixed numbers, spread over (0, 1)."""
    return np.asarray(np.modf(np.outer(np.arange(first, first + rows), _ROOTS[:columns]))[0])


def _between(low: float, high: float, scores: Floats) -> list[list[float]]:
    """Scores as rates: the smallest is `low`, the largest `high`, and equal steps are equal factors."""
    share = (scores - scores.min()) / (scores.max() - scores.min())
    rates: list[list[float]] = (low * power(high / low, share)).tolist()
    return rates


def _arms(features: Floats, costs: Sequence[float] | None = None) -> list[Arm]:
    prices = [1.0] * len(features) if costs is None else costs
    return [
        Arm(f"arm-{number}", features=row, cost=cost)
        for number, (row, cost) in enumerate(zip(features.tolist(), prices, strict=True), start=1)
    ]


def _contexts(shares: Sequence[float]) -> list[Context]:
    return [Context(f"context-{number}", share) for number, share in enumerate(shares, start=1)]


def _with_constant(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def _scenario(name: str, problem: Problem, delays: Any, means: Any, **changes: Any) -> Scenario:
    return Scenario(name=f"stress/{name}", problem=problem, delays=delays, means=means, **changes)


def _silent_slow() -> Scenario:
    """Conversions of 2 to 15% that come from the first days on, and a deadline of a sixth of the horizon."""
    features, tastes = _spread(1, 8, 4), _spread(31, 6, 4)
    problem = Problem(
        arms=_arms(_with_constant(features)),
        contexts=_contexts((0.1, 0.15, 0.15, 0.2, 0.2, 0.2)),
        budget=15_000,
        horizon=30_000,
        deadline=5_000,
        feedback="silent",
    )
    laws: list[AnyLaw] = [Geometric(mean) for mean in (600, 800, 1_000, 1_200, 1_500, 1_800, 2_400, 3_000)]
    means = _between(0.02, 0.15, product(tastes - 0.5, features.T))
    return _scenario("silent-slow", problem, laws, means, noise="bernoulli")


def _dear_is_right() -> Scenario:
    """Per unit of cost the dearest arm earns most in three of four contexts, and the cheapest in the last."""
    costs = (1.0, 1.0, 1.5, 2.0, 3.0, 4.0)
    per_cost = 0.1 + 0.08 * _spread(11, 4, 6)
    per_cost[:3, 5] = (0.24, 0.22, 0.2)
    per_cost[3, 0] = 0.22
    problem = Problem(
        arms=_arms(np.eye(6), costs),
        contexts=_contexts((0.3, 0.3, 0.2, 0.2)),
        budget=2_500,
        horizon=5_000,
        deadline=400,
    )
    laws: list[AnyLaw] = [Geometric(mean) for mean in (60, 90, 120, 150, 180, 210)]
    return _scenario("dear-is-right", problem, laws, (per_cost * np.array(costs)).tolist(), noise_sd=0.3)


def _tiny() -> Scenario:
    """Eight hundred arrivals, four arms of which each is the best somewhere or nearly so."""
    problem = Problem(arms=_arms(np.eye(4)), contexts=_contexts((0.5, 0.3, 0.2)), budget=400, horizon=800, deadline=60)
    means = [[0.15, 0.45, 0.3, 0.25], [0.4, 0.2, 0.1, 0.35], [0.3, 0.25, 0.5, 0.1]]
    laws: list[AnyLaw] = [Geometric(mean) for mean in (10, 20, 30, 40)]
    return _scenario("tiny", problem, laws, means, noise="bernoulli")


def _wrong_features() -> Scenario:
    """Five features for each arm, none of which has to do with what it brings."""
    problem = Problem(
        arms=_arms(_spread(1, 8, 5)),
        contexts=_contexts((0.1, 0.15, 0.15, 0.2, 0.2, 0.2)),
        budget=10_000,
        horizon=20_000,
        deadline=DEADLINE_ROUNDS,
    )
    means = 0.1 + 0.6 * _spread(101, 6, 8)
    laws: list[AnyLaw] = [Pareto(minimum, 2) for minimum in DIVERSE_PARETO_MINIMA[:8]]
    return _scenario("wrong-features", problem, laws, means.tolist(), noise="bernoulli")


def _no_features() -> Scenario:
    """Nobody describes the arms: contexts differ most, arms less, and a little is special to both together."""
    arms = [Arm(f"arm-{number}") for number in range(1, 7)]
    problem = Problem(arms=arms, contexts=_contexts(SHARES), budget=4_000, horizon=10_000, deadline=DEADLINE_ROUNDS)
    scores = 1.5 * _spread(41, 10, 1) + _spread(61, 6, 1).T + 0.7 * _spread(71, 10, 6)
    laws: list[AnyLaw] = [Geometric(mean) for mean in (40, 70, 100, 130, 160, 190)]
    return _scenario("no-features", problem, laws, _between(0.05, 0.5, scores), noise="bernoulli")


def _rare() -> Scenario:
    """Conversions of 1 to 4%: no news and no conversion look the same."""
    features, tastes = _spread(1, 10, 5), _spread(21, 10, 5)
    problem = Problem(
        arms=_arms(_with_constant(features)),
        contexts=_contexts(SHARES),
        budget=30_000,
        horizon=60_000,
        deadline=DEADLINE_ROUNDS,
        feedback="silent",
    )
    laws: list[AnyLaw] = [Pareto(minimum / 2, 2) for minimum in DIVERSE_PARETO_MINIMA]
    means = _between(0.01, 0.04, product(tastes - 0.5, features.T))
    return _scenario("rare", problem, laws, means, noise="bernoulli")


SCENARIOS = {
    scenario.name: scenario
    for scenario in (_silent_slow(), _dear_is_right(), _tiny(), _wrong_features(), _no_features(), _rare())
}
