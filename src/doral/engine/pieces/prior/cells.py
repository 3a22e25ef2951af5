"""As `shared`, where features may be wrong: arms have something beyond their features, and cells deviate from both."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral.engine.pieces.prior.noise import MEMORY, memory, noise_variance, on_corrected, on_learned
from doral.engine.schedule import set_next_calibration
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


@kernel
def follow_answers(state: State) -> None:
    set_next_calibration(state)
    rebuild_rewards(state)


@rare
def rebuild_rewards(state: State) -> None:
    """Around the prior that follows from them."""
    calibrate_cells(state.prior, state.ridge, state.tally, state.thinning)


@kernel
def refresh_prior(state: State) -> None:
    rebuild_rewards(state)
