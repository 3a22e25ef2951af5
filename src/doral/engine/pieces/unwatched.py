"""No return curves: a decision is forgotten when it leaves the cut-off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral._kernel import kernel
from doral.engine.pieces import curves
from doral.engine.state import State

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return not curves.is_in(options, problem)


@kernel
def on_tick(state: State) -> None:
    """Nobody asks for what is settled."""
    state.now[0].first = state.now[0].settled
