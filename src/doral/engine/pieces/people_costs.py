"""More of the list price is paid for some people than for others: learned costs of arms are shifted by features, as far
as data show it (estimators/shift.py). A decision is counted when it has left the cut-off: what was paid is mostly known
by then.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral._kernel import kernel, position, rare
from doral.engine.hooks import kept
from doral.engine.pieces import costs
from doral.engine.state import State
from doral.estimators.shift import Shift, count_shift, fade_shift, new_shift, solve_shift, times
from doral.pacing import sort_costs

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return bool(problem.person) and costs.is_in(options, problem)


def memory(blueprint: Blueprint) -> Shift:
    return new_shift(max(1, blueprint.n_columns), blueprint.problem.n_arms)


@kernel
def on_settle(state: State, slot: int) -> None:
    decision, paid = state.ring[slot], state.costs.claims[slot].paid
    if not math.isnan(decision.answer_age) and not math.isnan(paid):
        usual = state.costs.share[position(decision.context), position(decision.arm)]
        count_shift(state.people_costs, position(decision.arm), state.people.ring_columns[slot], max(paid, 0.0), usual)


@rare
def on_lines(state: State) -> None:
    solve_shift(state.people_costs)


@kernel
def on_terms(state: State, row: int) -> None:
    dearer = times(state.people_costs, state.people.columns[row])
    list_row = min(row, state.list_costs.shape[0] - 1)
    for a in range(state.allowed.size):
        state.hulls.costs[row, a] = min(dearer * state.hulls.costs[row, a], state.list_costs[list_row, a])
    sort_costs(state.hulls, row)


@rare
def fade(state: State) -> None:
    fade_shift(state.people_costs, kept(state))
