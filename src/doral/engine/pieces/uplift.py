"""What an arm is worth is what it brings beyond doing nothing: `Problem(baseline=...)`.

What skipping brings is known, or it is the control arm: learned like every arm, from those who were skipped. Its place
in the hull is the origin, so it is never bought, and no barrier ever opens for it.

    value_a = upper value of a - what the control is thought to bring,   if a may be better than the control may be

The control gets the same benefit of the doubt as any arm, but only where that decides whether anybody is served at all:
what is not known of it is learned by skipping, which costs no budget, and by nothing else. To add its error to the arms
instead would serve everybody wherever money is plenty, and then nobody would ever be skipped for the control to be
known. In the order of contexts it has no place: where money is short, somebody is skipped everywhere. For its doubt the
control borrows nothing from other contexts, for what people do by themselves may differ more between them than what
arms do. Certificates compare arms with each other: there, the control is the same on both sides. And it has no benefit
once it was seen and no reward but 0 was heard: before anything tells how far arms differ, those without features share
all that is known with the control, and nobody would ever be served where nothing comes of doing nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel, position
from doral.engine.hooks import class_of, draws, norm_row, stretch
from doral.engine.state import State
from doral.estimators.shrinkage import MEAN_SQUARE
from doral.pacing import NO_ARM

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


class UpliftMemory(NamedTuple):
    control: int  # NO_ARM: what skipping brings is known
    known: Floats  # (J,) that; in units of reward


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return problem.baseline is not None


def memory(blueprint: Blueprint) -> UpliftMemory:
    problem = blueprint.problem
    known = np.zeros(problem.n_contexts)
    if problem.baseline is not None and not isinstance(problem.baseline, str):
        known[:] = problem.baseline
    return UpliftMemory(NO_ARM if problem.control is None else problem.control, known)


@kernel
def control(state: State) -> int:
    return state.uplift.control


@kernel
def baseline(state: State, context: int) -> float:
    """What is known is in units that nobody can compare arms with before the first answer of a context."""
    weight, uplift = state.contexts[context].weight, state.uplift
    if uplift.control == NO_ARM:
        return weight * uplift.known[class_of(state, context)] if state.ridge.is_touched[context] != 0 else 0.0
    arm = position(uplift.control)
    return weight * state.tau[context, arm] * state.ridge.estimate[context, arm]


@kernel
def on_scored(state: State, context: int, restricted: bool, scale: float, norm: Floats) -> None:
    values, nothing, benefit = state.values, baseline(state, context), 0.0
    if state.uplift.control != NO_ARM and not _is_alone(state, context, position(state.uplift.control)):
        benefit = _benefit(state, context, position(state.uplift.control), scale, norm)
    if draws(state) > 0:
        nothing, benefit = nothing + benefit, 0.0
    for a in range(values.size):
        values[a] -= nothing
        if values[a] <= benefit:
            values[a] -= benefit


@kernel
def _is_alone(state: State, context: int, control: int) -> bool:
    """Whether all that was heard is that nothing comes of nothing, while arms without features seem known by that."""
    if not state.chosen.prior_cells or state.prior.scale[MEAN_SQUARE] > 0.0 or draws(state) > 0:
        return False
    return state.ridge.weight[norm_row(state, context), control] > 0.0


@kernel
def _benefit(state: State, context: int, arm: int, scale: float, norm: Floats) -> float:
    """Of the doubt: what its index adds to what the control is thought to bring, or what was drawn for it."""
    weight, tau = state.contexts[context].weight, state.tau[context, arm]
    if draws(state) > 0:
        return weight * tau * scale * norm[arm]
    width = max(norm[arm], 1.0 / math.sqrt(1.0 + state.ridge.weight[norm_row(state, context), arm]))
    of_reward = tau * scale * width * stretch(state, context, width)
    doubts = state.confidence.return_optimism * math.sqrt(math.log(math.e + state.contexts[context].pulls))
    of_return = doubts * state.tau_error[context, arm] * max(state.ridge.estimate[context, arm], 0.0)
    return weight * math.sqrt(of_reward * of_reward + of_return * of_return)
