"""The normal distribution's quantiles, in plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from doral.compiled.kernels import kernel

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
