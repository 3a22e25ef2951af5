"""What rows come to on average: rewards, those that return in time, what is paid, and delays as laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from doral import _delay_kinds
from doral._arrays import Flags, Floats
from doral._cached import cached_property
from doral.delays import Law
from doral.delays.law import LawCode, law_code
from doral.errors import InvalidValue
from doral.problem import Problem
from doral.simulation.scenario.rows import Rows, list_prices
from doral.simulation.sums import weighted_sum


@dataclass(frozen=True)
class RowDelays(Law):
    """The delays of a cell's rows, whatever their rewards. The rows themselves hold the numbers."""

    rows: Rows
    context: int
    arm: int

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats | None]:
        """The delays in ascending order, and how likely each or a shorter one is; None where all are alike."""
        part = slice(self.rows.starts[self.context, self.arm], self.rows.stops[self.context, self.arm])
        if self.rows.weight is None:
            return np.sort(self.rows.delay[part]), None
        order = np.argsort(self.rows.delay[part], kind="stable")
        sums = np.cumsum(self.rows.weight[part][order])
        return self.rows.delay[part][order], sums / sums[-1]

    @property
    def mean(self) -> float:
        values, sums = self._sorted
        if values[-1] == math.inf:
            return math.inf
        return math.fsum(values) / values.size if sums is None else weighted_sum(values, np.diff(sums, prepend=0.0))

    def _returned_by(self, ages: Floats) -> Floats:
        values, sums = self._sorted
        # At an age of inf too, only the finite ones have come.
        n_returned = np.searchsorted(values[np.isfinite(values)], ages, side="right")
        if sums is None:
            return np.asarray(n_returned / values.size, dtype=np.float64)
        return np.asarray(np.concatenate([[0.0], sums])[n_returned])

    def sample(self, uniforms: ArrayLike) -> Floats:
        values, sums = self._sorted
        if sums is None:
            return super().sample(uniforms)
        draws = np.array(uniforms, dtype=np.float64)
        if not np.all((draws >= 0) & (draws < 1)):
            raise InvalidValue("uniforms", uniforms, "must all be numbers from 0 to below 1")
        return np.asarray(values[np.minimum(np.searchsorted(sums, draws, side="right"), values.size - 1)])

    def encode(self) -> LawCode:
        values, sums = self._sorted
        if sums is not None:
            raise InvalidValue("delays", self, "of rows with weights have no code of their own: rows are drawn whole")
        return law_code(_delay_kinds.EMPIRICAL, values=values)

    def to_dict(self) -> dict[str, Any]:
        values, sums = self._sorted
        weights = {} if sums is None else {"weights": np.diff(sums, prepend=0.0).tolist()}
        return {"type": "Empirical", "values": [None if one == math.inf else one for one in values.tolist()], **weights}


def delay_laws(rows: Rows) -> tuple[tuple[RowDelays, ...], ...]:
    """By context and arm."""
    n_contexts, n_arms = rows.starts.shape
    return tuple(tuple(RowDelays(rows, context, arm) for arm in range(n_arms)) for context in range(n_contexts))


def mean_rewards(rows: Rows) -> tuple[tuple[float, ...], ...]:
    """(J, A), whether or not they return."""
    return tuple(map(tuple, (_sums(rows, rows.reward) / _totals(rows)).tolist()))


def returned_rewards(rows: Rows, deadlines: Floats) -> Floats:
    """(J, A) expected rewards of those that return within the deadline, after whole rounds, at least one."""
    return _sums(rows, np.where(_is_in_time(rows, deadlines), rows.reward, 0.0)) / _totals(rows)


def cost_shares(rows: Rows, problem: Problem) -> Floats:
    """Of the list price, row by row; of a free arm, none."""
    cost = np.zeros(0) if rows.cost is None else rows.cost
    return np.divide(cost, list_prices(rows, problem), out=np.zeros_like(cost), where=cost > 0.0)


def paid_shares(rows: Rows, problem: Problem, paid: object) -> Floats:
    """(J, A) the share of its list price that a decision costs on average: that of answers that are heard in time."""
    chances = np.ones(rows.starts.shape) if isinstance(paid, str) else np.array(paid)
    is_heard = _is_in_time(rows, problem.deadlines)
    if problem.feedback == "silent":
        is_heard &= rows.reward != 0.0
    if paid == "by_row" and rows.cost is not None:
        listed = np.broadcast_to(problem.costs_by_context, rows.starts.shape)
        sums = _sums(rows, np.where(is_heard, rows.cost, 0.0))
        shares = np.divide(sums, listed, out=np.zeros_like(sums), where=listed > 0.0)
    else:
        is_paid = is_heard & (rows.reward > 0.0) if paid == "on_success" else is_heard
        shares = _sums(rows, is_paid.astype(np.float64))
    found: Floats = chances * shares / _totals(rows)
    return found


def _is_in_time(rows: Rows, deadlines: Floats) -> Flags:
    """Whether a row is answered within the deadline of its context, after whole rounds, at least one."""
    limits = np.repeat(deadlines, rows.sizes.sum(axis=1))
    return np.isfinite(rows.delay) & (np.maximum(1.0, np.ceil(rows.delay)) <= limits)


def _sums(rows: Rows, values: Floats) -> Floats:
    """(J, A) of the rows of each cell, by their weights where they have some; without, exactly rounded."""
    if rows.weight is not None:
        return np.add.reduceat(values * rows.weight, rows.starts.ravel()).reshape(rows.starts.shape)
    bounds = [*rows.starts.ravel().tolist(), values.size]
    sums = [math.fsum(values[start:stop].tolist()) for start, stop in pairwise(bounds)]
    return np.array(sums).reshape(rows.starts.shape)


def _totals(rows: Rows) -> Floats:
    """(J, A) what the weights of each cell sum to."""
    return rows.sizes.astype(np.float64) if rows.weight is None else np.ones(rows.starts.shape)
