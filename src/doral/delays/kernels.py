"""Delays from uniform draws: the one implementation behind `doral.delays` and the simulator.

Plain arithmetic on scalars and given arrays: nothing is allocated and nothing raised, so the same source can run
wherever a compiler for it exists.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.compiled import Entry, Program, kernel, shared
from doral.numerics.kernels import QUICK_ERROR, QUICK_UPTO, normal_quantile, quick_exp, rounded_up

GEOMETRIC: Final = 0
PARETO: Final = 1
LOGNORMAL: Final = 2
WEIBULL: Final = 3
EXPONENTIAL: Final = 4
FIXED: Final = 5
EMPIRICAL: Final = 6

QUICK: Final = (GEOMETRIC, PARETO, EXPONENTIAL)  # there is a quick estimate of what they draw


@kernel
def delay_quantile(
    kind: int, a: float, b: float, never: float, values: Floats, start: int, stop: int, u: float
) -> float:
    """The delay at probability `u` in [0, 1); `math.inf` when no answer ever comes.

    `a` and `b` are the parameters of the law as its `encode` wrote them. The table of an empirical law is
    `values[start:stop]`, ascending: one array holds the tables of many laws.
    """
    if u >= 1.0 - never:
        return math.inf
    u /= 1.0 - never  # below 1 also after rounding
    # log1p keeps the small delays of small u; 1 - u would round them to steps of 1e-16.
    if kind == GEOMETRIC:
        return max(1.0, rounded_up(math.log1p(-u) / b))  # u = 0 is not to give 0
    if kind == PARETO:
        return a * math.exp(-math.log1p(-u) / b)
    if kind == LOGNORMAL:
        return a * math.exp(b * normal_quantile(u))
    if kind == WEIBULL:
        return a * math.pow(-math.log1p(-u), 1.0 / b)
    if kind == EXPONENTIAL:
        return -a * math.log1p(-u)
    if kind == FIXED:
        return a
    if kind == EMPIRICAL:
        # u * n can round up to n when u is the float just below 1
        return float(values[start + min(int(u * (stop - start)), stop - start - 1)])
    return math.nan  # no such kind: never silently a delay


@kernel
def whole_delay(
    kind: int, a: float, b: float, never: float, values: Floats, start: int, stop: int, u: float, unit: float
) -> float:
    """`delay_quantile` in whole rounds, at least 1. `unit` is the `unit_delay`: mostly that tells what it is."""
    about = unit if kind == GEOMETRIC else a * unit
    most = rounded_up(about * (1.0 + 2.0 * QUICK_ERROR))
    if never == 0.0 and most - 1.0 < about * (1.0 - 2.0 * QUICK_ERROR):  # it is rounded up to this in any case
        return max(1.0, most)
    return _whole_by_law(kind, a, b, never, values, start, stop, u)


@shared
def _whole_by_law(
    kind: int, a: float, b: float, never: float, values: Floats, start: int, stop: int, u: float
) -> float:
    return max(1.0, rounded_up(delay_quantile(kind, a, b, never, values, start, stop, u)))


@kernel
def unit_delay(kind: int, b: float, late: float) -> float:
    """About the delay of an answer that surely comes, in units of `a` but for geometric laws, for late = log(1 - u).

    NaN where there is no quick way.
    """
    if kind == PARETO:
        power = -late / b
        return quick_exp(min(power, QUICK_UPTO)) if power <= QUICK_UPTO else math.nan
    if kind == GEOMETRIC:
        return late / b
    if kind == EXPONENTIAL:
        return -late
    return math.nan


class Sample(NamedTuple):
    """Uniform draws, the table of the law, and room for the delays."""

    uniforms: Floats
    values: Floats
    delays: Floats


@kernel
def fill_delays(sample: Sample, kind: int, a: float, b: float, never: float) -> None:
    """`delay_quantile` of each uniform, for one law whose table is all of `values`."""
    values = sample.values
    for i in range(sample.uniforms.size):
        sample.delays[i] = delay_quantile(kind, a, b, never, values, 0, values.size, sample.uniforms[i])


_NONE = np.zeros(0)
DELAYS = Program(
    name="delays",
    entries={"fill_delays": Entry(fill_delays, (Sample(_NONE, _NONE, _NONE), int, float, float, float))},
)
