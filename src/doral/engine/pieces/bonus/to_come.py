"""As `ahead`, for those whom an arm can still be for: who are still to come, as far as what is left pays for them.

    n_ja  =  n_j / T  min(T - t, what is left of the budget or comes back / c_a)

Dynamic programming weighs one more try against those who come after it. `ahead` counts all who are expected over the
campaign, and so goes on trying towards the end, and counts those, too, whom there is no budget for. psi grows slowly:
in a long campaign this is hardly another bonus, in a short one it leaves more of the budget to what is known to be
good. That is more on average, and in a few more runs the good arm is missed.
"""

from __future__ import annotations

import math

from doral._kernel import kernel, rare
from doral.engine.hooks import norm_row, refunds
from doral.engine.pieces.bonus.ahead import bonus, memory, stretch, stretched
from doral.engine.state import State
from doral.pacing import cost_of

__all__ = ["MEMORY", "bonus", "memory", "on_renewed", "on_revalued", "stretch", "stretched"]

MEMORY = "ahead"


@rare
def on_renewed(state: State) -> None:
    for j in range(state.tally.shape[1]):
        on_revalued(state, j)


@kernel
def on_revalued(state: State, row: int) -> None:
    norm = state.ridge.norm[norm_row(state, row)]
    for a in range(state.allowed.size):
        share = math.sqrt(_share_to_come(state, row, a))
        state.ahead[row, a] = stretch(state, row, norm[a] * share)


@kernel
def _share_to_come(state: State, row: int, arm: int) -> float:
    """Of all who are expected, whom the arm can still be for."""
    now, cost = state.now[0], cost_of(state.hulls, row, arm)
    n = float(max(0, now.horizon - now.round))
    if cost > 0.0:
        n = min(n, max(0.0, now.budget_left + refunds(state)) / cost)
    return n / now.horizon
