"""`beta-ts-lp`: Thompson sampling from Beta posteriors shrunk to main effects, paced by LP_m."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.numerics.elementary import exp
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Problem
from doral.simulation.rivals.plan import Plan, Settings, Uniform
from doral.simulation.rivals.trials import Trials

_SWEEPS = 4  # of Newton's steps, from where the last fit ended
_LONGEST_STEP = 1.0
_PRECISION = 1.0  # of the prior of an effect, in logits
_FIRST_SPREAD = 0.1  # of cells around the main effects, as a share of p (1 - p), before anything is known
_STRENGTHS = (1.0, 1e4)  # of the prior of a cell, in trials


class MainEffects:
    """logit p_ja = mu + alpha_j + beta_a, and a Beta prior around it whose strength is learned from the cells.

    Cells scatter around the main effects by more than chance: the excess of Pearson's statistic over its degrees of
    freedom gives the correlation 1 / (strength + 1) within a cell, as in the beta-binomial law. It is taken one
    standard deviation too high: to believe in the main effects while cells differ is the dearer mistake.
    """

    def __init__(self, n_contexts: int, n_arms: int) -> None:
        self._level = 0.0
        self._contexts = np.zeros((n_contexts, 1))
        self._arms = np.zeros((1, n_arms))
        self._contexts_variance, self._arms_variance = np.ones((n_contexts, 1)), np.ones((1, n_arms))
        self.strength = 1.0 / _FIRST_SPREAD - 1.0
        self.rates = np.full((n_contexts, n_arms), 0.5)

    def fit(self, successes: Floats, trials: Floats) -> None:
        """Go on from the last fit."""
        for _ in range(_SWEEPS):
            missing, weight = self._residual(successes, trials)
            self._level += float(_step(missing.sum() + 0.5 - self._mean_rate(), weight.sum() + 0.25))
            missing, weight = self._residual(successes, trials)
            self._contexts += _step(
                missing.sum(axis=1, keepdims=True) - _PRECISION * self._contexts,
                weight.sum(axis=1, keepdims=True) + _PRECISION,
            )
            missing, weight = self._residual(successes, trials)
            self._arms += _step(
                missing.sum(axis=0, keepdims=True) - _PRECISION * self._arms,
                weight.sum(axis=0, keepdims=True) + _PRECISION,
            )
        missing, weight = self._residual(successes, trials)
        self._contexts_variance = 1.0 / (weight.sum(axis=1, keepdims=True) + _PRECISION)
        self._arms_variance = 1.0 / (weight.sum(axis=0, keepdims=True) + _PRECISION)
        # What a cell has not decided itself about the effects that it is measured by: 1 less its leverage.
        free = (1.0 - weight * self._contexts_variance) * (1.0 - weight * self._arms_variance)
        scatter = np.divide(missing**2, weight, out=np.zeros_like(weight), where=weight > 0.0).sum()
        degrees = float(free.sum())
        chance = max(1.0, np.sqrt(2.0 * degrees))
        excess = max(0.0, float(scatter) - degrees) + chance
        spread = excess / (float((free * np.maximum(trials - 1.0, 0.0)).sum()) + chance / _FIRST_SPREAD)
        low, high = _STRENGTHS
        self.strength = min(max(1.0 / min(spread, 1.0) - 1.0, low), high)

    def draw(self, draws: np.random.Generator, width: float) -> Floats:
        """Rates with each effect drawn around its estimate, as far as it is unknown."""
        contexts, arms = (
            width * draws.standard_normal(unknown.shape) * np.sqrt(unknown)
            for unknown in (self._contexts_variance, self._arms_variance)
        )
        return _expit(self._level + self._contexts + contexts + self._arms + arms)

    def _mean_rate(self) -> float:
        return float(_expit(np.array(self._level)))

    def _residual(self, successes: Floats, trials: Floats) -> tuple[Floats, Floats]:
        """What the rates leave unexplained, and its variance if chance is all there is."""
        self.rates = _expit(self._level + self._contexts + self._arms)
        return successes - trials * self.rates, trials * self.rates * (1.0 - self.rates)


def _expit(logits: Floats) -> Floats:
    rates: Floats = 1.0 / (1.0 + exp(-logits))
    return rates


def _step(gradient: Floats, curvature: Floats) -> Floats:
    step: Floats = np.clip(gradient / curvature, -_LONGEST_STEP, _LONGEST_STEP)
    return step


_BELIEF_IN_RETURNS = 10.0  # decisions for which the return rate of an arm stands in that of each of its contexts
_LEAST_DISPERSION = 1e-4


@dataclass(frozen=True, kw_only=True)
class BetaTSLPSettings(Settings):
    """`explore`: the share of the budget that is spent uniformly; `width` of draws around the mean: 1 is Thompson's."""

    explore: float = 0.02
    width: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
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
