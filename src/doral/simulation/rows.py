"""Rewards, delays and costs as they were observed, row by row: a draw picks a row, so that they come together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from doral._arrays import Floats
from doral.delays import MAX_EMPIRICAL_VALUES, Empirical
from doral.errors import InvalidValue, shown
from doral.problem import MAX_REWARD, Problem

# (reward, delay) or (reward, delay, cost); an infinite delay for never
Cell: TypeAlias = tuple[tuple[float, ...], ...]
Rows: TypeAlias = tuple[tuple[Cell, ...], ...]  # by context and arm


def checked_rows(value: object, problem: Problem) -> Rows:
    """Rows by context and arm, from a mapping of mappings of arrays, or as they are stored."""
    if isinstance(value, Mapping):
        given = _named("rows", "context", value, problem.context_names)
        cells = [
            _named(f"rows of context {shown(context)}", "arm", row, problem.arm_names)
            for context, row in zip(problem.context_names, given, strict=True)
        ]
    elif isinstance(value, tuple) and len(value) == problem.n_contexts:
        cells = [list(row) for row in value]
    else:
        raise InvalidValue("rows", value, "must be a mapping {context: {arm: rows of (reward, delay)}}")
    names = problem.arm_names
    found = []
    for context, row in zip(problem.context_names, cells, strict=True):
        if len(row) != problem.n_arms:
            remedy = f"must be one table per arm, {problem.n_arms}"
            raise InvalidValue(f"number of rows of context {shown(context)}", len(row), remedy)
        found.append(
            tuple(_cell(f"rows of {shown(context)}, {shown(arm)}", one) for arm, one in zip(names, row, strict=True))
        )
    rows = tuple(found)
    _check_costs(rows, problem)
    return rows


def have_costs(rows: Rows) -> bool:
    return len(rows[0][0][0]) == 3


def _check_costs(rows: Rows, problem: Problem) -> None:
    """All rows have a cost or none has; and it is at most what is reserved for a use."""
    for context, row in zip(problem.contexts, rows, strict=True):
        for arm, cell in zip(problem.arms, row, strict=True):
            field = f"rows of {shown(context.name)}, {shown(arm.name)}"
            if len(cell[0]) != len(rows[0][0][0]):
                remedy = "must be the same for all cells: either all rows have a cost, or none has"
                raise InvalidValue(f"columns of {field}", len(cell[0]), remedy)
            listed = arm.cost_in(context.name)
            for one in cell:
                if len(one) == 3 and not 0.0 <= one[2] <= listed:
                    remedy = f"must be from 0 to what the arm costs there, {listed:g}: that is reserved for a use"
                    raise InvalidValue(f"cost in {field}", one[2], remedy)


def _named(field: str, kind: str, value: object, names: tuple[str, ...]) -> list[Any]:
    """The entries of a mapping, in the order of the names."""
    if not isinstance(value, Mapping):
        raise InvalidValue(field, value, f"must be a mapping from {kind} to what was observed there")
    for name in value:
        if name not in names:
            raise InvalidValue(field, sorted(map(str, value)), f"names {kind} {shown(name)}, which the problem has not")
    for name in names:
        if name not in value:
            raise InvalidValue(field, sorted(map(str, value)), f"lacks {kind} {shown(name)}")
    return [value[name] for name in names]


def _cell(field: str, value: object) -> Cell:
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
    if table.shape[0] > MAX_EMPIRICAL_VALUES:
        raise InvalidValue(f"number of {field}", table.shape[0], f"must be at most {MAX_EMPIRICAL_VALUES:,}")
    rewards, delays = table[:, 0], table[:, 1]
    if not (np.abs(rewards) <= MAX_REWARD).all():  # which NaN is not
        wrong = float(rewards[~(np.abs(rewards) <= MAX_REWARD)][0])
        raise InvalidValue(f"reward in {field}", wrong, f"must be a number of at most {MAX_REWARD:g}, either way")
    if not (delays >= 0.0).all():
        wrong = float(delays[~(delays >= 0.0)][0])
        raise InvalidValue(f"delay in {field}", wrong, "must be 0 or more rounds, or math.inf for never")
    return tuple(map(tuple, table.tolist()))


def delay_laws(rows: Rows) -> tuple[tuple[Empirical, ...], ...]:
    """What the delays are, whatever the reward."""
    return tuple(tuple(Empirical([one[1] for one in cell]) for cell in row) for row in rows)


def mean_rewards(rows: Rows) -> tuple[tuple[float, ...], ...]:
    """(J, A), whether or not they return."""
    return tuple(tuple(math.fsum(one[0] for one in cell) / len(cell) for cell in row) for row in rows)


def returned_rewards(rows: Rows, deadlines: Floats) -> Floats:
    """(J, A) expected rewards of those that return within the deadline, after whole rounds, at least one."""

    def worth(cell: Cell, deadline: float) -> float:
        return math.fsum(one[0] for one in cell if _is_in_time(one, deadline)) / len(cell)

    return np.array(
        [[worth(cell, deadline) for cell in row] for row, deadline in zip(rows, deadlines.tolist(), strict=True)]
    )


def _is_in_time(one: tuple[float, ...], deadline: float) -> bool:
    return one[1] < math.inf and max(1.0, math.ceil(one[1])) <= deadline


def cost_shares(rows: Rows, problem: Problem) -> Floats:
    """Of the list price, row by row; of a free arm, none."""
    return np.array(
        [
            one[2] / arm.cost_in(context.name) if one[2] > 0.0 else 0.0
            for context, row in zip(problem.contexts, rows, strict=True)
            for arm, cell in zip(problem.arms, row, strict=True)
            for one in cell
        ]
    )


def paid_shares(rows: Rows, problem: Problem, paid: object) -> Floats:
    """(J, A) the share of its list price that a decision costs on average: that of answers that are heard in time."""
    is_silent = problem.feedback == "silent"
    chances = np.ones((problem.n_contexts, problem.n_arms)) if isinstance(paid, str) else np.array(paid)
    found = np.zeros_like(chances)
    for j, (context, deadline) in enumerate(zip(problem.contexts, problem.deadlines.tolist(), strict=True)):
        for a, arm in enumerate(problem.arms):
            cell, listed = rows[j][a], arm.cost_in(context.name)
            heard = [one for one in cell if _is_in_time(one, deadline) and not (is_silent and one[0] == 0.0)]
            if paid == "by_row":
                total = math.fsum(one[2] for one in heard) / listed if listed > 0.0 else 0.0
            else:
                total = float(sum(one[0] > 0.0 for one in heard) if paid == "on_success" else len(heard))
            found[j, a] = chances[j, a] * total / len(cell)
    return found
