"""Products of matrices whose sums have one order. BLAS adds as it suits the processor and the number of threads, and so
gives another last bit elsewhere."""

from __future__ import annotations

from doral._arrays import Floats


def product(x: Floats, y: Floats) -> Floats:
    """`x @ y`, of a matrix and a matrix or a vector.

    >>> import numpy as np
    >>> product(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [2.0, 3.0]])).tolist()
    [[5.0, 6.0]]
    """
    columns = y if y.ndim == 2 else y[:, None]
    total: Floats = x[:, :1] * columns[0]
    for k in range(1, x.shape[1]):
        total += x[:, k : k + 1] * columns[k]
    return total if y.ndim == 2 else total[:, 0]


def weighted_sum(weights: Floats, values: Floats) -> float:
    """`weights @ values`, of two vectors."""
    return float((weights * values).sum())
