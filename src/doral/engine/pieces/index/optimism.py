"""Optimism in the face of uncertainty: the estimate plus the bonus, times tau as it is thought to be."""

from __future__ import annotations

import math

from doral._kernel import kernel
from doral.engine.hooks import bonus, norm_row, on_scored, stretched
from doral.engine.state import State


@kernel
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = weight_j * tau_a * (estimate + bonus * norm)."""
    estimate, tau, norm = state.ridge.estimate[context], state.tau[context], state.ridge.norm[norm_row(state, context)]
    barrier = state.barrier[state.contexts.size if restricted else context]  # the rival may be missing today
    values, weight, scale = state.values, state.contexts[context].weight, bonus(state, context)
    for a in range(values.size):
        values[a] = weight * tau[a] * (estimate[a] + scale * stretched(state, context, a, norm[a])) + barrier[a]
    if restricted:
        keep_allowed(state)
    on_scored(state, context, restricted, scale, norm)


@kernel
def keep_allowed(state: State) -> None:
    """Arms that cannot be had today are worth nothing."""
    for a in range(state.allowed.size):
        if state.allowed[a] == 0:
            state.values[a] = -math.inf
