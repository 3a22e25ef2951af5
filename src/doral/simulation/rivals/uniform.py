"""Every arm equally often, so that the budget lasts: how tests begin."""

from __future__ import annotations

import numpy as np

from doral.problem import Problem
from doral.simulation.rivals.plan import list_costs, spread_evenly
from doral.simulation.world.python_policy import Arrival


class Uniform:
    """Draws an arm; plays it by a coin that spreads the budget over the rounds that are left."""

    def __init__(self, problem: Problem, draws: np.random.Generator) -> None:
        self._costs = list_costs(problem)
        self._draws = draws

    def choose(self, arrival: Arrival, share: float = 1.0) -> int | None:
        """An arm, with `share` of the chance that the budget allows."""
        arms = arrival.available
        if not arms:
            return None
        mean_cost = sum(self._costs[arrival.context][arm] for arm in arms) / len(arms)
        coin = self._draws.random()
        chance = share * spread_evenly(arrival, mean_cost)
        return arms[int(len(arms) * coin / chance)] if coin < chance else None
