"""`a/b`: a test of all arms for a while, then the winner of each context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral.problem import Problem
from doral.simulation.python_policy import Answer, Arrival
from doral.simulation.rivals.plan import list_costs, spread_evenly
from doral.simulation.rivals.settings import Settings, share
from doral.simulation.rivals.uniform import Uniform


@dataclass(frozen=True, kw_only=True)
class ABSettings(Settings):
    """`explore`: the share of the horizon that the test takes."""

    explore: float = 0.2

    def __post_init__(self) -> None:
        share("explore", self.explore)


class AB:
    """Uniform over the arms, then the arm that has earned the most per decision of the test.

    Late answers to decisions of the test still count. Of arms that cost differently the winner is the one that earns
    most when a coin spreads the budget over all arrivals.
    """

    def __init__(self, problem: Problem, seed: int, settings: ABSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._last_test = int(settings.explore * problem.expected_rounds)
        self._costs = np.array(list_costs(problem))
        self._deadlines: list[float] = problem.deadlines.tolist()
        self._tried = np.zeros((problem.n_contexts, problem.n_arms))
        self._earned = np.zeros_like(self._tried)

    def decide(self, arrival: Arrival) -> int | None:
        if arrival.round <= self._last_test:
            arm = self._uniform.choose(arrival)
            if arm is not None:
                self._tried[arrival.context, arm] += 1.0
            return arm
        if not arrival.available:
            return None
        arms = list(arrival.available)
        earned = self._earned[arrival.context, arms] / np.maximum(self._tried[arrival.context, arms], 1.0)
        costs: list[float] = self._costs[arrival.context, arms].tolist()
        affordable = [spread_evenly(arrival, cost) for cost in costs]
        best = int(np.argmax(earned * affordable))
        return arms[best] if self._draws.random() < affordable[best] else None

    def observe(self, answer: Answer) -> None:
        if answer.decided <= self._last_test and answer.delay <= self._deadlines[answer.context]:
            self._earned[answer.context, answer.arm] += answer.reward
