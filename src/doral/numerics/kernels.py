"""Kernels of numbers: random bits (Philox4x64-10), normal quantiles, quick logarithms and exponentials.

Every draw is a pure function of (seed, run, round, purpose), so a draw can be made in any order, in any process, and
made again when a log is replayed. The generator is that of Salmon et al., "Parallel random numbers: as easy as 1, 2,
3" (SC 2011); NumPy's `Philox` is the same and serves as the oracle in our tests.

A caller of a quick function that only needs to know on which side of a whole number a result lies compares it with its
error bound first, and calls the C library where that does not decide.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from doral.compiled.kernels import kernel, whole_product

# Purposes: the second counter word, so that no two uses ever share a draw.
ARRIVAL = 0  # context, delay and reward noise of a round
AVAILABILITY = 1
PARAMETERS = 2  # theta and features of a run
COIN = 3  # the policy's own randomisation
POSTERIOR = 4  # Thompson sampling

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_DROPPED_BITS = np.uint64(11)  # 64 - 53: what a float64 in [0, 1) cannot hold
_UNIT = 2.0**-53


@kernel
def philox(
    seed: np.uint64, run: np.uint64, index: np.uint64, purpose: np.uint64, lane: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Four random 64-bit words for the counter (index, purpose, lane, 0) under the key (seed, run)."""
    c0, c1, c2, c3 = index, purpose, lane, np.uint64(0)
    k0, k1 = seed, run
    for _ in range(10):
        high_0, low_0 = whole_product(_MULTIPLIER_0, c0)
        high_1, low_1 = whole_product(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@kernel
def to_uniform(word: np.uint64) -> float:
    """A float64 in [0, 1) from the upper 53 bits."""
    return (word >> _DROPPED_BITS) * _UNIT


@kernel
def coin(seed: np.uint64, run: np.uint64, round_: int) -> float:
    """The policy's uniform draw for one round."""
    word, _, _, _ = philox(seed, run, np.uint64(round_), np.uint64(COIN), np.uint64(0))
    return to_uniform(word)


# Wichura (1988), "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37(3),
# routine PPND16, relative accuracy about 1e-16. Coefficients from the highest power down, as Horner's rule eats them.
_CENTRE_TOP = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_CENTRE_BOTTOM = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_SHOULDER_TOP = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_SHOULDER_BOTTOM = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_TAIL_TOP = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_TAIL_BOTTOM = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)
_CENTRE = 0.425  # so far from 1/2, one formula serves
_LEAST = 2.0**-54  # in the place of 0, which has no finite quantile


@kernel
def horner(coefficients: tuple[float, ...], x: float) -> float:
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@kernel
def _central(from_centre: float) -> float:
    x = 0.180625 - from_centre * from_centre
    return from_centre * horner(_CENTRE_TOP, x) / horner(_CENTRE_BOTTOM, x)


@kernel
def normal_quantile(u: float) -> float:
    """The standard normal's inverse distribution function; -inf at 0 and inf at 1."""
    if u <= 0.0:
        return -math.inf
    if u >= 1.0:
        return math.inf
    from_centre = u - 0.5
    if abs(from_centre) <= _CENTRE:
        return _central(from_centre)
    nearer_tail = u if from_centre < 0.0 else 1.0 - u
    depth = math.sqrt(-math.log(nearer_tail))
    if depth <= 5.0:
        distance = horner(_SHOULDER_TOP, depth - 1.6) / horner(_SHOULDER_BOTTOM, depth - 1.6)
    else:
        distance = horner(_TAIL_TOP, depth - 5.0) / horner(_TAIL_BOTTOM, depth - 5.0)
    return -distance if from_centre < 0.0 else distance


@kernel
def make_normal(uniforms: NDArray[np.float64]) -> None:
    """`normal_quantile` of each in its place, never infinite.

    The few in the tails come first; they are beyond 1.4 then. For all others one loop without branches does it.
    """
    for i in range(uniforms.size):
        if abs(uniforms[i] - 0.5) > _CENTRE:
            uniforms[i] = normal_quantile(max(uniforms[i], _LEAST))
    for i in range(uniforms.size):
        from_centre = uniforms[i] - 0.5
        central = _central(from_centre)
        uniforms[i] = central if abs(from_centre) <= _CENTRE else uniforms[i]


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
