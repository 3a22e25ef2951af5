"""`a/b` and `explore-then-lp`: all arms alike for a while, then what has earned most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Problem
from doral.simulation.rivals.plan import Plan, Settings, Uniform, list_costs, spread_evenly
from doral.simulation.rivals.trials import Trials


@dataclass(frozen=True, kw_only=True)
class ABSettings(Settings):
    """`explore`: the share of the horizon that the test takes."""

    explore: float = 0.2


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
        self._costs = list_costs(problem)
        self._deadlines: list[float] = problem.deadlines.tolist()
        self._tried = np.zeros((problem.n_contexts, problem.n_arms))
        self._earned = np.zeros_like(self._tried)
        self._per_decision: dict[int, list[float]] = {}  # by context, until an answer changes it
        self._problem, self._asks_for_uplift = problem, problem.baseline is not None

    def decide(self, arrival: Arrival) -> int | None:
        if arrival.round <= self._last_test:
            arm = self._uniform.choose(arrival)
            given = self._problem.control if arm is None else arm
            if given is not None:
                self._tried[arrival.context, given] += 1.0
                self._per_decision.pop(arrival.context, None)
            return arm
        if not arrival.available:
            return None
        earned, costs = self._earned_in(arrival.context), self._costs[arrival.context]
        best, most, chance = -1, -math.inf, 0.0
        for arm in arrival.available:  # in plain numbers: it is asked in every round
            affordable = spread_evenly(arrival, costs[arm])
            if (value := earned[arm] * affordable) > most:
                best, most, chance = arm, value, affordable
        is_played = self._draws.random() < chance and not (self._asks_for_uplift and earned[best] <= 0.0)
        return best if is_played else None

    def _earned_in(self, context: int) -> list[float]:
        if context not in self._per_decision:
            self._per_decision[context] = self._uplifts(context).tolist()
        return self._per_decision[context]

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
            self._per_decision.pop(answer.context, None)


@dataclass(frozen=True, kw_only=True)
class ExploreThenLPSettings(Settings):
    """`explore`: the share of the horizon, and so of the budget, that goes to exploration."""

    explore: float = 0.1


class ExploreThenLP:
    """Means of cells follow the answers; a cell without any has the mean of all."""

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
