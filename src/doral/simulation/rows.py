"""Rewards and delays as they were observed, row by row: a draw picks a row, so that the two come together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from doral._arrays import Floats
from doral.delays import MAX_EMPIRICAL_VALUES, Empirical
from doral.errors import InvalidValue, shown
from doral.problem import MAX_REWARD, Problem

Cell: TypeAlias = tuple[tuple[float, float], ...]
Rows: TypeAlias = tuple[tuple[Cell, ...], ...]  # by context and arm: (reward, delay), an infinite delay for never


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
    return tuple(found)


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
        raise InvalidValue(field, value, "must be numbers, a row (reward, delay) for each observation") from None
    if table.size == 0:
        raise InvalidValue(f"number of {field}", 0, "must be at least 1: a cell without observations has no law")
    if table.ndim == 2 and table.shape[1] == 3:
        remedy = "has a cost by row; a use of an arm costs what the arm costs: leave the third column out"
        raise InvalidValue(f"shape of {field}", table.shape, remedy)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InvalidValue(
            f"shape of {field}", table.shape, "must be (n, 2): a reward and a delay for each observation"
        )
    if table.shape[0] > MAX_EMPIRICAL_VALUES:
        raise InvalidValue(f"number of {field}", table.shape[0], f"must be at most {MAX_EMPIRICAL_VALUES:,}")
    rewards, delays = table[:, 0], table[:, 1]
    if not (np.abs(rewards) <= MAX_REWARD).all():  # which NaN is not
        wrong = float(rewards[~(np.abs(rewards) <= MAX_REWARD)][0])
        raise InvalidValue(f"reward in {field}", wrong, f"must be a number of at most {MAX_REWARD:g}, either way")
    if not (delays >= 0.0).all():
        wrong = float(delays[~(delays >= 0.0)][0])
        raise InvalidValue(f"delay in {field}", wrong, "must be 0 or more rounds, or math.inf for never")
    return tuple((reward, delay) for reward, delay in table.tolist())


def delay_laws(rows: Rows) -> tuple[tuple[Empirical, ...], ...]:
    """What the delays are, whatever the reward."""
    return tuple(tuple(Empirical([delay for _, delay in cell]) for cell in row) for row in rows)


def mean_rewards(rows: Rows) -> tuple[tuple[float, ...], ...]:
    """(J, A), whether or not they return."""
    return tuple(tuple(math.fsum(reward for reward, _ in cell) / len(cell) for cell in row) for row in rows)


def returned_rewards(rows: Rows, deadlines: Floats) -> Floats:
    """(J, A) expected rewards of those that return within the deadline, after whole rounds, at least one."""

    def worth(cell: Cell, deadline: float) -> float:
        in_time = (r for r, d in cell if d < math.inf and max(1.0, math.ceil(d)) <= deadline)
        return math.fsum(in_time) / len(cell)

    return np.array(
        [[worth(cell, deadline) for cell in row] for row, deadline in zip(rows, deadlines.tolist(), strict=True)]
    )
