"""Approximate logarithms and exponentials without a call, so that loops vectorise; and rounding up.

A caller that only needs to know on which side of a whole number a result lies compares the approximation with its
error bound first, and calls the C library where that does not decide.
"""

from __future__ import annotations

import math

import numpy as np

from doral.compiled.kernels import kernel
from doral.numerics.normal import horner

QUICK_ERROR = 2.0**-27  # relative, of `quick_exp(p * quick_log(x))` too
QUICK_UPTO = 30.0

_LN_2 = math.log(2.0)
_PER_LN_2 = 1.0 / _LN_2
_EXPONENT_AT = np.uint64(52)  # in the bits of a float64
_ONE = np.float64(1.0).view(np.uint64)
_ABOVE_ROOT = _ONE - np.float64(math.sqrt(0.5)).view(np.uint64)
_WHOLE = np.float64(2.0**52).view(np.uint64)  # a whole number in its last bits is added to it
_EITHER_WAY = 1.5 * 2.0**52
_ATANH = tuple(1.0 / n for n in range(13, 0, -2))
_EXP = tuple(1.0 / math.factorial(n) for n in range(8))


@kernel
def quick_log(x: float) -> float:
    """Of a positive, normal number: x = 2^e m with m from sqrt(1/2) to sqrt(2), and log(m) = 2 atanh((m-1) / (m+1))."""
    bits = np.float64(x).view(np.uint64)
    exponent = (bits + _ABOVE_ROOT) >> _EXPONENT_AT  # and 1023
    m = np.uint64(bits - (exponent << _EXPONENT_AT) + _ONE).view(np.float64)
    e = np.uint64(exponent | _WHOLE).view(np.float64) - (2.0**52 + 1023.0)
    s = (m - 1.0) / (m + 1.0)
    return e * _LN_2 + 2.0 * s * horner(_ATANH, s * s)


@kernel
def quick_exp(x: float) -> float:
    """Of a number up to `QUICK_UPTO`, either way."""
    nearest = x * _PER_LN_2 + _EITHER_WAY  # rounded to a whole number, which is in its last bits
    scale = np.uint64((np.float64(nearest).view(np.uint64) << _EXPONENT_AT) + _ONE).view(np.float64)
    r = x - (nearest - _EITHER_WAY) * _LN_2
    square, c = r * r, _EXP
    low = (c[0] + c[1] * r) + (c[2] + c[3] * r) * square  # in pairs: they need not wait for each other
    high = (c[4] + c[5] * r) + (c[6] + c[7] * r) * square
    return (low + high * (square * square)) * scale


@kernel
def rounded_up(x: float) -> float:
    """Return the next whole number, as a float: `math.ceil` gives an integer, which a very large one overflows."""
    return np.ceil(x) + 0.0  # a zero has no minus
