"""Stage 2, learning: the index gamma_t of an arm, and what the arm is worth."""

from __future__ import annotations

import math

from doral._jit import jit
from doral.pacing import NO_ARM
from doral.policies.state import Rules, State


@jit
def bonus(state: State, rules: Rules, context: int) -> float:
    """scale * (2 f_t + bias) of Eq. (delayed LinUCB); it multiplies ||f_a|| in the norm of V^-1."""
    n_features = state.ridge.features.shape[1]
    scaled_penalty = n_features * rules.penalty
    n = state.pulls[context]
    confidence = rules.delta
    if rules.printed_bonus:
        n = float(state.now[0].round)
        confidence = rules.penalty
    f_t = math.sqrt(rules.penalty) + math.sqrt(
        max(0.0, 2.0 * math.log(1.0 / confidence) + n_features * math.log((scaled_penalty + n) / scaled_penalty))
    )
    bias = 0.0
    if rules.with_bias:
        window, norm = state.window[context], state.ridge.norm[context]
        for a in range(window.size):
            bias += window[a] * norm[a]
    return rules.exploration * (2.0 * f_t + bias)


@jit
def set_values(state: State, rules: Rules, context: int, restricted: bool) -> int:
    """values[a] = tau_a * gamma_t(a) for the arms in play, -inf for the others; returns the context's arm."""
    scale = bonus(state, rules, context)
    estimate, norm = state.ridge.estimate[context], state.ridge.norm[context]
    tau, barrier = state.tau[context], state.barrier
    values, gamma = state.values, state.gamma
    for a in range(values.size):
        gamma[a] = estimate[a] + scale * norm[a] + barrier[a]
        values[a] = tau[a] * (estimate[a] + scale * norm[a]) + barrier[a]
    if restricted:
        for a in range(values.size):
            if state.allowed[a] == 0:
                gamma[a] = -math.inf
                values[a] = -math.inf
    best = 0
    if rules.weighted_choice:
        for a in range(1, values.size):
            if values[a] > values[best]:
                best = a
    else:  # printed: the arm is fixed by the unweighted index, and only it is valued
        for a in range(1, values.size):
            if gamma[a] > gamma[best]:
                best = a
        for a in range(values.size):
            if a != best:
                values[a] = -math.inf
    return best if values[best] > -math.inf else NO_ARM
