"""Random: the best arm is played with probability rho."""

from __future__ import annotations

from doral._kernel import kernel
from doral.engine.choice import PLAYED_MARGINAL, SKIPPED_PACED, SKIPPED_UNAVAILABLE, Choice
from doral.engine.hooks import draws, on_weighed, rate
from doral.engine.pieces.pace.greedy import best_arm, by_draws
from doral.engine.pieces.pace.lp import flip
from doral.engine.state import State
from doral.pacing import NO_ARM


@kernel
def spend(state: State, context: int, restricted: bool) -> Choice:
    probability = min(1.0, rate(state))
    if draws(state) > 0:
        return by_draws(state, context, restricted, probability)
    arm = best_arm(state, context, restricted)
    on_weighed(state, arm, probability)
    on_weighed(state, NO_ARM, 1.0 - probability)
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    value = state.values[arm]
    if flip(state, probability):
        return Choice(arm, probability, value, 0.0, PLAYED_MARGINAL)
    return Choice(NO_ARM, 1.0 - probability, value, 0.0, SKIPPED_PACED)
