"""Sums over the rows of a matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doral._kernel.kernels import kernel


@kernel
def add_up_rows(rows: NDArray[np.float64], times: NDArray[np.float64], total: NDArray[np.float64]) -> None:
    """total[a] = sum_i rows[i, a] * times[i], added up in the order of the rows.

    This says what is computed. Programs keep the sums of many columns in registers meanwhile (`row_sums`), which
    changes no bit: each sum is added up in the same order.
    """
    for a in range(rows.shape[1]):
        total[a] = 0.0
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            total[a] += rows[i, a] * times[i]
