"""Observed rewards, delays and costs: a draw picks one row, so that the three come together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from doral import _check
from doral._arrays import Flags, Floats, Ints
from doral._cached import ByDigest, cached_property
from doral.delays import Law, kernels
from doral.delays.law import LawCode, law_code
from doral.errors import InvalidValue, shown
from doral.numerics.elementary import weighted_sum
from doral.problem import MAX_REWARD, Problem

MAX_ROWS = 2**31 - 2  # of all cells together
_ONE = 1e-9  # weights of a cell whose sum differs from 1 by less are kept as they are, so that a copy is equal

Named: TypeAlias = Callable[[int, int], str]  # what a message calls the cell of a context and an arm


class Rows(ByDigest):
    """What was observed, cell by cell: those of the first context by arm, then those of the next.

    Immutable: compared, hashed and pickled by content.
    """

    reward: Floats
    delay: Floats  # infinite for never
    cost: Floats | None  # what was paid, where that was observed
    weight: Floats | None  # how likely each row is to be drawn, 1 for the rows of a cell together; None: all alike
    starts: Ints  # (J, A) the first row of each cell

    def __init__(
        self, *, reward: Floats, delay: Floats, cost: Floats | None, weight: Floats | None, starts: Ints
    ) -> None:
        """Of checked arrays; `from_arrays` checks them."""
        self.reward, self.delay, self.cost, self.weight, self.starts = reward, delay, cost, weight, starts
        for array in (reward, delay, cost, weight, starts):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def from_arrays(
        cls, *, reward: object, delay: object, cost: object = None, weight: object = None, starts: object
    ) -> Rows:
        """From one array for each, of all rows; `starts` (contexts, arms) are the first rows of the cells."""
        begins = _checked_starts(starts)
        n_rows = np.size(reward) if isinstance(reward, np.ndarray | Sequence) else 0
        given = {"reward": reward, "delay": delay, "cost": cost, "weight": weight}
        columns = {name: None if one is None else _column(name, one, n_rows) for name, one in given.items()}
        if begins.ravel()[0] != 0 or (np.diff([*begins.ravel().tolist(), n_rows]) < 1).any():
            remedy = f"must ascend from 0 to below the number of rows, {n_rows}: a cell has at least one row"
            raise InvalidValue("starts of rows", begins.tolist(), remedy)
        rows = cls(**{**columns, "weight": None}, starts=begins)  # type: ignore[arg-type]
        _check_values(rows, _numbered)
        return rows.weighted(columns["weight"], _numbered)

    def weighted(self, weight: Floats | None, named: Named | None = None) -> Rows:
        """The same rows, drawn with other weights (rows,); None: each as likely as the others of its cell."""
        if weight is not None:
            weight = _normalised(self, _column("weight", weight, self.reward.size), named or _numbered)
        return Rows(reward=self.reward, delay=self.delay, cost=self.cost, weight=weight, starts=self.starts)

    @property
    def stops(self) -> Ints:
        """(J, A) where each cell ends."""
        return np.append(self.starts.ravel()[1:], self.reward.size).reshape(self.starts.shape)

    @property
    def sizes(self) -> Ints:
        """(J, A) rows of each cell."""
        sizes: Ints = self.stops - self.starts
        return sizes

    @property
    def cumulative(self) -> Floats:
        """Within each cell, how likely this row or an earlier one is to be drawn; empty where all are alike."""
        if self.weight is None:
            return np.zeros(0)
        sums, begins = np.cumsum(self.weight), self.starts.ravel()
        sums -= np.repeat(sums[begins] - self.weight[begins], self.sizes.ravel())
        return sums

    def cell(self, context: int, arm: int) -> Floats:
        """(n, 2) rewards and delays, or (n, 3) with costs."""
        part = slice(self.starts[context, arm], self.stops[context, arm])
        columns = [self.reward, self.delay, *([] if self.cost is None else [self.cost])]
        return np.column_stack([column[part] for column in columns])

    def cell_of(self, row: int) -> tuple[int, int]:
        """The context and the arm of a row."""
        number = int(np.searchsorted(self.starts.ravel(), row, side="right")) - 1
        return number // self.starts.shape[1], number % self.starts.shape[1]

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256(repr(self.starts.shape).encode())
        for array in (self.starts, self.reward, self.delay, self.cost, self.weight):
            found.update(b"none" if array is None else np.ascontiguousarray(array).data)
        return found.hexdigest()

    def __repr__(self) -> str:
        words = "".join(f", {name}s" for name in ("cost", "weight") if getattr(self, name) is not None)
        return f"Rows({self.reward.size} in {self.starts.shape} cells{words}, digest={self.digest[:12]!r})"


def checked_rows(value: object, weights: object, problem: Problem) -> Rows:
    """From a mapping {context: {arm: rows}} and one of weights, or as they are stored."""

    def named(context: int, arm: int) -> str:
        return f"{shown(problem.context_names[context])}, {shown(problem.arm_names[arm])}"

    shape = (problem.n_contexts, problem.n_arms)
    if isinstance(value, Rows):
        rows = value
        if rows.starts.shape != shape:
            raise InvalidValue("shape of rows", rows.starts.shape, f"must be (contexts, arms), {shape}")
    else:
        rows = _from_cells(_cells("rows", value, problem), named, shape)
    if weights is not None:
        cells = _cells("row_weights", weights, problem)
        rows = rows.weighted(_flat_weights(cells, rows, named), named)
    _check_costs(rows, problem, named)
    return rows


def _cells(field: str, value: object, problem: Problem) -> list[list[Any]]:
    """By context and arm."""
    if isinstance(value, Mapping):
        given = _named(field, "context", value, problem.context_names)
        return [
            _named(f"{field} of context {shown(context)}", "arm", row, problem.arm_names)
            for context, row in zip(problem.context_names, given, strict=True)
        ]
    if not isinstance(value, tuple) or len(value) != problem.n_contexts:
        what = "rows of (reward, delay)" if field == "rows" else "weights"
        raise InvalidValue(field, value, f"must be a mapping {{context: {{arm: {what}}}}}")
    for context, row in zip(problem.context_names, value, strict=True):
        if not isinstance(row, Sequence) or len(row) != problem.n_arms:
            remedy = f"must be one table per arm, {problem.n_arms}"
            raise InvalidValue(f"number of {field} of context {shown(context)}", np.size(row), remedy)
    return [list(row) for row in value]


def _named(field: str, kind: str, value: object, names: tuple[str, ...]) -> list[Any]:
    """The entries of a mapping, in the order of the names."""
    if not isinstance(value, Mapping):
        raise InvalidValue(field, value, f"must be a mapping from {kind} to what was observed there")
    return _check.by_name(field, value, names, kind=kind)


def _from_cells(cells: list[list[Any]], named: Named, shape: tuple[int, int]) -> Rows:
    tables = [_table(f"rows of {named(j, a)}", one) for j, row in enumerate(cells) for a, one in enumerate(row)]
    n_columns = tables[0].shape[1]
    for number, table in enumerate(tables):
        if table.shape[1] != n_columns:
            remedy = "must be the same for all cells: either all rows have a cost, or none has"
            where = named(number // shape[1], number % shape[1])
            raise InvalidValue(f"columns of rows of {where}", table.shape[1], remedy)
    sizes = np.array([len(table) for table in tables], dtype=np.int64)
    columns = np.ascontiguousarray(np.concatenate(tables).T)
    rows = Rows(
        reward=columns[0],
        delay=columns[1],
        cost=columns[2] if n_columns == 3 else None,
        weight=None,
        starts=(np.cumsum(sizes) - sizes).reshape(shape),
    )
    _check_values(rows, named)
    return rows


def _table(field: str, value: object) -> Floats:
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        remedy = "must be numbers, a row (reward, delay) or (reward, delay, cost) for each observation"
        raise InvalidValue(field, value, remedy) from None
    if table.size == 0:
        raise InvalidValue(f"number of {field}", 0, "must be at least 1: a cell without observations has no law")
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        remedy = "must be (n, 2), a reward and a delay for each observation, or (n, 3) with what it cost"
        raise InvalidValue(f"shape of {field}", table.shape, remedy)
    return table


def _column(name: str, value: object, n_rows: int) -> Floats:
    """Return a read-only column as it is, else a copy."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and not value.flags.writeable:
        column: Floats = value
    else:
        try:
            column = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidValue(f"{name} of rows", value, "must be numbers, one for each row") from None
    if column.ndim != 1 or column.size != n_rows or not 1 <= n_rows <= MAX_ROWS:
        raise InvalidValue(f"shape of {name} of rows", column.shape, f"must be one for each row, {n_rows}, at least 1")
    return column


def _checked_starts(value: object) -> Ints:
    try:
        starts = np.array(value)
    except (TypeError, ValueError):
        starts = np.zeros(0)
    if starts.ndim != 2 or starts.size == 0 or starts.dtype.kind not in "iu":
        raise InvalidValue(
            "starts of rows", value, "must be whole numbers (contexts, arms), the first row of each cell"
        )
    return starts.astype(np.int64)


def _numbered(context: int, arm: int) -> str:
    return f"context {context}, arm {arm}"


def _check_values(rows: Rows, named: Named) -> None:
    # As what is right, which NaN never is.
    remedy = f"must be a number of at most {MAX_REWARD:g}, either way"
    _complain(rows, "reward in rows of ", rows.reward, np.abs(rows.reward) <= MAX_REWARD, named, remedy)
    remedy = "must be 0 or more rounds, or math.inf for never"
    _complain(rows, "delay in rows of ", rows.delay, rows.delay >= 0.0, named, remedy)


def _complain(rows: Rows, what: str, values: Floats, is_right: Flags, named: Named, remedy: str) -> None:
    """About the first value that is not right."""
    if not is_right.all():
        row = int(np.argmin(is_right))
        raise InvalidValue(what + named(*rows.cell_of(row)), float(values[row]), remedy)


def _check_costs(rows: Rows, problem: Problem, named: Named) -> None:
    """A cost is at most what is reserved for a use."""
    if rows.cost is None:
        return
    listed = list_prices(rows, problem)
    is_right = (rows.cost >= 0.0) & (rows.cost <= listed)
    if not is_right.all():
        price = listed[int(np.argmin(is_right))]
        remedy = f"must be from 0 to what the arm costs there, {price:g}: that is reserved for a use"
        _complain(rows, "cost in rows of ", rows.cost, is_right, named, remedy)


def list_prices(rows: Rows, problem: Problem) -> Floats:
    """Of every row."""
    return np.repeat(np.broadcast_to(problem.costs_by_context, rows.starts.shape).ravel(), rows.sizes.ravel())


def _flat_weights(cells: list[list[Any]], rows: Rows, named: Named) -> Floats:
    found = []
    for j, row in enumerate(cells):
        for a, one in enumerate(row):
            size, field = int(rows.sizes[j, a]), f"row_weights of {named(j, a)}"
            try:
                weights = np.array(one, dtype=np.float64)
            except (TypeError, ValueError):
                raise InvalidValue(field, one, "must be numbers, one for each row") from None
            if weights.shape != (size,):
                raise InvalidValue(f"shape of {field}", weights.shape, f"must be one weight for each row, ({size},)")
            found.append(weights)
    return np.concatenate(found)


def _normalised(rows: Rows, weight: Floats, named: Named) -> Floats | None:
    """1 for each cell; None where no row of any cell is likelier than another of it."""
    is_right = (weight > 0.0) & (weight < np.inf)
    _complain(rows, "row_weights of ", weight, is_right, named, "must be finite and above 0")
    begins, sizes = rows.starts.ravel(), rows.sizes.ravel()
    if (weight == np.repeat(weight[begins], sizes)).all():
        return None
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(weight, begins)
    if not np.isfinite(sums).all() or (weight / np.repeat(sums, sizes) <= 0.0).any():
        raise InvalidValue("weights of rows", float(weight.max()), "are too far apart to be weighed against each other")
    if (np.abs(sums - 1.0) <= _ONE).all():
        return weight
    normalised: Floats = weight / np.repeat(sums, sizes)
    return normalised


@dataclass(frozen=True)
class RowDelays(Law):
    """Return the delays of a cell's rows, of all rewards. The rows themselves hold the numbers."""

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
        return law_code(kernels.EMPIRICAL, values=values)

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
