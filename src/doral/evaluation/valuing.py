"""Policies valued on the rows of a log: weights, expectations out of fold, and what each row adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.evaluation.censoring import Censoring, finest_groups
from doral.evaluation.estimate import Estimator, Weighted, contributions
from doral.evaluation.outcomes import CellModel
from doral.evaluation.propensity import Chances
from doral.evaluation.rows import Rows

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
