"""The remaining budget per remaining round; rounds at the end in which too little can return do not count."""

from __future__ import annotations

from doral._kernel import kernel
from doral.engine.hooks import refunds
from doral.engine.state import State


@kernel
def rate(state: State) -> float:
    now = state.now[0]
    rounds_left = now.horizon - now.round + 1
    if state.limits.until_end:
        rounds_left = max(1, rounds_left - now.lost_rounds)
    return (now.budget_left + refunds(state)) / rounds_left
