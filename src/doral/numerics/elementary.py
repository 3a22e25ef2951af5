"""Exponentials, logarithms and powers with the same last bit on every processor of a kind.

NumPy has ways of its own for processors with wide vectors, which round the last bit otherwise. In the end a decision
may hang on it, so decisions and draws use the C library's, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from doral._arrays import Floats


def _each(function: Callable[[float], float], x: Floats) -> Floats:
    values = np.asarray(x, dtype=np.float64)
    try:
        found = np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size)
    except OverflowError:
        found = np.fromiter((_or_infinite(function, one) for one in values.ravel().tolist()), np.float64, values.size)
    return found.reshape(values.shape)


def _or_infinite(function: Callable[[float], float], one: float) -> float:
    try:
        return function(one)
    except OverflowError:
        return math.inf


def exp(x: Floats) -> Floats:
    """
    >>> exp(np.array([0.0, -math.inf, 1e9])).tolist()
    [1.0, 0.0, inf]
    """
    return _each(math.exp, x)


def expm1(x: Floats) -> Floats:
    """exp(x) - 1.

    >>> expm1(np.array([0.0, -math.inf])).tolist()
    [0.0, -1.0]
    """
    return _each(math.expm1, x)


def log(x: Floats) -> Floats:
    """Of 0 it is minus infinity.

    >>> log(np.array([1.0, 0.0, math.inf])).tolist()
    [0.0, -inf, inf]
    """
    return _each(lambda one: math.log(one) if one > 0.0 else -math.inf, x)


def log1p(x: Floats) -> Floats:
    """log(1 + x); of -1 it is minus infinity.

    >>> log1p(np.array([0.0, -1.0])).tolist()
    [0.0, -inf]
    """
    return _each(lambda one: math.log1p(one) if one > -1.0 else -math.inf, x)


def power(base: float, exponents: Floats) -> Floats:
    """
    >>> power(10.0, np.array([0.0, 2.0])).tolist()
    [1.0, 100.0]
    """
    return _each(lambda one: math.pow(base, one), exponents)


def raised(bases: Floats, exponent: float) -> Floats:
    """Each of them to one power.

    >>> raised(np.array([4.0, 9.0, math.inf]), 0.5).tolist()
    [2.0, 3.0, inf]
    """
    return _each(lambda one: math.pow(one, exponent), bases)


def geometric_steps(first: float, last: float, n: int) -> Floats:
    """So many numbers from one to another, each larger by the same factor.

    >>> geometric_steps(1.0, 1000.0, 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    steps = power(10.0, np.linspace(math.log10(first), math.log10(last), n))
    steps[0], steps[-1] = first, last
    return steps


# Sums of products in one order: BLAS adds as it suits the processor and the number of threads.


def product(x: Floats, y: Floats) -> Floats:
    """`x @ y`, of a matrix and a matrix or a vector.

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
