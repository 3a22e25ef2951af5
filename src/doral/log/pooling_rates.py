"""Rates of cells, with effects that multiply: all of them are drawn from Gamma laws, exactly.

Successes are taken for Poisson counts; where they are not rare, a row counts for 1 / (1 - rate) of these, which is what
gives a binomial share the variance that it has. How far effects scatter is a relative deviation, 1 / sqrt(shape), with
a half-Cauchy prior around 1, drawn by a step of Metropolis.
"""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Floats

_MOST = 1.0 - 1e-6  # no rate is larger
_STEP = 0.7  # of the logarithm of a shape: about half of the proposals are taken
_SHAPES = (1e-2, 1e6)


class _Shape:
    """Of the Gamma law, with mean 1, of one kind of effects."""

    def __init__(self) -> None:
        self.value = 4.0

    def draw(self, rng: np.random.Generator, effects: Floats) -> None:
        logs = float(np.log(effects).sum() - effects.sum())
        proposed = min(max(self.value * math.exp(_STEP * rng.normal()), _SHAPES[0]), _SHAPES[1])
        gain = _density(proposed, effects.size, logs) - _density(self.value, effects.size, logs)
        if math.log(max(rng.random(), 1e-300)) < gain:
            self.value = proposed


def _density(shape: float, n: int, logs: float) -> float:
    """The logarithm of the density of log(shape), but for what does not change with it."""
    of_effects = n * (shape * math.log(shape) - math.lgamma(shape)) + shape * logs
    return of_effects - math.log1p(1.0 / shape) - 0.5 * math.log(shape)


class RateSampler:
    """`seen` (J, A) mean worths, of so many `rows`; a success brings `step`."""

    def __init__(self, seen: Floats, rows: Floats, step: float, rng: np.random.Generator) -> None:
        self._step, self._rng = step, rng
        rate = np.clip(seen / step, 0.0, 1.0)
        self._seen_rows, self._successes = rows, rate * rows
        n_contexts, n_arms = seen.shape
        total = max(float(rows.sum()), 1.0)
        # Of one success more than were seen no more is known than of none: it lets an empty log have a rate.
        self._rate = max(float(self._successes.sum()), 0.5) / total
        self._of_context, self._of_arm = np.ones(n_contexts), np.ones(n_arms)
        self._own = np.ones(seen.shape)
        self._context_shape = _Shape() if n_contexts > 1 else None
        self._arm_shape = _Shape() if n_arms > 1 else None
        # With one context, or one arm, what a cell has of its own is that of its arm, or context.
        self._own_shape = _Shape() if n_contexts > 1 and n_arms > 1 else None

    def _expected(self) -> Floats:
        return np.asarray(self._rate * self._of_context[:, None] * self._of_arm[None, :])

    def sweep(self) -> None:
        rng = self._rng
        spread = 1.0 / (1.0 - np.minimum(self._expected() * self._own, 0.99))
        counts, rows = self._successes * spread, self._seen_rows * spread
        exposed = rows * self._of_context[:, None] * self._of_arm[None, :] * self._own
        self._rate = rng.standard_gamma(max(float(counts.sum()), 0.5)) / max(float(exposed.sum()), 1.0)
        if self._context_shape is not None:
            exposed = (rows * self._of_arm[None, :] * self._own).sum(axis=1) * self._rate
            self._of_context = _gamma(rng, self._context_shape.value, counts.sum(axis=1), exposed)
            self._context_shape.draw(rng, self._of_context)
        if self._arm_shape is not None:
            exposed = (rows * self._of_context[:, None] * self._own).sum(axis=0) * self._rate
            self._of_arm = _gamma(rng, self._arm_shape.value, counts.sum(axis=0), exposed)
            self._arm_shape.draw(rng, self._of_arm)
        if self._own_shape is not None:
            self._own = _gamma(rng, self._own_shape.value, counts, rows * self._expected())
            self._own_shape.draw(rng, self._own.ravel())

    def draw(self) -> tuple[Floats, Floats]:
        expected = self._expected()
        rate = np.minimum(expected * self._own, _MOST)
        shape = self._own_shape or self._arm_shape or self._context_shape
        strength = 0.0 if shape is None else shape.value
        # An effect of this shape counts like so many rows in which `shape` successes are expected.
        return rate * self._step, strength * (1.0 - rate) / np.maximum(expected, 1e-12)


def _gamma(rng: np.random.Generator, shape: float, counts: Floats, exposed: Floats) -> Floats:
    return np.maximum(rng.standard_gamma(shape + counts) / (shape + exposed), 1e-12)
