"""From a problem and options to the engine's rules and first state."""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.policies.learning import read_curves
from doral.policies.options import PolicyOptions
from doral.policies.state import (
    LEARN_RETURNED,
    LEARN_SCALED,
    LEARN_THINNED,
    PACE_COIN,
    PACE_GREEDY,
    PACE_LP,
    TAU_ESTIMATED,
    TAU_ONE,
    TAU_ORACLE,
    Rules,
    State,
    new_state,
)
from doral.problem import Problem
from doral.racing import INSTANT, KAPLAN_MEIER, MIN_AGE, RETURNED, RaceRules, width_constant

_CENSORING = {"returned": RETURNED, "min_age": MIN_AGE, "kaplan_meier": KAPLAN_MEIER, "instant": INSTANT}
_LEARNER = {"returned": LEARN_RETURNED, "scaled": LEARN_SCALED, "thinned": LEARN_THINNED}
_TAU = {"one": TAU_ONE, "estimated": TAU_ESTIMATED, "oracle": TAU_ORACLE}
_PACING = {"greedy": PACE_GREEDY, "coin": PACE_COIN, "lp": PACE_LP}


def _cutoff(options: PolicyOptions, problem: Problem) -> float:
    if options.cutoff is not None:
        return options.cutoff
    if options.screening == "race":
        return math.nan
    if problem.deadline is None:
        remedy = f"policy {options.name!r} needs one: without a race or a deadline nothing else says how long to wait"
        raise InvalidValue("cutoff", None, remedy)
    return problem.deadline


def build_rules(*, options: PolicyOptions, problem: Problem, seed: int, run: int) -> Rules:
    """The options in compiled form."""
    return Rules(
        races=options.screening == "race",
        race=RaceRules(
            accept=options.accepted_of(problem.n_arms),
            delta=options.race_delta,
            tail_exponent=options.tail_exponent,
            width_constant=width_constant(problem.budget, options.tail_exponent),
            censoring=_CENSORING[options.censoring],
            min_answers=options.min_answers,
            printed_baskets=options.baskets == "printed",
            printed_acceptance=options.acceptance == "printed",
        ),
        race_budget_share=options.race_budget_share,
        race_trains=options.race_trains,
        cutoff=_cutoff(options, problem),
        cutoff_over_all=options.cutoff_over == "all",
        learner=_LEARNER[options.learner],
        penalty=options.penalty,
        delta=options.delta,
        exploration=options.exploration,
        printed_bonus=options.bonus == "printed",
        with_bias=options.learner == "thinned" if options.window_bias is None else options.window_bias,
        weighted_choice=options.choice == "weighted",
        tau=_TAU[options.return_probability],
        tau_by_cutoff=options.return_by == "cutoff",
        pacing=_PACING[options.pacing],
        printed_rate=options.rate == "printed",
        learn_shares=problem.shares is None,
        deadline=math.inf if problem.deadline is None else problem.deadline,
        seed=np.uint64(seed),
        run=np.uint64(run),
    )


def build_state(
    *,
    options: PolicyOptions,
    rules: Rules,
    problem: Problem,
    features: Floats | None = None,
    oracle: Floats | None = None,
) -> State:
    """The state before the first arrival; `oracle` (1 or J, A, ages) is the return probability where it is given."""
    if rules.tau == TAU_ORACLE and oracle is None:
        remedy = "needs the true delays, which only a simulation has; choose estimated or one"
        raise InvalidValue("return_probability", "oracle", remedy)
    state = new_state(
        rules=rules,
        features=problem.features if features is None else features,
        costs=problem.costs,
        shares=problem.shares,
        n_contexts=problem.n_contexts,
        budget=problem.budget,
        horizon=problem.horizon,
        curve_points=options.curve_points,
        oracle=oracle if rules.tau == TAU_ORACLE else None,
    )
    if not rules.races:
        read_curves(state, rules)  # given return probabilities hold from the first decision on
    return state
