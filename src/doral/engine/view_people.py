"""What the engine believes of people, for people: what features spoke for an arm, and what each is worth by arm.

A line is a sum over columns (`estimators/design.py`): what a feature contributes is the sum over its columns. A column
that is a product of two features is shared by both, half each. What comes back is weighed as decisions are: by the
chance of an answer in time, and by what a unit of reward is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.engine.pieces.people import CAME
from doral.engine.state import State
from doral.estimators.design import LINEAR, Design, set_columns
from doral.estimators.levels import NO_LEVEL, level_places
from doral.person import Levels
from doral.problem import Problem

_SIGMAS = 1.959963984540054  # of a 95% interval
MOST_LEVELS = 8  # of a category, that a report shows


class Effects(NamedTuple):
    """Of one arm for one person, in units of worth."""

    base: float  # what it is thought to bring somebody who is as people are on average
    effects: tuple[float, ...]  # what each feature adds to that, in the order of the problem


class FeatureEffect(NamedTuple):
    """What a feature is worth with an arm, in units of reward of those who answer; others are as on average."""

    arm: str
    feature: str
    change: str  # from what to what; of a category, the level
    effect: float
    low: float  # of an interval that holds it with 95%
    high: float


def explain(state: State, problem: Problem, traits: Sequence[float], context: int, arm: int) -> Effects:
    """What spoke for an arm, and what against it; below 0, for the arm that is thought best for this one."""
    people = state.people
    columns = columns_of(people.design, np.asarray(traits, dtype=np.float64))
    row = _row_of(state, problem, traits, context)
    worth = state.contexts["weight"][row] * state.tau[row, : problem.n_arms]
    if arm < 0:
        arm = int(np.argmax(worth * state.ridge.estimate[row, : problem.n_arms]))
    parts = float(worth[arm]) * people.line.mean[arm] * columns
    base, effects = float(parts[0]), _by_feature(people.design, parts, problem.n_traits)
    for category, place in zip(people.categories.tolist(), people.own_levels[row].tolist(), strict=True):
        if place != NO_LEVEL:
            added = float(worth[arm] * people.levels.mean[place, arm])
            if category == NO_LEVEL:  # of the context
                base += added
            else:
                effects[category] += added
    return Effects(base, tuple(effects.tolist()))


def _row_of(state: State, problem: Problem, traits: Sequence[float], context: int) -> int:
    """Of the one who came last, if it is this one; else of the average of the context."""
    people = state.people
    came, n_people = int(people.counts[CAME]), people.context.size - problem.n_contexts
    row = problem.n_contexts + (came - 1) % n_people
    is_this = came > 0 and people.context[row] == context
    return row if is_this and np.array_equal(people.traits[row], traits, equal_nan=True) else context


def _by_feature(design: Design, parts: Floats, n_traits: int) -> Floats:
    found = np.zeros(n_traits)
    for column in range(1, parts.size):
        places = [design.number[one] for one in (design.first[column], design.second[column]) if one >= 0]
        for place in places:
            found[place] += parts[column] / len(places)
    return found


def columns_of(design: Design, traits: Floats) -> Floats:
    """Of a person, whatever the engine is about to do with its own."""
    columns = np.zeros(design.first.size)
    set_columns(design._replace(z=np.zeros(design.z.size)), traits, columns)
    return columns


def view_shares(state: State, problem: Problem) -> list[float]:
    """Of the contexts, among arrivals; where people have features, among those who came lately."""
    demand = state.demand
    if not problem.person:
        shares: list[float] = (demand.weight / demand.total).tolist()
        return shares
    total = max(float(demand.weight.sum()), 1e-300)
    found: list[float] = (np.bincount(state.people.context, demand.weight, problem.n_contexts) / total).tolist()
    return found


def view_effects(state: State, problem: Problem, levels: Levels) -> tuple[FeatureEffect, ...]:
    """Of every number with every arm, one unit more; where values may bend, from the lower to the upper quarter of
    those who came lately. Of every category, the levels that differ most from the average. None where the problem knows
    no people, or too few have come.
    """
    if not problem.person or not state.people.design.is_known[0]:
        return ()
    return (*_effects_of_numbers(state, problem), *_effects_of_levels(state, problem, levels))


def _effects_of_levels(state: State, problem: Problem, levels: Levels) -> list[FeatureEffect]:
    people, found = state.people, list[FeatureEffect]()
    places = level_places(people.levels)
    for number, category in enumerate(people.categories.tolist()):
        if category == NO_LEVEL:
            continue
        feature = problem.person_names[category]
        names = levels.names(feature)
        known = [(code, place) for (of, code), place in places.items() if of == number and code < len(names)]
        known.sort(key=lambda one: -float(np.abs(people.levels.mean[one[1]]).max()))
        for code, place in known[:MOST_LEVELS]:
            for arm, name in enumerate(problem.arm_names):
                effect = float(people.levels.mean[place, arm])
                margin = _SIGMAS * math.sqrt(max(float(people.levels.variance[place, arm]), 0.0))
                found.append(FeatureEffect(name, feature, names[code], effect, effect - margin, effect + margin))
    return found


def _effects_of_numbers(state: State, problem: Problem) -> list[FeatureEffect]:
    people, found = state.people, list[FeatureEffect]()
    design, n_here = people.design, min(int(people.counts[CAME]), people.context.size - problem.n_contexts)
    here = people.traits[problem.n_contexts : problem.n_contexts + n_here]
    for place, number in enumerate(design.number.tolist()):
        low, high, change = _change(design, place, here[:, number])
        average = np.full(problem.n_traits, math.nan)
        one, other = average.copy(), average.copy()
        one[number], other[number] = low, high
        step = columns_of(design, other) - columns_of(design, one)
        for arm, name in enumerate(problem.arm_names):
            effect = float(people.line.mean[arm] @ step)
            margin = _SIGMAS * math.sqrt(max(float(step @ people.line.cov[arm] @ step), 0.0))
            found.append(
                FeatureEffect(name, problem.person_names[number], change, effect, effect - margin, effect + margin)
            )
    return found


def _change(design: Design, place: int, values: Floats) -> tuple[float, float, str]:
    """From what to what a number changes, and in words."""
    bends = any(design.knot[design.first == place] != LINEAR)
    known = values[~np.isnan(values)]
    if bends and known.size:
        low, high = np.quantile(known, (0.25, 0.75)).tolist()
        return low, high, f"from {low:g} to {high:g}"
    centre = float(design.centre[place])
    return centre, centre + 1.0, "one more"
