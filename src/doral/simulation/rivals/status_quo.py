"""`status-quo`: what is done today, whatever comes back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral.errors import InvalidValue
from doral.problem import MAX_ARMS, Problem
from doral.simulation.python_policy import Answer, Arrival
from doral.simulation.rivals.plan import list_costs, spread_evenly
from doral.simulation.rivals.settings import Settings


@dataclass(frozen=True, kw_only=True)
class StatusQuoSettings(Settings):
    """`shares`: how often each arm is used, in the order of the problem; None: all alike."""

    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.shares is None:
            return
        given = _check.items("shares", self.shares, what="numbers", at_most=MAX_ARMS)
        shares = tuple(_check.finite_number("shares", each, at_least=0) for each in given)
        if sum(shares) <= 0.0:
            raise InvalidValue("shares", self.shares, "at least one must be above 0")
        object.__setattr__(self, "shares", shares)


class StatusQuo:
    """An arm drawn by its share among those that can be had, by a coin that makes the budget last at list prices."""

    def __init__(self, problem: Problem, seed: int, settings: StatusQuoSettings) -> None:
        shares = settings.shares if settings.shares is not None else (1.0,) * problem.n_arms
        if len(shares) != problem.n_arms:
            raise InvalidValue("number of shares", len(shares), f"must be one per arm, {problem.n_arms}")
        self._shares, self._costs = shares, list_costs(problem)
        self._draws = np.random.default_rng(seed)

    def decide(self, arrival: Arrival) -> int | None:
        total = sum(self._shares[arm] for arm in arrival.available)
        if total <= 0.0:
            return None
        costs = self._costs[arrival.context]
        mean_cost = sum(self._shares[arm] * costs[arm] for arm in arrival.available) / total
        coin, chance = self._draws.random(), spread_evenly(arrival, mean_cost)
        if coin >= chance:
            return None
        left = total * coin / chance  # what is below the chance is uniform again
        for arm in arrival.available:
            left -= self._shares[arm]
            if left < 0.0:
                return arm
        return arrival.available[-1]

    def observe(self, answer: Answer) -> None:
        """Nothing is learned."""
