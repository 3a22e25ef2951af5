"""D-LinUCB: the best arm of every context is played until the budget is gone."""

from __future__ import annotations

import math

from doral._kernel import kernel, shared
from doral.engine.choice import PLAYED, SKIPPED_PACED, SKIPPED_UNAVAILABLE, Choice
from doral.engine.hooks import draws, on_draw, on_weighed, score
from doral.engine.mixture import one_of_the_weighed
from doral.engine.state import State
from doral.pacing import NO_ARM, first_best


@kernel
def best_arm(state: State, context: int, restricted: bool) -> int:
    """NO_ARM where all are out."""
    score(state, context, restricted, True)
    arm = first_best(state.values)
    return NO_ARM if state.values[arm] == -math.inf else arm


@shared
def by_draws(state: State, context: int, restricted: bool, probability: float) -> Choice:
    """The best arm of each draw, played with this probability."""
    n_draws, why_skipped = draws(state), SKIPPED_PACED
    for number in range(n_draws):
        on_draw(state, number)
        arm = best_arm(state, context, restricted)
        if arm == NO_ARM:
            why_skipped = SKIPPED_UNAVAILABLE
        on_weighed(state, arm, probability / n_draws)
        on_weighed(state, NO_ARM, (1.0 - probability) / n_draws)
    return one_of_the_weighed(state, context, 0.0, why_skipped)


@kernel
def spend(state: State, context: int, restricted: bool) -> Choice:
    if draws(state) > 0:
        return by_draws(state, context, restricted, 1.0)
    arm = best_arm(state, context, restricted)
    on_weighed(state, arm, 1.0)
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    return Choice(arm, 1.0, state.values[arm], 0.0, PLAYED)
