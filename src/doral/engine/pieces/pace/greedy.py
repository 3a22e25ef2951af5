"""D-LinUCB: the best arm of every context is played until the budget is gone."""

from __future__ import annotations

import math

from doral._kernel import kernel
from doral.engine.choice import PLAYED, SKIPPED_UNAVAILABLE, Choice
from doral.engine.hooks import score
from doral.engine.state import State
from doral.pacing import NO_ARM, first_best


@kernel
def best_arm(state: State, context: int, restricted: bool) -> int:
    """NO_ARM where all are out."""
    score(state, context, restricted, True)
    arm = first_best(state.values)
    return NO_ARM if state.values[arm] == -math.inf else arm


@kernel
def spend(state: State, context: int, restricted: bool) -> Choice:
    arm = best_arm(state, context, restricted)
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    return Choice(arm, 1.0, state.values[arm], 0.0, PLAYED)
