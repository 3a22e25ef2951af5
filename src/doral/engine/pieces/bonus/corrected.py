"""Eq. (delayed LinUCB): scale * (2 f_t + bias), with n the pulls of the context.

f_t only changes with a pull. That after the next pull is worked out ahead: nobody waits for the logarithm then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Record
from doral._kernel import kernel
from doral.engine.hooks import unknowns, window_bias
from doral.engine.state import State

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint

# f_t after so many pulls, and after one more; NaN pulls: not worked out yet.
WIDTH = np.dtype([("pulls", np.float64), ("f_t", np.float64), ("next", np.float64)], align=True)


def memory(blueprint: Blueprint) -> Record:
    """(rows,) of WIDTH."""
    widths = np.zeros(blueprint.n_rows, dtype=WIDTH)
    widths["pulls"] = math.nan
    return widths


@kernel
def confidence_width(state: State, n: float, certainty: float) -> float:
    """f_t = sqrt(lambda) + sqrt(certainty + k log((k lambda + n) / (k lambda))), with certainty = 2 log(1 / delta)."""
    rules = state.confidence
    n_features = unknowns(state)
    scaled_penalty = n_features * rules.penalty
    return math.sqrt(rules.penalty) + math.sqrt(
        max(0.0, certainty + n_features * math.log((scaled_penalty + n) / scaled_penalty))
    )


@kernel
def delayed_linucb(state: State, context: int, f_t: float) -> float:
    return state.confidence.exploration * (2.0 * f_t + window_bias(state, context))


@kernel
def bonus(state: State, context: int) -> float:
    width, n, certainty = state.corrected[context], state.contexts[context].pulls, state.confidence.certainty
    f_t = width.f_t
    if width.pulls != n:
        f_t = width.next if width.pulls + 1.0 == n else confidence_width(state, n, certainty)
        width.pulls, width.f_t, width.next = n, f_t, confidence_width(state, n + 1.0, certainty)
    return delayed_linucb(state, context, f_t)
