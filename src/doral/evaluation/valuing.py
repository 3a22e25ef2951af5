"""Policies valued on the rows of a log: inverse propensities, self-normalised, and doubly robust.

Each estimate is told by what every row adds to it: the mean over rows is the estimate, and their spread gives its
error. So the difference of two policies, or a value per unit of cost, is the mean of differences row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.evaluation.censoring import Censoring, finest_groups
from doral.evaluation.propensity import Chances
from doral.evaluation.rows import Rows

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = ("ips", "snips", "dr")
LEVEL = 0.95
ROUNDING = 1e-11  # relative


class Weighted(NamedTuple):
    """What is known of every row when a policy is valued."""

    weight: (
        Floats  # the policy's probability of what was done, by that of the log; 0 where the outcome was known before
    )
    served: Floats  # how much of what the policy does in this context has to be learned from the log: 1, or less
    amount: Floats  # what came, or was paid
    of_done: Floats  # what was expected of what was done
    of_policy: Floats  # what is expected of what the policy does


def contributions(
    estimator: Estimator, rows: Weighted, censoring: Censoring, *, counted: Weighted | None = None
) -> Floats:
    """What each row adds.

    `counted` where the log's probabilities were counted: the same of what the policy does on average to all rows on
    which they were. Counting takes what differs between cells out of the first two estimators, as the third does by
    what it expects: they are more exact than if probabilities had been told.
    """
    if estimator == "dr":
        return rows.of_policy + censoring.spread(rows.weight * (rows.amount - rows.of_done))
    if estimator == "ips":
        mean, part = 0.0, 1.0
        added = censoring.spread(rows.weight * rows.amount)
    else:
        mass = float((rows.weight * censoring.weight).mean())
        if mass <= 0.0:
            return np.zeros(rows.weight.size)
        mean = float((rows.weight * censoring.weight * rows.amount).mean()) / mass
        part = float(rows.served.mean()) / mass
        added = rows.served * mean + part * censoring.spread(rows.weight * (rows.amount - mean))
    if counted is None:
        return added
    told = part * (counted.weight * (counted.of_done - mean) - (counted.of_policy - counted.served * mean))
    return added - (told - float(told.mean()))


class Interval(NamedTuple):
    """An estimate with its standard error and 95% interval."""

    mean: float
    error: float
    low: float
    high: float


def interval_of(added: Floats) -> Interval:
    """The mean of contributions.

    Where a few rows decide, the error is known badly: degrees of freedom are the number of rows that their squares are
    worth (2 over the squared relative error of a variance, for rows that mostly add nothing).
    """
    from scipy.special import stdtrit

    n = added.size
    mean = float(added.mean()) if n else math.nan
    if n < 2:
        return Interval(mean, math.inf, -math.inf, math.inf)
    off = added - mean
    square = off * off
    total = float(square.sum())
    if total <= 0.0:
        return Interval(mean, 0.0, mean, mean)
    error = math.sqrt(total / (n - 1) / n)
    degrees = max(1.0, total * total / float((square * square).sum()) - 1.0)
    reach = float(stdtrit(degrees, 0.5 + LEVEL / 2.0)) * error
    return Interval(mean, error, mean - reach, mean + reach)


def widened(interval: Interval, by: float) -> Interval:
    """The same estimate with a larger error."""
    mean, error, low, high = interval
    return Interval(mean, by * error, mean - by * (mean - low), mean + by * (high - mean))


def difference_of(added: Floats, base: Floats) -> Interval:
    """Of two means on the same rows. What is no more than the rounding of their sums is no difference."""
    off = added - base
    rounding = ROUNDING * float(np.abs(added).mean() + np.abs(base).mean())
    if off.size and float(np.abs(off).max()) <= rounding:
        return interval_of(np.zeros(off.size))
    return interval_of(off)


def effective_size(weight: Floats, among: Flags | None = None) -> float:
    """How many rows of equal weight say as much (Kish)."""
    weight = weight if among is None else weight[among]
    square = float((weight * weight).sum())
    return float(weight.sum()) ** 2 / square if square > 0.0 else 0.0


ROUNDS = 8  # of fitting contexts and options in turn; a grid that is mostly full has settled by then
MEAN_ROUNDING = 1e-13  # of the mean square: what varies less does not vary


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
    if noise <= MEAN_ROUNDING * float((n * mean**2).sum()) / everything:
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


FOLDS = 5
HALVES = 2


class Added(NamedTuple):
    """What each row adds to value and cost of a policy."""

    value: Floats
    cost: Floats


class Valuer:
    """What all policies have in common."""

    def __init__(self, rows: Rows, chances: Chances, *, seed: int) -> None:
        self.rows, self._chances = rows, chances
        n = len(rows)
        draws = np.random.default_rng(seed)
        place = draws.permutation(n)
        self.half: Ints = place % HALVES
        n_folds = max(2, min(FOLDS, n))
        self._fold = (place // HALVES) % n_folds
        through = rows.watched >= rows.deadline
        self._whole = Censoring(is_complete=np.ones(n, dtype=bool), age=rows.age, watched=rows.watched)
        # What was done may have changed while people came, and who came late was watched for a shorter time: what
        # came of a cell is set right by the watches of that cell.
        self._own = self._censoring(self._groups([rows.option, rows.cell], through))
        # Told probabilities set that right; counted ones, and watches that differ otherwise, leave it to the options.
        end = rows.time + rows.watched
        ends_together = bool(end.max() <= end.min() + 1e-6 * float(np.ptp(rows.time)))
        if chances.are_estimated or not ends_together:
            self._off = self._censoring(self._groups([rows.option], through), 1.0 / chances.probability)
        else:
            self._off = self._censoring(np.zeros(n, dtype=np.int64))
        self._values = self._expectations(rows.value, self._own.weight, n_folds, ~rows.too_new)
        paid_weight, is_learned = self._own.weight, ~rows.too_new
        if rows.is_paid_at_once:
            paid_weight, is_learned = self._whole.weight, np.ones_like(is_learned)
        self._costs = self._expectations(rows.paid, paid_weight, n_folds, is_learned)

    def _groups(self, levels: list[Ints], through: Flags) -> Ints:
        """Options that are too new have watches of their own: what comes after the longest counts as nothing."""
        groups, rows = finest_groups(levels, through), self.rows
        apart = np.where(rows.too_new[rows.option], int(groups.max()) + 1 + rows.option, groups)
        _, packed = np.unique(apart, return_inverse=True)
        return packed.astype(np.int64)

    def _censoring(self, group: Ints, own: Floats | None = None) -> Censoring:
        rows = self.rows
        return Censoring(is_complete=rows.is_complete, age=rows.age, watched=rows.watched, group=group, own=own)

    def _expectations(self, amounts: Floats, weight: Floats, n_folds: int, is_learned: Flags) -> Floats:
        """(folds, J, A + 1), each learned from the other folds; 0 for options of which nothing can be expected yet."""
        rows = self.rows
        served = rows.served & is_learned[rows.option]
        model = CellModel(
            cell=rows.cell[served],
            shape=rows.shape,
            values=amounts[served],
            weight=weight[served],
            fold=self._fold[served],
            n_folds=n_folds,
        )
        tables = np.stack([model.without(fold) for fold in range(n_folds)])
        tables[:, :, ~is_learned] = 0.0
        if rows.nothing_is_known:
            tables[:, :, rows.nothing] = 0.0
        return tables

    def status_quo(self) -> Added:
        """What was done."""
        rows = self.rows
        added = []
        for amounts, tables, own in (
            (rows.value, self._values, self._own),
            (rows.paid, self._costs, self._whole if rows.is_paid_at_once else self._own),
        ):
            of_done = tables[self._fold, rows.context, rows.option]
            added.append(of_done + own.spread(amounts - of_done))
        return Added(*added)

    def weights(self, tables: Floats) -> tuple[Floats, Floats]:
        """Of a policy (halves, J, A + 1): the weight of each row, and how much of the policy rests on them."""
        rows = self.rows
        weight = tables[self.half, rows.context, rows.option] / self._chances.probability
        if not rows.nothing_is_known:
            return weight, np.ones(len(rows))
        served = 1.0 - tables[self.half, rows.context, rows.nothing]
        return np.where(rows.served, weight, 0.0), served

    def _weighted(self, tables: Floats, amounts: Floats, expected: Floats) -> Weighted:
        rows = self.rows
        weight, served = self.weights(tables)
        return Weighted(
            weight=weight,
            served=served,
            amount=amounts,
            of_done=expected[self._fold, rows.context, rows.option],
            of_policy=np.einsum("hjk,fjk->hfj", tables, expected)[self.half, self._fold, rows.context],
        )

    def added(self, tables: Floats, estimators: Sequence[Estimator]) -> dict[Estimator, Added]:
        """By estimator, what each row adds to the value and to the cost of a policy (halves, J, A + 1)."""
        rows = self.rows
        # Probabilities are counted on all rows, whatever is done to either half.
        on_all = np.broadcast_to(tables.mean(axis=0), tables.shape)
        sides = []
        for amounts, expected, off in (
            (rows.value, self._values, self._off),
            (rows.paid, self._costs, self._whole if rows.is_paid_at_once else self._off),
        ):
            weighted = self._weighted(tables, amounts, expected)
            counted = self._weighted(on_all, amounts, expected) if self._chances.are_estimated else None
            sides.append([contributions(one, weighted, off, counted=counted) for one in estimators])
        return {one: Added(value, cost) for one, value, cost in zip(estimators, *sides, strict=True)}
