"""Eq. (delayed LinUCB): scale * (2 f_t + bias), with n the pulls of the context."""

from __future__ import annotations

import math

from doral._kernel import kernel
from doral.engine.hooks import unknowns, window_bias
from doral.engine.state import State


@kernel
def delayed_linucb(state: State, context: int, n: float, certainty: float) -> float:
    """f_t = sqrt(lambda) + sqrt(certainty + k log((k lambda + n) / (k lambda))), with certainty = 2 log(1 / delta)."""
    rules = state.confidence
    n_features = unknowns(state)
    scaled_penalty = n_features * rules.penalty
    f_t = math.sqrt(rules.penalty) + math.sqrt(
        max(0.0, certainty + n_features * math.log((scaled_penalty + n) / scaled_penalty))
    )
    return rules.exploration * (2.0 * f_t + window_bias(state, context))


@kernel
def bonus(state: State, context: int) -> float:
    return delayed_linucb(state, context, state.contexts[context].pulls, state.confidence.certainty)
