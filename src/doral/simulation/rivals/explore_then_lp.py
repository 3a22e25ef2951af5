"""`explore-then-lp`: uniform for a while, then LP_m with what each arm has earned in each context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.problem import Problem
from doral.simulation.rivals.plan import Plan, Settings, Uniform, share
from doral.simulation.rivals.trials import Trials
from doral.simulation.world.python_policy import Answer, Arrival


@dataclass(frozen=True, kw_only=True)
class ExploreThenLPSettings(Settings):
    """`explore`: the share of the horizon, and so of the budget, that goes to exploration."""

    explore: float = 0.1

    def __post_init__(self) -> None:
        share("explore", self.explore)


class ExploreThenLP:
    """Means of cells go on following what comes back; a cell without any has the mean of all."""

    def __init__(self, problem: Problem, seed: int, settings: ExploreThenLPSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._last_exploring = int(settings.explore * problem.expected_rounds)
        self._weights: Floats = problem.weights[:, None]
        self._trials, self._plan = Trials(problem), Plan(problem)

    def decide(self, arrival: Arrival) -> int | None:
        is_due = self._plan.is_due(arrival)  # who arrives is counted while exploring, too
        if arrival.round <= self._last_exploring:
            arm = self._uniform.choose(arrival)
        else:
            if is_due:
                self._plan.make(self._values(arrival.time), self._trials.costs(arrival.time), arrival)
            arm = self._plan.choose(arrival, self._draws.random())
        self._trials.decide(arrival.time, arrival.context, arm)
        return arm

    def observe(self, answer: Answer) -> None:
        self._trials.observe(answer)

    def _values(self, now: float) -> Floats:
        """What a decision has brought, with the mean of all as one more decision; all alike while nothing has come."""
        earned, tried = self._trials.rewards, self._trials.exposure(now)
        if not earned.any():
            return self._weights * self._draws.random(tried.shape)
        of_all = earned.sum() / max(1.0, float(tried.sum()))
        values: Floats = self._weights * (earned + of_all) / (tried + 1.0)
        return values
