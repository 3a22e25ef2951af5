"""tau is given, as in the paper: in simulation only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral._arrays import Floats
from doral._kernel import kernel
from doral.engine.answer_limit import answer_limit
from doral.engine.hooks import thins
from doral.engine.state import State
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint


def memory(blueprint: Blueprint) -> Floats:
    """(1 or J, A, ages) true return probabilities by age."""
    if blueprint.oracle is None:
        remedy = "needs the true delays, which only a simulation has; choose estimated or one"
        raise InvalidValue("return_probability", "oracle", remedy)
    return blueprint.oracle


@kernel
def read_returns(state: State) -> None:
    _, n_contexts, n_arms = state.tally.shape
    last = float(state.oracle.shape[2] - 1)
    for a in range(n_arms):
        for j in range(n_contexts):
            curve = state.oracle[min(j, state.oracle.shape[0] - 1), a]
            state.tau[j, a] = curve[int(min(answer_limit(state, j), last))]
            state.tau_error[j, a] = 0.0
            if thins(state):
                state.thinning[j, a] = curve[int(min(state.now[0].cutoff, last))]
