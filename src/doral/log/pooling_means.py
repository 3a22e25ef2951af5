"""Means of cells, with effects that add up: all of them are drawn from normal laws, exactly.

Their variances have half-Cauchy priors on the scale of the worth, as conjugate pairs (Makalic and Schmidt 2016).
"""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats
from doral.log.cells import Cells

_DEGREES = 4.0  # the variance within an arm counts like so many rows in that of a cell


class _Scale:
    """A variance, and its auxiliary variable."""

    def __init__(self, size: float) -> None:
        self.size, self.variance, self._aux = size, (0.3 * size) ** 2, size * size

    def draw(self, rng: np.random.Generator, effects: Floats) -> None:
        rate = 0.5 * float((effects**2).sum()) + 1.0 / self._aux
        self.variance = max(rate / rng.gamma(0.5 * (effects.size + 1)), (1e-4 * self.size) ** 2)
        self._aux = (1.0 / self.size**2 + 1.0 / self.variance) / rng.gamma(1.0)


class MeanSampler:
    """Of all cells of a log."""

    def __init__(self, cells: Cells, rng: np.random.Generator) -> None:
        n_contexts, n_arms = cells.n_contexts, cells.n_arms
        self._rng = rng
        self._seen, rows = cells.mean.reshape(n_contexts, n_arms), cells.effective.reshape(n_contexts, n_arms)
        self._within = _within(cells)
        self._noise = np.divide(self._within, rows, out=np.full(rows.shape, np.inf), where=rows > 0.0)
        total = float(rows.sum())
        self._middle = float((self._seen * rows).sum()) / total
        spread = float(np.sqrt((rows * (self._seen - self._middle) ** 2).sum() / total))
        size = max(abs(self._middle), spread, 1e-9)
        self._of_context, self._of_arm = np.zeros(n_contexts), np.zeros(n_arms)
        self._own = np.zeros(rows.shape)
        self._context_scale = _Scale(size) if n_contexts > 1 else None
        self._arm_scale = _Scale(size) if n_arms > 1 else None
        # With one context, or one arm, what a cell has of its own is that of its arm, or context.
        self._own_scale = _Scale(size) if n_contexts > 1 and n_arms > 1 else None
        settled = cells.worth[cells.is_settled]
        self._range = float(settled.min()), float(settled.max())

    def _expected(self) -> Floats:
        return np.asarray(self._middle + self._of_context[:, None] + self._of_arm[None, :])

    def sweep(self) -> None:
        rng = self._rng
        own = 0.0 if self._own_scale is None else self._own_scale.variance
        precision = 1.0 / (self._noise + own)  # 0 where nothing is seen
        known = float(precision.sum())
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
            variance = self._own_scale.variance
            part = variance / (variance + self._noise)
            self._own = part * (self._seen - self._expected()) + rng.normal(size=part.shape) * np.sqrt(
                variance * (1.0 - part)
            )
            self._own_scale.draw(rng, self._own)

    def draw(self) -> tuple[Floats, Floats]:
        worth = np.clip(self._expected() + self._own, *self._range)
        scale = self._own_scale or self._arm_scale or self._context_scale
        return worth, np.zeros(worth.shape) if scale is None else self._within / scale.variance


def _within(cells: Cells) -> Floats:
    """(J, A) the variance of what a decision brings: that of its cell, with that of all cells of its arm."""
    shape = (cells.n_contexts, cells.n_arms)
    rows, variance = cells.effective.reshape(shape), cells.variance.reshape(shape)
    degrees = np.maximum(rows - 1.0, 0.0)
    all_of = float((degrees * variance).sum() + 1e-300) / max(float(degrees.sum()), 1.0)
    of_arm = ((degrees * variance).sum(axis=0) + _DEGREES * all_of) / (degrees.sum(axis=0) + _DEGREES)
    return np.asarray((degrees * variance + _DEGREES * of_arm[None, :]) / (degrees + _DEGREES))
