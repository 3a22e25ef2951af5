"""`status-quo`: what is done today; nothing is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import MAX_ARMS, MAX_CONTEXTS, Problem
from doral.simulation.rivals.plan import Settings, list_costs, spread_evenly

_ROUNDING = 1e-9  # by which chances may exceed 1 in sum


@dataclass(frozen=True, kw_only=True)
class StatusQuoSettings(Settings):
    """What is done: `shares` or `chances`; with neither, all arms alike, as long as the budget lasts.

    `shares`: how often each arm is used, in the order of the problem; a coin makes the budget last. `chances`: by
    context, with which chance each arm is given to an arrival, as a log has it; the rest get nothing, and nothing
    paces it.
    """

    shares: tuple[float, ...] | None = None
    chances: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        if self.shares is not None and self.chances is not None:
            raise InvalidValue("chances", self.chances, "give shares of arms or chances by context, not both")
        if self.shares is not None:
            shares = _numbers("shares", self.shares)
            if sum(shares) <= 0.0:
                raise InvalidValue("shares", self.shares, "at least one must be above 0")
            object.__setattr__(self, "shares", shares)
        if self.chances is not None:
            rows = _check.items("chances", self.chances, what="rows of chances, one per context", at_most=MAX_CONTEXTS)
            table = tuple(_numbers("chances", row) for row in rows)
            for row in table:
                if sum(row) > 1.0 + _ROUNDING:
                    raise InvalidValue("chances", row, "must sum to at most 1 in every context")
            object.__setattr__(self, "chances", table)


def _numbers(field: str, given: object) -> tuple[float, ...]:
    some = _check.items(field, given, what="numbers", at_most=MAX_ARMS)
    return tuple(_check.finite_number(field, each, at_least=0) for each in some)


class StatusQuo:
    """An arm drawn by its share among those that can be had, by a coin that makes the budget last at list prices.

    Or by its chance in the context, if it can be had.
    """

    def __init__(self, problem: Problem, seed: int, settings: StatusQuoSettings) -> None:
        shares = settings.shares if settings.shares is not None else (1.0,) * problem.n_arms
        if len(shares) != problem.n_arms:
            raise InvalidValue("number of shares", len(shares), f"must be one per arm, {problem.n_arms}")
        self._chances = settings.chances
        if self._chances is not None:
            sizes = (len(self._chances), *{len(row) for row in self._chances})
            if sizes != (problem.n_contexts, problem.n_arms):
                remedy = f"must be {problem.n_contexts} rows, one per context, of {problem.n_arms}, one per arm"
                raise InvalidValue("shape of chances", sizes, remedy)
        self._shares, self._costs = shares, list_costs(problem)
        self._draws = np.random.default_rng(seed)

    def decide(self, arrival: Arrival) -> int | None:
        if self._chances is not None:
            return self._by_chance(self._chances[arrival.context], arrival)
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

    def _by_chance(self, chances: tuple[float, ...], arrival: Arrival) -> int | None:
        left = self._draws.random()
        for arm, chance in enumerate(chances):
            left -= chance
            if left < 0.0:
                return arm if arm in arrival.available else None
        return None

    def observe(self, answer: Answer) -> None:
        """Nothing is learned."""
