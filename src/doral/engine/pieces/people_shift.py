"""Some people answer faster than others: return curves of arms are shifted by features, as far as data show it
(estimators/shift.py).

A decision is counted when it has left the cut-off: by then it is known whether it was answered. Where feedback is
silent, what is learned is by the deadline, and features of the slow tell in it anyway.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral._kernel import kernel, position, rare
from doral.engine.hooks import kept
from doral.engine.state import State
from doral.estimators.shift import Shift, count_chance, fade_shift, new_shift, solve_shift, times
from doral.estimators.survival import is_by_context, return_probability

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return bool(problem.person) and options.return_probability == "estimated" and problem.feedback == "explicit"


def memory(blueprint: Blueprint) -> Shift:
    return new_shift(max(1, blueprint.n_columns), blueprint.problem.n_arms)


@kernel
def on_settle(state: State, slot: int) -> None:
    decision = state.ring[slot]
    if math.isnan(decision.answer_age):
        return
    x, arm, cutoff = state.people.ring_columns[slot], position(decision.arm), state.now[0].cutoff
    row = position(decision.context) if is_by_context(state.curves) else 0
    share = return_probability(state.curves, row, arm, cutoff)
    count_chance(state.people_shift, arm, x, decision.answer_age <= cutoff, share)


@rare
def on_lines(state: State) -> None:
    solve_shift(state.people_shift)


@kernel
def on_terms(state: State, row: int) -> None:
    x = state.people.columns[row]
    faster = times(state.people_shift, x)
    context = position(state.people.context[row])
    if state.contexts[row].deadline == state.contexts[context].deadline:
        log_open = state.people.tau[2, context]  # as of the last look, like tau
        for a in range(state.allowed.size):
            state.tau[row, a] = 1.0 - math.exp(faster * log_open[a])
    else:
        for a in range(state.allowed.size):
            tau = state.tau[row, a]
            if tau < 1.0:
                state.tau[row, a] = 1.0 - math.exp(faster * math.log1p(-tau))


@rare
def fade(state: State) -> None:
    fade_shift(state.people_shift, kept(state))
