"""Policies that learn what they do from a log: the best of each context, and the best that a budget buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.evaluation.censoring import Censoring, finest_groups
from doral.evaluation.outcomes import CellModel
from doral.evaluation.rows import Rows, rows_of
from doral.log.log import Log
from doral.pacing import solve

TRIED = 5  # rows of one half: the other lacks what has so many in less than one of a hundred cases


class Learned(NamedTuple):
    """(J, A + 1) what options bring and cost; -inf where the log has too few to say."""

    values: Floats
    costs: Floats
    shares: Floats


def learn_cells(rows: Rows) -> Learned:
    """From all rows, each cell with a G of its own where it was watched enough: policies change, outcomes do not."""
    censoring = Censoring(
        is_complete=rows.is_complete,
        age=rows.age,
        watched=rows.watched,
        group=finest_groups([rows.option, rows.cell], rows.watched >= rows.deadline),
    )
    counts = rows.counts()
    values = _means(rows, rows.value, censoring.weight)
    costs = _means(rows, rows.paid, np.ones(len(rows)) if rows.is_paid_at_once else censoring.weight)
    values = np.where(counts >= TRIED, values, -np.inf)  # nobody takes what was hardly ever tried
    if rows.nothing_is_known:
        values[:, rows.nothing] = costs[:, rows.nothing] = 0.0
    return Learned(values, np.maximum(costs, 0.0), counts.sum(axis=1) / len(rows))


def _means(rows: Rows, amounts: Floats, weight: Floats) -> Floats:
    served = rows.served
    return CellModel(
        cell=rows.cell[served],
        shape=rows.shape,
        values=amounts[served],
        weight=weight[served],
        fold=np.zeros(int(served.sum()), dtype=np.int64),
        n_folds=1,
    ).of_all()


def _table(shape: tuple[int, int], option: Ints) -> Floats:
    table = np.zeros(shape)
    table[np.arange(shape[0]), option] = 1.0
    return table


@dataclass(frozen=True, kw_only=True)
class Best:
    """In every context what brings most, whatever it costs."""

    deadline: float
    name: str = "best"

    def allocation(self, log: Log) -> Floats:
        learned = learn_cells(rows_of(log, deadline=self.deadline))
        nothing = np.where(np.isfinite(learned.values[:, -1]), learned.values[:, -1], 0.0)
        arm = np.argmax(learned.values[:, :-1], axis=1)
        is_better = learned.values[np.arange(arm.size), arm] > nothing  # what brings no more is not done
        return _table(learned.values.shape, np.where(is_better, arm, learned.values.shape[1] - 1))


@dataclass(frozen=True, kw_only=True)
class Lp:
    """What brings most for a budget per arrival (LP_m)."""

    deadline: float
    budget: float  # per arrival
    name: str = "lp"

    def allocation(self, log: Log) -> Floats:
        learned = learn_cells(rows_of(log, deadline=self.deadline))
        without = np.where(np.isfinite(learned.values[:, -1]), learned.values[:, -1], 0.0)
        gains = learned.values[:, :-1] - without[:, None]
        costs = np.maximum(learned.costs[:, :-1] - learned.costs[:, -1:], 0.0)
        rate = max(self.budget - float((learned.shares * learned.costs[:, -1]).sum()), 0.0)
        play = solve(values=gains, costs=costs, shares=learned.shares, rate=rate).play
        rest = np.maximum(1.0 - play.sum(axis=1, keepdims=True), 0.0)
        table: Floats = np.hstack([play, rest])
        return table / table.sum(axis=1, keepdims=True)
