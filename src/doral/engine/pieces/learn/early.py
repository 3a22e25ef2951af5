"""Silent feedback, learned as it comes: an answer counts at once, and an open decision is a fraction of a trial.

What is learned is what a decision brings by its deadline: no tau stands beside it. V grows with the fractions, when
stock is taken, and G with the answers (estimators/positives.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel, position, rare
from doral.engine.hooks import correction_weight, deadline_of, kept, norm_row, on_learned, teach
from doral.engine.lessons import enter_exactly, is_learnable, replace, slot_of
from doral.engine.state import GUEST, State, mark_stale
from doral.errors import InvalidValue
from doral.estimators.positives import count_positive, trial_share
from doral.estimators.ridge import add_weight, refactor
from doral.estimators.shrinkage import REWARD, SQUARE

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions


def check(options: PolicyOptions) -> None:
    if options.learner == "early" and options.return_probability != "estimated":
        remedy = "counts trials when return curves are read: needs return_probability='estimated'"
        raise InvalidValue("learner", options.learner, remedy)


class EarlyMemory(NamedTuple):
    passed: Floats  # (J, A, 1 + ages) decisions made, and how many of them have passed each age
    counts: Floats  # (2, A, ages) answers, see `positives`; by ages up to the deadline of their context
    shares: Floats  # (A, ages) F by arm


def memory(blueprint: Blueprint) -> EarlyMemory:
    n_contexts, n_arms, n_ages = blueprint.problem.n_contexts, blueprint.problem.n_arms, blueprint.ages.size
    return EarlyMemory(
        passed=np.zeros((n_contexts, n_arms, 1 + n_ages)),
        counts=np.zeros((2, n_arms, n_ages)),
        shares=np.ones((n_arms, n_ages)),
    )


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    if state.ring[slot].trains != 0:
        state.early.passed[position(state.ring[slot].context), arm, 0] += 1.0


@kernel
def on_passage(state: State, slot: int, g: int, age: float) -> None:
    decision = state.ring[slot]
    if decision.trains != 0 and not math.isnan(decision.answer_age):  # else it was cancelled
        context, arm, ages = position(decision.context), position(decision.arm), state.curves.ages
        state.early.passed[context, arm, g + 1] += 1.0
        if decision.reward != 0.0 and decision.answer_age <= ages[g] and ages[g] <= deadline_of(state, slot, context):
            count_positive(state.early.counts, ages, arm, g, decision.answer_age)


@kernel
def trial_part(state: State, arm: int, g: int) -> float:
    return trial_share(state.early.shares, state.curves.ages, arm, g, state.limits.longest_deadline)


@kernel
def settled_weight(state: State, slot: int) -> float:
    """For those who count open decisions: a whole trial, unless it was cancelled."""
    return 1.0 if state.ring[slot].trains != 0 and not math.isnan(state.ring[slot].answer_age) else 0.0


@kernel
def learn_answer(state: State, slot: int, reward: float) -> None:
    state.ring[slot].reward = reward
    _enter(state, slot, position(state.ring[slot].context), position(state.ring[slot].arm), reward)
    state.ring[slot].weight = float(state.now[0].read_last)  # `reading` is that of the decision, for those who count it


@kernel
def _enter(state: State, slot: int, context: int, arm: int, reward: float) -> None:
    """A reward; its trial counts by its age."""
    state.tally[REWARD, context, arm] += reward
    state.tally[SQUARE, context, arm] += reward * reward
    enter_exactly(state, context, arm, reward, 1.0)
    teach(state, slot, context, arm, 0.0, reward)
    on_learned(state)
    mark_stale(state, context)


@kernel
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    if number >= state.now[0].first:
        learn_answer(state, position(number & (state.ring.size - 1)), reward)
    else:
        _enter(state, GUEST, context, arm, reward)


@rare
def on_recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed since its answer came are counted now, if the answer teaches anything."""
    ages = state.curves.ages
    slot = slot_of(state, number)
    if not is_learnable(state, slot, context, age):
        return
    if number >= state.now[0].first and state.ring[number & (state.ring.size - 1)].trains == 0:
        return
    for g in range(ages.size):
        is_passed = number < state.curves.cursor[g] and age <= ages[g] and ages[g] <= deadline_of(state, slot, context)
        if reward != 0.0 and is_passed:
            count_positive(state.early.counts, ages, arm, g, age)


@kernel
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    weight = correction_weight(state, number, reward)
    if weight != 0.0:
        reading = 0
        if number >= state.now[0].first:
            slot = number & (state.ring.size - 1)
            reading = int(state.ring[slot].weight)
            state.ring[slot].reward = reward
        replace(state, slot_of(state, number), context, arm, previous, reward, weight, reading, True)


@rare
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """It was no trial."""
    if in_race and state.now[0].race_trains == 0:
        return
    passed, cursor = state.early.passed[context, arm], state.curves.cursor
    passed[0] = max(0.0, passed[0] - 1.0)
    for g in range(cursor.size):
        if number < cursor[g]:
            passed[g + 1] = max(0.0, passed[g + 1] - 1.0)
    row = norm_row(state, context)
    if row != context and number < state.now[0].settled:  # there it counts since it settled
        add_weight(state.ridge, row, arm, -1.0)
        refactor(state.ridge, row)


@rare
def fade(state: State) -> None:
    """Where the past counts less, so do its trials and its answers."""
    keep = kept(state)
    if keep < 1.0:
        for j in range(state.early.passed.shape[0]):
            for a in range(state.early.passed.shape[1]):
                for g in range(state.early.passed.shape[2]):
                    state.early.passed[j, a, g] *= keep
        for which in range(state.early.counts.shape[0]):
            for a in range(state.early.counts.shape[1]):
                for g in range(state.early.counts.shape[2]):
                    state.early.counts[which, a, g] *= keep
