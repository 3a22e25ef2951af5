"""`beta-ts-lp`: Thompson draws from Beta posteriors shrunk to main effects, and LP_m."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.problem import Problem
from doral.simulation.rivals.main_effects import MainEffects
from doral.simulation.rivals.plan import Plan
from doral.simulation.rivals.settings import Settings, share
from doral.simulation.rivals.trials import Trials
from doral.simulation.rivals.uniform import Uniform
from doral.simulation.world.python_policy import Answer, Arrival

_BELIEF_IN_RETURNS = 10.0  # decisions for which the return rate of an arm stands in that of each of its contexts
_LEAST_DISPERSION = 1e-4


@dataclass(frozen=True, kw_only=True)
class BetaTSLPSettings(Settings):
    """`explore`: the share of the budget that is spent uniformly; `width` of draws around the mean: 1 is Thompson's."""

    explore: float = 0.02
    width: float = 0.5

    def __post_init__(self) -> None:
        share("explore", self.explore)
        _check.finite_number("width", self.width, at_least=0)


class BetaTSLP:
    """A Beta posterior per context and arm.

    With silent feedback, it is about what comes in time per decision, and an open decision is a fraction of a trial.
    With explicit feedback, it is about answers, and times the chance of one in time. Rewards are scaled into [0, 1]
    by the range seen; where they scatter less than zeros and ones would, a trial counts for as many as it is worth.
    """

    def __init__(self, problem: Problem, seed: int, settings: BetaTSLPSettings) -> None:
        self._draws = np.random.default_rng(seed)
        self._uniform = Uniform(problem, self._draws)
        self._explore, self._width = settings.explore, settings.width
        self._is_silent = problem.feedback == "silent"
        self._weights: Floats = problem.weights[:, None]
        self._trials, self._plan = Trials(problem), Plan(problem)
        self._prior = MainEffects(problem.n_contexts, problem.n_arms)

    def decide(self, arrival: Arrival) -> int | None:
        if self._plan.is_due(arrival):
            self._plan.make(self._values(arrival.time), self._trials.costs(arrival.time), arrival)
        arm = self._uniform.choose(arrival, self._explore)
        if arm is None:
            arm = self._plan.choose(arrival, self._draws.random())
        self._trials.decide(arrival.time, arrival.context, arm)
        return arm

    def observe(self, answer: Answer) -> None:
        self._trials.observe(answer)

    def _values(self, now: float) -> Floats:
        """A draw of what a decision is worth."""
        known, exposed = self._trials, self._trials.exposure(now)
        tried = exposed if self._is_silent else known.answers
        low, size = known.lowest, (known.highest - known.lowest) or 1.0
        successes = np.clip((known.rewards - low * tried) / size, 0.0, tried)
        scale = _dispersion(known.squares, known.rewards, tried, successes, size)
        successes, tried = successes / scale, tried / scale
        self._prior.fit(successes, tried)
        rates, strength = self._prior.draw(self._draws, self._width), self._prior.strength
        yes = strength * rates + successes
        no = strength * (1.0 - rates) + tried - successes
        mean = yes / (yes + no)
        drawn = low + size * (mean + self._width * (self._draws.beta(yes, no) - mean))
        chance = 1.0 if self._is_silent else _return_chance(known.answers, exposed)
        values: Floats = self._weights * chance * drawn
        return values


def _dispersion(squares: Floats, sums: Floats, tried: Floats, successes: Floats, size: float) -> float:
    """The variance within cells over that of zeros and ones with the same means: 1 for those, less for others."""
    some = np.maximum(tried, 1e-12)
    within = float(np.maximum(squares - sums**2 / some, 0.0).sum()) / size**2
    binary = float((successes * (1.0 - successes / some)).sum())
    return min(1.0, max((within + 1.0) / (binary + 1.0), _LEAST_DISPERSION))


def _return_chance(answers: Floats, exposed: Floats) -> Floats:
    """The chance of an answer in time: that of the cell, shrunk to the arm's, and this to that of all."""
    of_all = (answers.sum() + 1.0) / (exposed.sum() + 1.0)
    of_arm = (answers.sum(axis=0) + of_all * _BELIEF_IN_RETURNS) / (exposed.sum(axis=0) + _BELIEF_IN_RETURNS)
    return np.minimum(1.0, (answers + of_arm * _BELIEF_IN_RETURNS) / (exposed + _BELIEF_IN_RETURNS))
