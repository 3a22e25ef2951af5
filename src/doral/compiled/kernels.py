"""Kernels: functions that will be compiled, light until then."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

INLINED, SHARED, RARE = "inlined", "shared", "rare"


class Kernel:
    """A function that other kernels may call, and Python too: there it runs as Python."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        functools.update_wrapper(self, function)
        self.function, self.kind = function, kind
        self.python = function  # or the same with the arithmetic of machine code: `make_total`

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__qualname__}>"

    def __call__(self, *arguments: Any) -> Any:
        return self.python(*arguments)


def kernel(function: Function) -> Function:
    """A hot function: inlined as far as that pays."""
    return cast(Function, Kernel(function, INLINED))


def shared(function: Function) -> Function:
    """A function that several entries call: compiled once, not inlined."""
    return cast(Function, Kernel(function, SHARED))


def rare(function: Function) -> Function:
    """A function that is called seldom: not inlined, and kept small."""
    return cast(Function, Kernel(function, RARE))


_SIGN_OFF = 2**63 - 1


@kernel
def position(index: int) -> int:
    """The index itself, known to the compiler not to be negative: it then spares the test for indices from the end."""
    return int(index) & _SIGN_OFF


_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF_BITS = np.uint64(32)


@kernel
def whole_product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and the lower 64 bits of a * b. Programs multiply once; this is the same from four products."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF_BITS
    b_low, b_high = b & _LOW_HALF, b >> _HALF_BITS
    low_low, high_low = a_low * b_low, a_high * b_low
    low_high, high_high = a_low * b_high, a_high * b_high
    middle = (low_low >> _HALF_BITS) + (high_low & _LOW_HALF) + low_high
    return high_high + (high_low >> _HALF_BITS) + (middle >> _HALF_BITS), a * b
