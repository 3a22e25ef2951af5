"""The bias term of the bonus: pulls inside the cut-off, each with the norm that its arm has today.

bias = sum over the context's pulls of the last m rounds of ||f_a|| in V_t^-1  =  sum_a w_ja ||f_a||
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel, position
from doral.engine.hooks import class_of
from doral.engine.state import State, longest, mark_stale

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Whether the bonus has a bias term."""

    window_bias: bool | None = None


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    if options.window_bias is not None:
        return options.window_bias
    return options.learner == "thinned" and not _has_no_window(options, problem)


def _has_no_window(options: PolicyOptions, problem: Problem) -> bool:
    """Where nothing says how long to wait every pull is inside, and the term would drown whatever is learned."""
    waits_for_deadline = options.cutoff is None and options.screening == "none"
    return waits_for_deadline and math.isinf(longest(problem.deadlines))


def memory(blueprint: Blueprint) -> Floats:
    """(J, A) pulls inside the cut-off: w_ja."""
    return np.zeros((blueprint.problem.n_contexts, blueprint.problem.n_arms))


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    state.window[position(state.ring[slot].context), arm] += 1.0


@kernel
def on_settle(state: State, slot: int) -> None:
    context = position(state.ring[slot].context)
    state.window[context, position(state.ring[slot].arm)] -= 1.0
    mark_stale(state, context)


@kernel
def window_bias(state: State, context: int) -> float:
    bias = 0.0
    window, norm = state.window[class_of(state, context)], state.ridge.norm[context]
    for a in range(window.size):
        bias += window[a] * norm[a]
    return bias
