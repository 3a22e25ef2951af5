"""Return curves are kept: every decision is counted at every grid age that it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral._kernel import kernel
from doral.engine.hooks import on_passage
from doral.engine.state import State
from doral.estimators.survival import count_passage, is_by_context

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    races_on_curves = options.screening == "race" and options.censoring == "kaplan_meier"
    return options.return_probability == "estimated" or races_on_curves


@kernel
def watch(state: State) -> None:
    """Count every decision at every grid age that it has passed since the last time."""
    now, ring, curves = state.now[0], state.ring, state.curves
    end, mask, clock = now.next, np.uint64(ring.size - 1), now.clock  # unsigned: no test for indices from the end
    n_arms = curves.arm_at_risk.shape[0]
    by_context = is_by_context(curves)
    for g in range(curves.ages.size):
        decision = curves.cursor[g]
        age = curves.ages[g]
        while decision < end:
            slot = np.uint64(decision) & mask
            if not clock - ring[slot].time > age:
                break
            group = ring[slot].arm
            if by_context:
                group += n_arms * ring[slot].context
            count_passage(curves, group, g, ring[slot].answer_age)
            on_passage(state, decision & (ring.size - 1), g, clock - ring[slot].time)
            decision += 1
        curves.cursor[g] = decision
    now.first = min(now.settled, curves.cursor[curves.cursor.size - 1])


@kernel
def on_recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed as unanswered were counted so: now it is known when the answer came."""
    curves = state.curves
    group = arm
    if is_by_context(curves):
        group += curves.arm_at_risk.shape[0] * context
    for g in range(curves.ages.size):
        if number < curves.cursor[g]:
            if g > 0 and age <= curves.ages[g - 1]:
                curves.at_risk[group, g] = max(0.0, curves.at_risk[group, g] - 1.0)
            elif age <= curves.ages[g]:
                curves.returned[group, g] = min(curves.returned[group, g] + 1.0, curves.at_risk[group, g])


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """Take an unanswered decision out of every age that it has passed."""
    curves = state.curves
    n_arms = curves.arm_at_risk.shape[0]
    group = arm
    if is_by_context(curves):
        group += n_arms * context
    for g in range(curves.ages.size):
        if number < curves.cursor[g]:
            curves.at_risk[group, g] = max(0.0, curves.at_risk[group, g] - 1.0)
