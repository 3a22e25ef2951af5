"""Some people answer faster than others, or more is paid for them: return curves and costs of arms are shifted by
features, as far as data show it (estimators/shift.py).

A decision is counted when it has left the cut-off: by then it is known whether and when it was answered, and mostly
what was paid. Where feedback is silent, what is learned is by the deadline, and features of the slow tell in it anyway.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from doral._kernel import kernel, position, rare
from doral.engine.hooks import kept
from doral.engine.state import State
from doral.estimators.shift import Shift, count_shift, fade_shift, new_shift, solve_shift, times
from doral.estimators.survival import is_by_context, return_probability
from doral.pacing import sort_costs

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

ALL_BUT = 1e-6  # where all are thought to have answered, somebody may not have


class PeopleShiftMemory(NamedTuple):
    returns: Shift
    costs: Shift


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return bool(problem.person) and options.return_probability == "estimated" and problem.feedback == "explicit"


def memory(blueprint: Blueprint) -> PeopleShiftMemory:
    p = max(1, blueprint.n_columns)
    return PeopleShiftMemory(new_shift(p), new_shift(p))


@kernel
def on_settle(state: State, slot: int) -> None:
    decision = state.ring[slot]
    if math.isnan(decision.answer_age):
        return
    x, arm, cutoff = state.people.ring_columns[slot], position(decision.arm), state.now[0].cutoff
    row = position(decision.context) if is_by_context(state.curves) else 0
    share = return_probability(state.curves, row, arm, min(decision.answer_age, cutoff))
    hazard = -math.log(max(1.0 - share, ALL_BUT))
    count_shift(state.people_shift.returns, x, 1.0 if decision.answer_age <= cutoff else 0.0, hazard)
    if state.chosen.costs:
        paid = state.costs.claims[slot].paid
        if not math.isnan(paid):
            usual = state.costs.share[position(decision.context), arm]
            count_shift(state.people_shift.costs, x, max(paid, 0.0), usual)


@rare
def on_lines(state: State) -> None:
    solve_shift(state.people_shift.returns)
    if state.chosen.costs:
        solve_shift(state.people_shift.costs)


@kernel
def on_terms(state: State, row: int) -> None:
    x = state.people.columns[row]
    faster = times(state.people_shift.returns, x)
    for a in range(state.allowed.size):
        tau = state.tau[row, a]
        if tau < 1.0:
            state.tau[row, a] = 1.0 - math.exp(faster * math.log1p(-tau))
    if state.chosen.costs:
        dearer = times(state.people_shift.costs, x)
        for a in range(state.allowed.size):
            list_cost = state.list_costs[min(row, state.list_costs.shape[0] - 1), a]
            state.hulls.costs[row, a] = min(dearer * state.hulls.costs[row, a], list_cost)
        sort_costs(state.hulls, row)


@rare
def fade(state: State) -> None:
    keep = kept(state)
    if keep < 1.0:
        fade_shift(state.people_shift.returns, keep)
        fade_shift(state.people_shift.costs, keep)
