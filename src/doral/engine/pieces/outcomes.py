"""Where the delay depends on the outcome: answers above a split and those at or below it have return curves of their
own, by which the answers of young decisions are weighted (estimators/outcomes.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from doral import _check
from doral._arrays import Floats
from doral._kernel import kernel, position, rare
from doral.engine.hooks import on_reweighed, rebuild_rewards
from doral.engine.lessons import enter_exactly
from doral.engine.pieces import learn
from doral.engine.state import State
from doral.errors import InvalidValue
from doral.estimators.outcomes import HIGH, LOW, WEIGHT, count_answer, new_outcomes, set_weights
from doral.estimators.shrinkage import add_to_tally

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


class OutcomesMemory(NamedTuple):
    split: float  # answers above it are of the high kind
    counts: Floats  # (3, 2, A, ages + 1)


@dataclass(frozen=True, kw_only=True)
class OutcomesOptions:
    """Whether outcomes are told apart."""

    outcome_split: float | None = None


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Silent feedback is learned when decisions have settled, and needs no weights."""
    return options.outcome_split is not None and learn.word(options, problem) == "returned"


def check(options: PolicyOptions) -> None:
    split = options.outcome_split
    if split is None:
        return
    if options.learner in ("scaled", "thinned", "early"):
        remedy = "weighs answers as they come in: needs learner='returned' or 'auto'"
        raise InvalidValue("outcome_split", split, remedy)
    if options.return_probability != "estimated":
        remedy = "rests on return curves: needs return_probability='estimated'"
        raise InvalidValue("outcome_split", split, remedy)
    if options.half_life is not None:
        raise InvalidValue("outcome_split", split, "cannot be combined with half_life")
    _check.set_fields(options, outcome_split=_check.finite_number("outcome_split", split))


def memory(blueprint: Blueprint) -> OutcomesMemory:
    split = blueprint.options.outcome_split
    assert split is not None
    return OutcomesMemory(split, new_outcomes(blueprint.problem.n_arms, blueprint.ages.size))


@kernel
def on_answer(state: State, slot: int, reward: float, age: float) -> None:
    """Even if it is late, it tells when its kind returns."""
    state.ring[slot].reward = reward


@kernel
def answer_weight(state: State, slot: int) -> float:
    weight = _weight(state, slot, state.ring[slot].answer_age)
    state.ring[slot].weight = weight
    return weight


@rare
def _weight(state: State, slot: int, age: float) -> float:
    """What the answer of a decision of this age counts for, where its kind is slower or quicker than the other."""
    decision, ages, cutoff = state.ring[slot], state.curves.ages, state.now[0].cutoff
    passed = 0
    while passed < ages.size and min(age, cutoff) >= ages[passed]:
        passed += 1
    kind = HIGH if decision.reward > state.outcomes.split else LOW
    weights = state.outcomes.counts[WEIGHT, kind, decision.arm]
    if age < cutoff and passed < ages.size:  # on the way to the next age, where it is weighed again
        return 0.5 * (weights[passed] + weights[passed + 1])
    return weights[passed]


@rare
def on_passage(state: State, slot: int, g: int, age: float) -> None:
    """An answered decision has grown older: its kind is counted, and it counts for more, or for less, than before."""
    decision, ages = state.ring[slot], state.curves.ages
    if decision.answer_age <= ages[g]:
        kind = HIGH if decision.reward > state.outcomes.split else LOW
        count_answer(state.outcomes.counts, ages, kind, decision.arm, g, decision.answer_age)
        if decision.weight > 0.0:
            weight = _weight(state, slot, age)
            context, arm = position(decision.context), position(decision.arm)
            add_to_tally(state.tally, context, arm, decision.reward, weight - decision.weight)
            enter_exactly(state, context, arm, decision.reward, -decision.weight)
            enter_exactly(state, context, arm, decision.reward, weight)
            on_reweighed(state, slot, arm, decision.reward, weight - decision.weight)
            decision.weight = weight


@rare
def on_recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed since its answer came are counted for its kind."""
    ages = state.curves.ages
    kind = HIGH if reward > state.outcomes.split else LOW
    for g in range(ages.size):
        if number < state.curves.cursor[g] and age <= ages[g]:
            count_answer(state.outcomes.counts, ages, kind, arm, g, age)


@kernel
def read_returns(state: State) -> None:
    """Weights, over the ages that count."""
    ages = state.curves.ages
    last = ages.size - 1
    while last > 0 and ages[last] > state.limits.learnable_age:
        last -= 1
    set_weights(state.outcomes.counts, last)


@kernel
def relearn(state: State) -> None:
    rebuild_rewards(state)


@kernel
def correction_weight(state: State, number: int, reward: float) -> float:
    """Ages that the decision has passed stay counted for the outcome as it was."""
    if number < state.now[0].first:
        return 1.0
    slot = number & (state.ring.size - 1)
    state.ring[slot].reward = reward
    return state.ring[slot].weight
