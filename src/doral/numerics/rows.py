"""Sums over the rows of a matrix, and what is done with them.

These kernels say what is computed. Programs keep the sums of many columns in registers meanwhile (`row_sums`), which
changes no bit: each sum is added up in the same order.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from doral.compiled.kernels import kernel

Numbers: TypeAlias = NDArray[np.float64]

VECTOR = 8  # numbers that are worked on at once: rows in whole vectors have no rest that runs one by one


@kernel
def add_up_rows(rows: Numbers, times: Numbers, total: Numbers) -> None:
    """total[a] = sum_i rows[i, a] * times[i], added up in the order of the rows."""
    for a in range(rows.shape[1]):
        total[a] = _sum_of(rows, times, a)


@kernel
def shift_by_rows(rows: Numbers, times: Numbers, gain: float, line: Numbers) -> None:
    """line[a] += total[a] * gain."""
    for a in range(rows.shape[1]):
        line[a] += _sum_of(rows, times, a) * gain


@kernel
def narrow_by_rows(rows: Numbers, times: Numbers, scale: float, squared: Numbers) -> None:
    """squared[a] -= total[a]^2 * scale, but not below 0."""
    for a in range(rows.shape[1]):
        total = _sum_of(rows, times, a)
        squared[a] = max(squared[a] - total * total * scale, 0.0)


@kernel
def move_by_rows(rows: Numbers, times: Numbers, gain: float, line: Numbers, scale: float, squared: Numbers) -> None:
    """Both, with sums that are added up once."""
    shift_by_rows(rows, times, gain, line)
    narrow_by_rows(rows, times, scale, squared)


@kernel
def take_off_products(rows: Numbers, times: Numbers, scale: float) -> None:
    """rows[i, a] -= times[a] * scale * times[i]."""
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            rows[i, a] -= times[a] * scale * times[i]


@kernel
def _sum_of(rows: Numbers, times: Numbers, a: int) -> float:
    total = 0.0
    for i in range(rows.shape[0]):
        total += rows[i, a] * times[i]
    return total
