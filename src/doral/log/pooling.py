"""What cells are worth, learned together: a thin one borrows from those of its arm and of its context.

    worth of (j, a) = m + context_j + arm_a + deviation_ja,   each drawn around 0 with a variance that is learned

A Gibbs sampler draws from what the log leaves possible. The variances have half-Cauchy priors on the scale of the worth
itself (as conjugate pairs, Makalic and Schmidt 2016), so that nothing is tuned: where cells scatter no more than chance
has them scatter, deviations vanish; where they do, cells speak for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.log.cells import Cells

BURN_IN, SWEEPS = 400, 15  # before the first draw, and between two
_LEAST = 0.02  # of the mean of all: no expected rate is smaller
_DEGREES = 4.0  # the variance within an arm counts like so many rows in that of a cell


@dataclass(frozen=True, kw_only=True)
class Worths:
    """Draws of what cells are worth, and how many rows the others stand for in each."""

    worth: Floats  # (B, J, A)
    borrowed: Floats  # (B, J, A) in rows; infinite where a cell has no say of its own


class _Scale:
    """A variance with a half-Cauchy prior, and its auxiliary variable."""

    def __init__(self, size: float) -> None:
        self.size, self.variance, self._aux = size, (0.3 * size) ** 2, size * size

    def draw(self, rng: np.random.Generator, effects: Floats) -> None:
        rate = 0.5 * float((effects**2).sum()) + 1.0 / self._aux
        self.variance = max(rate / rng.gamma(0.5 * (effects.size + 1)), (1e-4 * self.size) ** 2)
        self._aux = (1.0 / self.size**2 + 1.0 / self.variance) / rng.gamma(1.0)


def draw_worths(cells: Cells, n: int, rng: np.random.Generator) -> Worths:
    """So many draws of the truth, as far as the log tells it."""
    shape = (cells.n_contexts, cells.n_arms)
    seen, rows = cells.mean.reshape(shape), cells.effective.reshape(shape)
    total = rows.sum()
    overall = float((seen * rows).sum() / total) if total > 0.0 else 0.0
    spread = float(np.sqrt((rows * (seen - overall) ** 2).sum() / total)) if total > 0.0 else 0.0
    size = max(abs(overall), spread, 1e-9)
    sampler = _Sampler(cells, seen, rows, overall, size, rng)
    worth, borrowed = np.empty((n, *shape)), np.empty((n, *shape))
    for sweep in range(BURN_IN + n * SWEEPS):
        sampler.sweep()
        if sweep >= BURN_IN and (sweep - BURN_IN) % SWEEPS == 0:
            number = (sweep - BURN_IN) // SWEEPS
            worth[number], borrowed[number] = sampler.draw()
    return Worths(worth=worth, borrowed=borrowed)


class _Sampler:
    def __init__(
        self, cells: Cells, seen: Floats, rows: Floats, overall: float, size: float, rng: np.random.Generator
    ) -> None:
        self._seen, self._rows, self._overall, self._rng, self._step = seen, rows, overall, rng, cells.step
        n_contexts, n_arms = seen.shape
        self._middle = overall
        self._of_context, self._of_arm = np.zeros(n_contexts), np.zeros(n_arms)
        self._own = np.zeros(seen.shape)
        self._context_scale = _Scale(size) if n_contexts > 1 else None
        self._arm_scale = _Scale(size) if n_arms > 1 else None
        # With one context, or one arm, what a cell has of its own is that of its arm, or context.
        self._own_scale = _Scale(size) if n_contexts > 1 and n_arms > 1 else None
        self._within = _within(cells, seen.shape)
        settled = cells.worth[cells.is_settled]
        self._range = (float(settled.min()), float(settled.max())) if settled.size else (0.0, 0.0)

    def _expected(self) -> Floats:
        return np.asarray(self._middle + self._of_context[:, None] + self._of_arm[None, :])

    def _possible(self, worth: Floats) -> Floats:
        """Rates, where successes are all alike."""
        if self._step is None:
            return np.clip(worth, *self._range)
        low = _LEAST * max(self._overall, 1e-6 * self._step)
        return np.clip(worth, low, self._step - low)

    def _noise(self, expected: Floats) -> Floats:
        """(J, A) the variance of what is seen, around what is true of a cell; infinite where nothing is seen."""
        if self._step is not None:
            rate = self._possible(expected)
            variance = rate * (self._step - rate)
        else:
            variance = self._within
        return np.divide(variance, self._rows, out=np.full(variance.shape, np.inf), where=self._rows > 0.0)

    def sweep(self) -> None:
        rng = self._rng
        own = 0.0 if self._own_scale is None else self._own_scale.variance
        precision = 1.0 / (self._noise(self._expected()) + own)  # 0 where nothing is seen
        known = max(float(precision.sum()), 1e-300)
        away = self._seen - self._of_context[:, None] - self._of_arm[None, :]
        self._middle = float((precision * away).sum()) / known + float(rng.normal()) / known**0.5
        if self._context_scale is not None:
            away = self._seen - self._middle - self._of_arm[None, :]
            told = precision.sum(axis=1) + 1.0 / self._context_scale.variance
            self._of_context = (precision * away).sum(axis=1) / told + rng.normal(size=told.size) / np.sqrt(told)
            self._context_scale.draw(rng, self._of_context)
        if self._arm_scale is not None:
            away = self._seen - self._middle - self._of_context[:, None]
            told = precision.sum(axis=0) + 1.0 / self._arm_scale.variance
            self._of_arm = (precision * away).sum(axis=0) / told + rng.normal(size=told.size) / np.sqrt(told)
            self._arm_scale.draw(rng, self._of_arm)
        if self._own_scale is not None:
            noise, variance = self._noise(self._expected()), self._own_scale.variance
            part = variance / (variance + noise)
            self._own = part * (self._seen - self._expected()) + rng.normal(size=part.shape) * np.sqrt(
                variance * (1.0 - part)
            )
            self._own_scale.draw(rng, self._own)

    def draw(self) -> tuple[Floats, Floats]:
        """Worth of every cell, and the rows for which the others stand."""
        expected = self._possible(self._expected())
        scale = self._own_scale or self._arm_scale or self._context_scale
        if self._own_scale is None:
            # Effects are the cells themselves: drawn with what they were seen to bring.
            variance = np.inf if scale is None else scale.variance
            worth, within = expected, self._noise(expected) * self._rows
            return worth, np.where(self._rows > 0.0, np.nan_to_num(within / variance), np.inf)
        variance = self._own_scale.variance
        if self._step is None:
            borrowed = self._within / variance
            return self._possible(self._expected() + self._own), np.where(self._rows > 0.0, borrowed, np.inf)
        rate = expected / self._step
        strength = np.maximum(rate * (1.0 - rate) * self._step**2 / variance - 1.0, 0.5)
        successes = self._rows * self._seen / self._step
        drawn = self._rng.beta(
            strength * rate + successes, strength * (1.0 - rate) + np.maximum(self._rows - successes, 0.0)
        )
        return self._possible(self._step * drawn), np.where(self._rows > 0.0, strength, np.inf)


def _within(cells: Cells, shape: tuple[int, int]) -> Floats:
    """(J, A) the variance of what a decision brings: that of its cell, with that of all cells of its arm."""
    rows, variance = cells.effective.reshape(shape), cells.variance.reshape(shape)
    degrees = np.maximum(rows - 1.0, 0.0)
    all_of = float((degrees * variance).sum() + 1e-300) / max(float(degrees.sum()), 1.0)
    of_arm = ((degrees * variance).sum(axis=0) + _DEGREES * all_of) / (degrees.sum(axis=0) + _DEGREES)
    return np.asarray((degrees * variance + _DEGREES * of_arm[None, :]) / (degrees + _DEGREES))
