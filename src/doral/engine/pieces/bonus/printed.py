"""The bonus as printed: n is the round, and log(1 / lambda) stands for log(1 / delta)."""

from __future__ import annotations

from doral._kernel import kernel
from doral.engine.pieces.bonus.corrected import confidence_width, delayed_linucb
from doral.engine.state import State, mark_all_stale


@kernel
def bonus(state: State, context: int) -> float:
    f_t = confidence_width(state, float(state.now[0].round), state.confidence.printed_certainty)
    return delayed_linucb(state, context, f_t)


@kernel
def on_tick(state: State) -> None:
    """n = t: every bonus moves in every round."""
    if state.now[0].racing == 0:
        mark_all_stale(state)
