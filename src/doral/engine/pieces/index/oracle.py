"""Nothing is learned: arms are worth what they are, in simulation only. LP_m with true values is the ceiling of what is
learned on the same draws.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._kernel import kernel
from doral.engine.hooks import whose
from doral.engine.pieces.index.optimism import keep_allowed
from doral.engine.state import State, mark_all_stale
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions

MEMORY = "truth"


class TruthMemory(NamedTuple):
    values: Floats  # (phases, J, A) expected worth of what returns within the deadline, weights included
    phase_rounds: int  # how long each phase lasts
    phase: Ints  # (1,) for which hulls were made last


def check(options: PolicyOptions) -> None:
    if options.sampling == "oracle" and options.choice == "unweighted":
        raise InvalidValue("choice", options.choice, "sampling='oracle' has no index: needs choice='weighted'")


def memory(blueprint: Blueprint) -> TruthMemory:
    if blueprint.true_values is None:
        remedy = "needs the true values, which only a simulation has; choose optimism, thompson or directed"
        raise InvalidValue("sampling", "oracle", remedy)
    values = np.array(blueprint.true_values)
    phase_rounds = math.ceil(blueprint.problem.expected_rounds / values.shape[0])
    return TruthMemory(values, phase_rounds, np.zeros(1, dtype=np.int64))


@kernel
def before_spending(state: State, context: int) -> None:
    """In another phase of the world every context is worth something else."""
    phase = _phase(state)
    if phase != state.truth.phase[0]:
        state.truth.phase[0] = phase
        mark_all_stale(state)


@kernel
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = what arm a is worth."""
    values, truth = state.values, state.truth.values[_phase(state), whose(state, context)]
    barrier = state.barrier[state.contexts.size if restricted else context]
    for a in range(state.allowed.size):
        values[a] = truth[a] + barrier[a]
    for a in range(state.allowed.size, values.size):
        values[a] = -math.inf
    if restricted:
        keep_allowed(state)


@kernel
def _phase(state: State) -> int:
    round_, last = state.now[0].round, state.truth.values.shape[0] - 1
    return min(max(0, round_ - 1) // state.truth.phase_rounds, last)
