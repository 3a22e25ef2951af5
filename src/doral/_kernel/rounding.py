"""Whole numbers that stay floats."""

from __future__ import annotations

import math

from doral._kernel.kernels import kernel

_WHOLE_FROM = 2.0**53  # floats from here on have no fraction, and soon no integer to hold them


@kernel
def rounded_up(x: float) -> float:
    """The next whole number, as a float: `math.ceil` is an integer, which a very large one overflows.

    Programs ask the machine for it, without an integer on the way.
    """
    return float(math.ceil(x)) if abs(x) < _WHOLE_FROM else x
