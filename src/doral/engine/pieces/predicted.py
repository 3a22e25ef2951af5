"""Values that are given: whoever arrives brings what a model outside says that each arm will bring them.

Predictions travel as features of a person, one for each arm, so that whatever keeps features keeps them, too; the
engine learns nothing from a feature then. A prediction takes the place of what was learned, with no bonus: it stays
what it was when its person came. An arm without one (NaN, or an arm that came later) is valued as it is on average,
with the bonus that belongs to that. Return, costs, pacing and exploration are those of everybody else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral._arrays import Ints
from doral._kernel import kernel
from doral.engine.hooks import norm_row
from doral.engine.state import State
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

PREFIX = "predicted: "  # and the name of an arm: what the feature is called that holds a prediction
NO_COLUMN = -1
NEVER = np.iinfo(np.int64).max

# Of `counts`: decisions whose fate a model can learn from, and at how many of them the driver is asked for a new model.
KNOWN, ASK_AT = 0, 1


class PredictedMemory(NamedTuple):
    column: Ints  # (A,) where the prediction for an arm is among the features of a person, or NO_COLUMN
    counts: Ints  # (2,)
    by_silence: bool  # a decision is known when it has grown old, and not when it is answered


@dataclass(frozen=True, kw_only=True)
class PredictedOptions:
    """Where values come from."""

    values: Literal["learned", "given"] = "learned"


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Classes bring no features, and so no predictions."""
    return options.values == "given" and bool(problem.person)


def _check(options: PolicyOptions) -> None:
    if options.screening != "none":
        raise InvalidValue("values", options.values, "does not go with a race; choose screening='none'")
    if options.sampling != "optimism":
        raise InvalidValue("values", options.values, "takes what is given as it is; choose sampling='optimism'")


def memory(blueprint: Blueprint) -> PredictedMemory:
    options, problem = blueprint.options, blueprint.problem
    is_given = is_in(options, problem)
    if is_given:
        _check(options)
    places = {name: place for place, name in enumerate(problem.person_names)}
    column = [places.get(PREFIX + arm, NO_COLUMN) for arm in problem.arm_names]
    if is_given and all(one == NO_COLUMN for one in column):
        remedy = f"needs features that hold predictions, as in person=[{PREFIX + problem.arm_names[0]!r}, ...]"
        raise InvalidValue("values", "given", f"{remedy}; doral.external(model) makes them")
    return PredictedMemory(np.array(column), np.array([0, NEVER]), problem.feedback == "silent")


@kernel
def on_revalued(state: State, row: int) -> None:
    ridge, column, traits = state.ridge, state.predicted.column, state.people.traits[row]
    expected = norm_row(state, row)
    for a in range(column.size):
        if column[a] != NO_COLUMN and not math.isnan(traits[column[a]]):
            ridge.estimate[row, a] = traits[column[a]]
            ridge.norm_squared[row, a] = ridge.norm[row, a] = 0.0
            ridge.norm_squared[expected, a] = ridge.norm[expected, a] = 0.0


@kernel
def on_answer(state: State, slot: int, reward: float, age: float) -> None:
    if not state.predicted.by_silence and age <= state.limits.longest_deadline:
        state.predicted.counts[KNOWN] += 1


@kernel
def on_settle(state: State, slot: int) -> None:
    if state.predicted.by_silence:
        state.predicted.counts[KNOWN] += 1


@kernel
def is_record_full(state: State) -> bool:
    """A new model is due, which only the driver can make."""
    return state.predicted.counts[KNOWN] >= state.predicted.counts[ASK_AT]
