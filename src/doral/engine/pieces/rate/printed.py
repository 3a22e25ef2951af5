"""Printed: the remaining budget per elapsed round, b_t / t."""

from __future__ import annotations

from doral._kernel import kernel
from doral.engine.hooks import refunds
from doral.engine.state import State


@kernel
def rate(state: State) -> float:
    return (state.now[0].budget_left + refunds(state)) / state.now[0].round
