"""Contexts share strength: the common mean and spread of theta_j are learned by empirical Bayes, with the noise."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral.engine.hooks import rebuild_rewards as rebuilt
from doral.engine.pieces.prior.noise import MEMORY, memory, noise_variance, on_corrected, on_learned
from doral.engine.schedule import set_next_calibration
from doral.engine.state import State
from doral.estimators.shrinkage import calibrate

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
    """By whichever of the pieces that share strength is chosen."""
    set_next_calibration(state)
    rebuilt(state)


@rare
def rebuild_rewards(state: State) -> None:
    """Around the prior that follows from them."""
    calibrate(state.prior, state.ridge, state.tally, state.thinning)


@kernel
def refresh_prior(state: State) -> None:
    rebuilt(state)
