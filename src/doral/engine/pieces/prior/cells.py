"""As `shared`, where features may be wrong: arms have something beyond their features, and cells deviate from both."""

from __future__ import annotations

from doral._kernel import rare
from doral.engine.pieces.prior.noise import MEMORY, memory, noise_variance, on_corrected, on_learned
from doral.engine.pieces.prior.shared import follow_answers, refresh_prior
from doral.engine.state import State
from doral.estimators.cells import calibrate_cells

__all__ = [
    "MEMORY",
    "follow_answers",
    "memory",
    "noise_variance",
    "on_corrected",
    "on_learned",
    "rebuild_rewards",
    "refresh_prior",
]


@rare
def rebuild_rewards(state: State) -> None:
    """Around the prior that follows from them."""
    calibrate_cells(state.prior, state.ridge, state.tally, state.thinning)
