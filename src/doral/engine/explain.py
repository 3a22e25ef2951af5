"""What the engine believes, computed when it is asked for: arms, race, baseline, forecast, and effects of features.

A line is a sum over columns (`estimators/design.py`): what a feature contributes is the sum over its columns. A column
that is a product of two features is shared by both, half each. What returns is weighted as decisions are: by the return
probability, and by what a unit of reward is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.engine.forecast import rhythm_until
from doral.engine.people import CAME
from doral.engine.race import ACCEPTED, REJECTED
from doral.engine.state import RETURNED, State
from doral.estimators.design import LINEAR, Design, set_columns
from doral.estimators.levels import NO_LEVEL, level_places
from doral.estimators.ridge import COUNT, REWARD
from doral.estimators.survival import whole_arm_curve
from doral.person import Levels
from doral.problem import Problem

REACH = 1.6448536269514722  # standard errors to each side of 90%
_SIGMAS = 1.959963984540054  # of a 95% interval
MOST_LEVELS = 8  # of a category, that a report shows
_STANDINGS = {ACCEPTED: "accepted", REJECTED: "rejected"}


@dataclass(frozen=True, kw_only=True)
class ArmView:
    """What the engine believes about one arm."""

    standing: str  # racing, accepted or rejected
    delay_lower: float  # bounds on the mean delay, from the race; infinite without data
    delay_upper: float
    return_ages: tuple[float, ...]
    return_curve: tuple[float, ...]  # probability of an answer by each age
    values: tuple[float, ...]  # estimated reward by context
    norms: tuple[float, ...]  # uncertainty by context


def view_arm(state: State, arm: int) -> ArmView:
    """One arm, for a report."""
    curves, n_contexts = state.curves, state.contexts.size
    n_arms = curves.arm_at_risk.shape[0]
    at_risk = curves.at_risk.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    seen = at_risk > 0.0
    standing, lower, upper = "accepted", -math.inf, math.inf
    if state.rules.has_race:
        runner = state.race.arms[arm]
        standing = _STANDINGS.get(int(runner["standing"]), "racing")
        lower, upper = float(runner["lower"]), float(runner["upper"])
    return ArmView(
        standing=standing,
        delay_lower=lower,
        delay_upper=upper,
        return_ages=tuple(curves.ages[seen].tolist()),
        return_curve=tuple(whole_arm_curve(curves, arm)[seen].tolist()),
        values=tuple(state.ridge.estimate[:n_contexts, arm].tolist()),
        norms=tuple(state.ridge.norm[:n_contexts, arm].tolist()),
    )


def accepted(state: State, problem: Problem) -> tuple[str, ...]:
    """The arms that stage 1 let through; all where there was none."""
    if not state.rules.has_race:
        return tuple(name for arm, name in enumerate(problem.arm_names) if arm != problem.control)
    standings = state.race.arms["standing"].tolist()
    return tuple(name for name, one in zip(problem.arm_names, standings, strict=True) if one == ACCEPTED)


@dataclass(frozen=True, kw_only=True)
class BaselineView:
    """What doing nothing is thought to bring, and what arms have brought beyond it."""

    rewards: tuple[float, ...]  # of somebody who is skipped, by context, in units of reward
    answers: tuple[float, ...]  # on which that rests, by context; 0 where it is known
    uplift: float  # of all decisions that the answers so far stand for, in units of worth


def view_baseline(state: State, problem: Problem) -> BaselineView | None:
    """None where doing nothing earns nothing."""
    if problem.baseline is None:
        return None
    count, rewards = state.tally[COUNT].copy(), state.tally[REWARD].copy()
    control, n_contexts = problem.control, problem.n_contexts
    tau = state.tau[:n_contexts, : problem.n_arms]
    if control is None:
        nothing, answers = np.array(problem.baseline), np.zeros(n_contexts)
    else:
        nothing, answers = tau[:, control] * state.ridge.estimate[:n_contexts, control], count[:, control].copy()
        count[:, control], rewards[:, control] = 0.0, 0.0
    decisions = count
    if state.rules.learner == RETURNED:  # whoever does not answer has brought nothing, but would have without the arm
        decisions = np.divide(count, tau, out=np.zeros_like(count), where=tau > 0.0)
    uplift = problem.weights @ (rewards.sum(axis=1) - decisions.sum(axis=1) * nothing)
    return BaselineView(rewards=tuple(nothing.tolist()), answers=tuple(answers.tolist()), uplift=float(uplift))


@dataclass(frozen=True, kw_only=True)
class RaceView:
    """How stage 1 went; zeros where there was none."""

    rounds: int = 0
    spend: float = 0.0
    ended: int = 0  # the round in which it ended
    is_capped: bool = False


def view_race(state: State) -> RaceView:
    if not state.rules.has_race:
        return RaceView()
    progress = state.race.progress[0]
    return RaceView(
        rounds=int(progress["rounds"]),
        spend=float(progress["spend"]),
        ended=int(progress["ended"]),
        is_capped=bool(progress["is_capped"]),
    )


@dataclass(frozen=True, kw_only=True)
class Explored:
    """What trying out has done so far; nothing where there is none."""

    arrivals: int = 0
    """That got one of their options at random."""
    loss: float = 0.0
    """What that is thought to have cost: what the policy would have brought after its cost, less what came instead."""


def view_explored(state: State) -> Explored:
    if state.rules.explore == 0.0:
        return Explored()
    return Explored(arrivals=int(state.explored["arrivals"][0]), loss=float(state.explored["loss"][0]))


@dataclass(frozen=True, kw_only=True)
class ForecastView:
    """How many are still expected to arrive, and how sure that is."""

    expected: float
    low: float  # with `high`, 90% of what may come
    high: float
    pace: float  # arrivals per unit of the clock, on average over a week
    hours: tuple[float, ...]  # how many come in each hour of the day, relative to the mean; all 1: no rhythm was found
    weekdays: tuple[float, ...]  # the same from Monday on


def view_forecast(state: State) -> ForecastView | None:
    """As of the last event; None where the end is a number of arrivals.

    Errors of the level, of its drift until the end, and of what comes by chance are independent, and relative.
    """
    if not state.rules.has_forecast:
        return None
    now, forecast = state.now[0], state.forecast
    pace, clock, until = forecast.pace[0], float(state.now["clock"][0]), float(now["until"])
    left = max(0.0, until - clock)
    expected = float(pace["level"] * (rhythm_until(forecast, max(until, clock)) - rhythm_until(forecast, clock)))
    spans = left / float(pace["span"])
    by_chance = float(pace["noise"]) / spans if pace["noise"] > 0.0 and spans > 0.0 else 0.0
    variance = float(pace["error"]) + float(pace["drift"]) * spans / 3.0 + max(by_chance, 1.0 / max(1.0, expected))
    factor = math.exp(REACH * math.sqrt(variance))
    return ForecastView(
        expected=expected,
        low=expected / factor,
        high=expected * factor,
        pace=float(pace["level"]),
        hours=tuple(forecast.hour_factors.tolist()),
        weekdays=tuple(forecast.weekday_factors.tolist()),
    )


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


def explain_effects(state: State, problem: Problem, traits: Sequence[float], context: int, arm: int) -> Effects:
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
    with np.errstate(all="ignore"):
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
