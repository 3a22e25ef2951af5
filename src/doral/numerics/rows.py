"""Sums over the rows of a matrix, and what is done with them.

Columns are worked on eight at a time, whose sums stay in registers: written out, so that the compiler makes vectors of
them. Each sum is added up in the order of the rows, with any number of columns.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from doral.compiled.kernels import kernel, position

Numbers: TypeAlias = NDArray[np.float64]
Eight: TypeAlias = tuple[float, float, float, float, float, float, float, float]

VECTOR = 8  # columns that are worked on at once: rows in whole vectors have no rest that runs one by one


@kernel
def add_up_rows(rows: Numbers, times: Numbers, total: Numbers) -> None:
    """Set total[a] = sum_i rows[i, a] * times[i], added up in the order of the rows."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _set(total, first, _eight_sums(rows, times, first))
    for a in range(n // VECTOR * VECTOR, n):
        total[a] = _sum(rows, times, a)


@kernel
def shift_by_rows(rows: Numbers, times: Numbers, gain: float, line: Numbers) -> None:
    """Add total[a] * gain to line[a]."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _shift(line, first, _eight_sums(rows, times, first), gain)
    for a in range(n // VECTOR * VECTOR, n):
        line[a] += _sum(rows, times, a) * gain


@kernel
def narrow_by_rows(rows: Numbers, times: Numbers, scale: float, squared: Numbers) -> None:
    """Subtract total[a]^2 * scale from squared[a], but not below 0."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _narrow(squared, first, _eight_sums(rows, times, first), scale)
    for a in range(n // VECTOR * VECTOR, n):
        squared[a] = _narrowed(squared[a], _sum(rows, times, a), scale)


@kernel
def move_by_rows(rows: Numbers, times: Numbers, gain: float, line: Numbers, scale: float, squared: Numbers) -> None:
    """Do both, with sums that are added up once."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        sums = _eight_sums(rows, times, first)
        _shift(line, first, sums, gain)
        _narrow(squared, first, sums, scale)
    for a in range(n // VECTOR * VECTOR, n):
        total = _sum(rows, times, a)
        line[a] += total * gain
        squared[a] = _narrowed(squared[a], total, scale)


@kernel
def take_off_products(rows: Numbers, times: Numbers, scale: float) -> None:
    """Subtract times[a] * scale * times[i] from rows[i, a]."""
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            rows[i, a] -= times[a] * scale * times[i]


@kernel
def _sum(rows: Numbers, times: Numbers, a: int) -> float:
    total = 0.0
    for i in range(rows.shape[0]):
        total += rows[i, position(a)] * times[i]
    return total


@kernel
def _narrowed(squared: float, total: float, scale: float) -> float:
    return max(squared - total * total * scale, 0.0)


@kernel
def _eight_sums(rows: Numbers, times: Numbers, first: int) -> Eight:
    at = position(first)
    a = b = c = d = e = f = g = h = 0.0
    for i in range(rows.shape[0]):
        by = times[i]
        a += rows[i, at] * by
        b += rows[i, at + 1] * by
        c += rows[i, at + 2] * by
        d += rows[i, at + 3] * by
        e += rows[i, at + 4] * by
        f += rows[i, at + 5] * by
        g += rows[i, at + 6] * by
        h += rows[i, at + 7] * by
    return a, b, c, d, e, f, g, h


@kernel
def _set(numbers: Numbers, first: int, sums: Eight) -> None:
    at = position(first)
    numbers[at] = sums[0]
    numbers[at + 1] = sums[1]
    numbers[at + 2] = sums[2]
    numbers[at + 3] = sums[3]
    numbers[at + 4] = sums[4]
    numbers[at + 5] = sums[5]
    numbers[at + 6] = sums[6]
    numbers[at + 7] = sums[7]


@kernel
def _shift(line: Numbers, first: int, sums: Eight, gain: float) -> None:
    at = position(first)
    line[at] += sums[0] * gain
    line[at + 1] += sums[1] * gain
    line[at + 2] += sums[2] * gain
    line[at + 3] += sums[3] * gain
    line[at + 4] += sums[4] * gain
    line[at + 5] += sums[5] * gain
    line[at + 6] += sums[6] * gain
    line[at + 7] += sums[7] * gain


@kernel
def _narrow(squared: Numbers, first: int, sums: Eight, scale: float) -> None:
    at = position(first)
    squared[at] = _narrowed(squared[at], sums[0], scale)
    squared[at + 1] = _narrowed(squared[at + 1], sums[1], scale)
    squared[at + 2] = _narrowed(squared[at + 2], sums[2], scale)
    squared[at + 3] = _narrowed(squared[at + 3], sums[3], scale)
    squared[at + 4] = _narrowed(squared[at + 4], sums[4], scale)
    squared[at + 5] = _narrowed(squared[at + 5], sums[5], scale)
    squared[at + 6] = _narrowed(squared[at + 6], sums[6], scale)
    squared[at + 7] = _narrowed(squared[at + 7], sums[7], scale)
