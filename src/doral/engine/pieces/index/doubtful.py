"""Optimism about rewards and about return: with an uncertain tau the two errors are independent, and their shares of
the value add in squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral._kernel import kernel
from doral.engine.hooks import bonus, norm_row, on_scored, stretched
from doral.engine.pieces.index.optimism import keep_allowed
from doral.engine.state import State
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions


def check(options: PolicyOptions) -> None:
    if options.sampling == "thompson" and options.return_optimism > 0:
        raise InvalidValue("return_optimism", options.return_optimism, "must be 0 with sampling='thompson'")


@kernel
def _doubt(state: State, context: int) -> float:
    """Standard errors of tau that are added to it."""
    return state.confidence.return_optimism * math.sqrt(math.log(math.e + state.contexts[context].pulls))


@kernel
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = weight_j * (tau_a estimate + both errors)."""
    estimate, tau, norm = state.ridge.estimate[context], state.tau[context], state.ridge.norm[norm_row(state, context)]
    barrier = state.barrier[state.contexts.size if restricted else context]  # the rival may be missing today
    values, weight, scale = state.values, state.contexts[context].weight, bonus(state, context)
    error, doubts = state.tau_error[context], _doubt(state, context)
    for a in range(values.size):
        of_reward = tau[a] * scale * stretched(state, context, a, norm[a])
        of_return = doubts * error[a] * max(estimate[a], 0.0)  # that harm may not return is nothing to pay for
        both = math.sqrt(of_reward * of_reward + of_return * of_return)
        values[a] = weight * (tau[a] * estimate[a] + both) + barrier[a]
    if restricted:
        keep_allowed(state)
    on_scored(state, context, restricted, scale, norm)
