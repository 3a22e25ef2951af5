"""What an option brings in a context: means of cells, drawn to what contexts and options have in common.

Thin cells are mostly main effects, full ones mostly themselves; how much follows from how far the cells of this log lie
apart, beyond what noise explains.
"""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints

ROUNDS = 8  # of fitting contexts and options in turn; a grid that is mostly full has settled by then
ROUNDING = 1e-13  # of the mean square: what varies less does not vary


def _safe_ratio(top: Floats, bottom: Floats) -> Floats:
    ratio: Floats = np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom > 0.0)
    return ratio


def _variance_between(means: Floats, n: Floats, noise: float) -> float:
    """How far true means lie apart (the moment estimate of DerSimonian and Laird)."""
    seen = n > 0.0
    if int(seen.sum()) < 2:
        return 0.0
    n, means = n[seen], means[seen]
    spread = float((n * (means - (n * means).sum() / n.sum()) ** 2).sum())
    return max(0.0, (spread - (n.size - 1) * noise) / float(n.sum() - (n**2).sum() / n.sum()))


def shrunk_means(weight: Floats, total: Floats, square: Floats, weight_square: Floats) -> Floats:
    """(J, K) means of cells from sums of weights, of values, of their squares, and of the squares of the weights."""
    n = _safe_ratio(weight**2, weight_square)  # how many rows that is worth
    mean = _safe_ratio(total, weight)
    everything = float(n.sum())
    if everything == 0.0:
        return np.zeros(weight.shape)
    within = float((n * np.maximum(_safe_ratio(square, weight) - mean**2, 0.0)).sum())
    noise = within / max(everything - int((n > 0.0).sum()), 1.0)
    if noise <= ROUNDING * float((n * mean**2).sum()) / everything:
        noise = 0.0
    if noise == 0.0 and float((n > 0.0).sum()) == everything:  # a row in each cell: their spread is all there is
        noise = float((n * (mean - (n * mean).sum() / everything) ** 2).sum()) / max(everything - 1.0, 1.0)
    grand = float((n * mean).sum()) / everything
    of_context, of_option = np.zeros((n.shape[0], 1)), np.zeros((1, n.shape[1]))
    for _ in range(ROUNDS):
        of_context = _effects(mean - grand - of_option, n, noise, axis=1)
        of_option = _effects(mean - grand - of_context, n, noise, axis=0)
    main = grand + of_context + of_option
    apart = _variance_between((mean - main).ravel(), n.ravel(), noise)
    kept = _safe_ratio(apart * n, apart * n + noise) if noise > 0.0 else (n > 0.0).astype(np.float64)
    shrunk: Floats = main + kept * np.where(n > 0.0, mean - main, 0.0)
    return shrunk


def _effects(left: Floats, n: Floats, noise: float, *, axis: int) -> Floats:
    count = n.sum(axis=axis, keepdims=True)
    mean = _safe_ratio((n * left).sum(axis=axis, keepdims=True), count)
    apart = _variance_between(mean.ravel(), count.ravel(), noise)
    effects: Floats = mean * _safe_ratio(apart * count, apart * count + noise)
    return effects if noise > 0.0 else mean


class CellModel:
    """Sums by cell and fold, from which the means without a fold follow at once."""

    def __init__(
        self, *, cell: Ints, shape: tuple[int, int], values: Floats, weight: Floats, fold: Ints, n_folds: int
    ) -> None:
        place = fold * (shape[0] * shape[1]) + cell
        size = n_folds * shape[0] * shape[1]
        parts = (weight, weight * values, weight * values**2, weight**2)
        self._sums = [np.bincount(place, weights=one, minlength=size).reshape(n_folds, *shape) for one in parts]

    def without(self, fold: int) -> Floats:
        """Learned from all other folds."""
        return shrunk_means(*(np.maximum(one.sum(axis=0) - one[fold], 0.0) for one in self._sums))

    def of_all(self) -> Floats:
        return shrunk_means(*(one.sum(axis=0) for one in self._sums))
