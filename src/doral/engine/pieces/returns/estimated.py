"""tau is read off the return curves, and so is the cut-off where it follows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from doral._kernel import kernel
from doral.engine.answer_limit import answer_limit
from doral.engine.hooks import thins
from doral.engine.state import State, clock_passed
from doral.estimators.survival import (
    age_of_share,
    is_by_context,
    known_decisions,
    mean_age,
    pool,
    return_probability,
    shrink_to_others,
)

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint

MEMORY = "returns"


class ReturnsMemory(NamedTuple):
    cutoff_follows: bool  # m is the age by which this share of the answers has come
    cutoff_share: float


def memory(blueprint: Blueprint) -> ReturnsMemory:
    return ReturnsMemory(blueprint.options.cutoff == "adaptive", blueprint.options.cutoff_share)


@kernel
def read_returns(state: State) -> None:
    """tau by the deadline, or by the cut-off where there is no deadline."""
    pool(state.curves)
    _follow_curves(state)
    like = -1
    for j in range(state.tally.shape[1]):
        if like >= 0 and _is_curve_shared(state, j) and state.contexts[j].deadline == state.contexts[like].deadline:
            _copy_row(state, like, j)
        else:
            _read_row(state, j)
            if like < 0 and _is_curve_shared(state, j):
                like = j


@kernel
def set_tau(state: State, row: int, context: int) -> None:
    if row == context:
        return
    is_alike = state.contexts[row].deadline == state.contexts[context].deadline
    for a in range(state.allowed.size):
        state.tau[row, a], state.tau_error[row, a] = state.tau[context, a], state.tau_error[context, a]
        if not is_alike:
            _set_tau(state, context if is_by_context(state.curves) else 0, row, a)
    if not is_alike and state.confidence.return_optimism > 0.0:
        curves_row = context if is_by_context(state.curves) else 0
        shrink_to_others(state.curves, curves_row, state.tau[row], state.tau_error[row])


@kernel
def _is_curve_shared(state: State, context: int) -> bool:
    """Whether a context has no curve of its own: all that have none return alike by the same deadline."""
    return not is_by_context(state.curves) or state.contexts[context].pulls == 0.0


@kernel
def _copy_row(state: State, source: int, to: int) -> None:
    for a in range(state.allowed.size):
        state.tau[to, a], state.tau_error[to, a] = state.tau[source, a], state.tau_error[source, a]
        state.thinning[to, a] = state.thinning[source, a]


@kernel
def _read_row(state: State, context: int) -> None:
    row = context if is_by_context(state.curves) else 0
    for a in range(state.allowed.size):
        _read_one(state, row, context, a)
    if state.confidence.return_optimism > 0.0:
        shrink_to_others(state.curves, row, state.tau[context], state.tau_error[context])


@kernel
def _follow_curves(state: State) -> None:
    """The cut-off, and how many rounds are lost at the end."""
    now, curves = state.now[0], state.curves
    if state.returns.cutoff_follows:
        m = age_of_share(curves, state.returns.cutoff_share)
        now.cutoff = m if m < math.inf else now.cutoff
    if state.limits.until_end and clock_passed(state) > 0.0:  # what is decided so near the end mostly earns nothing
        age = mean_age(curves, state.limits.longest_deadline)
        if age > 0.0:
            now.lost_rounds = int(age * now.round / clock_passed(state))


@kernel
def _read_one(state: State, row: int, context: int, arm: int) -> None:
    _set_tau(state, row, context, arm)
    if thins(state):
        state.thinning[context, arm] = return_probability(state.curves, row, arm, state.now[0].cutoff)


@kernel
def _set_tau(state: State, row: int, context: int, arm: int) -> None:
    tau = return_probability(state.curves, row, arm, answer_limit(state, context))
    known = known_decisions(state.curves, row, arm)
    state.tau[context, arm] = tau
    state.tau_error[context, arm] = math.sqrt((tau * (1.0 - tau) + 1.0 / (known + 1.0)) / (known + 1.0))


@kernel
def watched(state: State) -> int:
    """Before enough decisions have been watched to the end, return curves go on in the best of hopes."""
    ages = state.curves.ages
    g = 0
    while g < ages.size - 1 and ages[g] < state.limits.longest_deadline:
        g += 1
    return state.curves.cursor[g]
