"""Rates by context and arm, shrunk to what contexts and arms have in common."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats
from doral._elementary import exp

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
