"""The age by which an answer has to come."""

from __future__ import annotations

import math

from doral._kernel import kernel
from doral.engine.state import State, clock_left, clock_passed

YOUNG_SHARE = 0.1  # of the age by which answers have to come


@kernel
def answer_limit(state: State, context: int) -> float:
    """The deadline, or the cut-off where there is none; and near the end, what is left of time."""
    now = state.now[0]
    limit = state.contexts[context].deadline
    if state.limits.by_cutoff or math.isinf(limit):
        limit = now.cutoff
    # A young campaign knows no pace of arrivals yet: the first of them may come as one batch.
    if state.limits.until_end and now.round > 0 and clock_passed(state) >= YOUNG_SHARE * limit:
        limit = min(limit, clock_left(state))
    return limit
