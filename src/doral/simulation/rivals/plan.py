"""What rivals share: settings, uniform exploration, and LP_m with the remaining budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.pacing import Pacer
from doral.prediction.python_policy import Arrival
from doral.problem import Problem, reserve_depths
from doral.simulation.world.oracle import reserve_caps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What can be set about a rival; each has its own. `explore`, where it has one, is a share."""

    def __post_init__(self) -> None:
        if hasattr(self, "explore"):
            _check.finite_number("explore", self.explore, at_least=0, at_most=1)


_MOST_ROUNDS = 50  # between two plans
_STEPS_TO_THE_END = 20
_TIE = 1e-9


class Plan:
    """Who is served with what, until the next plan."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._bought = [arm for arm in range(problem.n_arms) if arm != problem.control]
        self._costs: list[list[float]] = []
        self._depths = reserve_depths(problem)
        self._arrived = np.ones(problem.n_contexts)
        self._price = 0.0
        self._values: list[list[float]] = []
        self._until: list[list[float]] = []  # by context: cumulative chances of the arms
        self._next = 1

    def is_due(self, arrival: Arrival) -> bool:
        """Whether values are asked for: when 2% more rounds have passed, at most 50, and more often at the end."""
        if self._problem.shares is None:
            self._arrived[arrival.context] += 1.0
        return arrival.round >= self._next

    def make(self, values: Floats, costs: Floats, arrival: Arrival) -> None:
        """A new plan, from the worth (J, A) of a decision and from what it is thought to cost."""
        values = values - nothing_of(self._problem, values)
        rate = arrival.budget_left / arrival.rounds_left
        shares = self._problem.shares if self._problem.shares is not None else self._arrived / self._arrived.sum()
        bought, floor = costs[:, self._bought], self._problem.return_at_least
        caps = reserve_caps(self._problem, bought, shares, self._depths, rate)
        pacer = Pacer(costs=bought, shares=shares, rate=rate, caps=caps, depths=self._depths, floor=floor)
        solved = pacer.solve(np.ascontiguousarray(values[:, self._bought]))
        self._price = max(solved.price, floor)
        self._values, self._costs = values.tolist(), costs.tolist()
        self._until = np.cumsum(solved.play, axis=1).tolist()
        self._next = arrival.round + max(
            1, min(_MOST_ROUNDS, arrival.round // 50, arrival.rounds_left // _STEPS_TO_THE_END)
        )

    def choose(self, arrival: Arrival, coin: float) -> int | None:
        """Return the planned arm for an arrival; where arms are missing, the best of the others at its price."""
        chances = self._until[arrival.context]
        if len(arrival.available) == len(self._bought):
            return next((self._bought[i] for i, chance in enumerate(chances) if coin < chance), None)
        if not arrival.available:
            return None
        values = self._values[arrival.context]
        costs = self._costs[arrival.context]
        gains = {arm: values[arm] - self._price * costs[arm] for arm in arrival.available}
        best = max(gains, key=lambda arm: gains[arm])
        slack = _TIE * abs(values[best])
        if values[best] <= 0.0 or gains[best] < -slack or (gains[best] <= slack and coin >= chances[-1]):
            return None
        return best


def nothing_of(problem: Problem, values: Floats) -> Floats:
    """(J, 1) what skipping is worth: known, or what the control arm is thought to bring."""
    if problem.control is not None:
        return values[:, [problem.control]]
    known = 0.0 if problem.baseline is None else np.array(problem.baseline)
    return np.asarray(problem.weights * known)[:, None]


def spread_evenly(arrival: Arrival, cost: float) -> float:
    """The chance with which a decision of this cost can be made in every round until the end."""
    return min(1.0, arrival.budget_left / (arrival.rounds_left * cost)) if cost > 0.0 else 1.0


def list_costs(problem: Problem) -> list[list[float]]:
    """By context and arm."""
    costs: list[list[float]] = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms)).tolist()
    return costs


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
