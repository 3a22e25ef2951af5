"""`a/b`: a test of all arms for a while, then the winner of each context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.problem import Problem
from doral.simulation.rivals.plan import Settings, Uniform, list_costs, share, spread_evenly
from doral.simulation.world.python_policy import Answer, Arrival


@dataclass(frozen=True, kw_only=True)
class ABSettings(Settings):
    """`explore`: the share of the horizon that the test takes."""

    explore: float = 0.2

    def __post_init__(self) -> None:
        share("explore", self.explore)


class AB:
    """Uniform over the arms, then the arm that has earned the most per decision of the test, at list prices.

    Late answers to decisions of the test still count. Of arms that cost differently the winner is the one that earns
    most when a coin spreads the budget over all arrivals. Where the problem has a baseline, what counts is what an arm
    earns beyond it, and nothing is done where that is none.
    """

    def __init__(self, problem: Problem, seed: int, settings: ABSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._last_test = int(settings.explore * problem.expected_rounds)
        self._costs = np.array(list_costs(problem))
        self._deadlines: list[float] = problem.deadlines.tolist()
        self._tried = np.zeros((problem.n_contexts, problem.n_arms))
        self._earned = np.zeros_like(self._tried)
        self._problem, self._asks_for_uplift = problem, problem.baseline is not None

    def decide(self, arrival: Arrival) -> int | None:
        if arrival.round <= self._last_test:
            arm = self._uniform.choose(arrival)
            given = self._problem.control if arm is None else arm
            if given is not None:
                self._tried[arrival.context, given] += 1.0
            return arm
        if not arrival.available:
            return None
        arms = list(arrival.available)
        earned = self._uplifts(arrival.context)[arms]
        costs: list[float] = self._costs[arrival.context, arms].tolist()
        affordable = [spread_evenly(arrival, cost) for cost in costs]
        best = int(np.argmax(earned * affordable))
        is_played = self._draws.random() < affordable[best] and not (self._asks_for_uplift and earned[best] <= 0.0)
        return arms[best] if is_played else None

    def _uplifts(self, context: int) -> Floats:
        """What each arm has earned per decision of the test, beyond what was or would have been earned by skipping."""
        earned = self._earned[context] / np.maximum(self._tried[context], 1.0)
        if self._problem.control is not None:
            return np.asarray(earned - earned[self._problem.control])
        known = self._problem.baseline
        return earned if known is None or isinstance(known, str) else np.asarray(earned - known[context])

    def observe(self, answer: Answer) -> None:
        if answer.decided <= self._last_test and answer.delay <= self._deadlines[answer.context]:
            self._earned[answer.context, answer.arm] += answer.reward
