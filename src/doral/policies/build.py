"""From a problem and options to the engine's rules and first state."""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.estimators.survival import age_grid
from doral.policies.options import PolicyOptions
from doral.policies.state import (
    BONUS_CALIBRATED,
    BONUS_CORRECTED,
    BONUS_PRINTED,
    LEARN_RETURNED,
    LEARN_SCALED,
    LEARN_THINNED,
    PACE_COIN,
    PACE_GREEDY,
    PACE_LP,
    PRIOR_FIXED,
    PRIOR_NOISE,
    PRIOR_SHARED,
    RATE_PERIOD,
    RATE_PRINTED,
    RATE_REMAINING,
    TAU_ESTIMATED,
    TAU_ONE,
    TAU_ORACLE,
    Rules,
    State,
    new_state,
)
from doral.policies.stock import take_stock
from doral.problem import Problem
from doral.racing import INSTANT, KAPLAN_MEIER, MIN_AGE, RETURNED, RaceRules, width_constant

_CENSORING = {"returned": RETURNED, "min_age": MIN_AGE, "kaplan_meier": KAPLAN_MEIER, "instant": INSTANT}
_LEARNER = {"returned": LEARN_RETURNED, "scaled": LEARN_SCALED, "thinned": LEARN_THINNED}
_TAU = {"one": TAU_ONE, "estimated": TAU_ESTIMATED, "oracle": TAU_ORACLE}
_PRIOR = {"fixed": PRIOR_FIXED, "noise": PRIOR_NOISE, "shared": PRIOR_SHARED}
_BONUS = {"corrected": BONUS_CORRECTED, "printed": BONUS_PRINTED, "calibrated": BONUS_CALIBRATED}
_RATE = {"remaining": RATE_REMAINING, "printed": RATE_PRINTED, "period": RATE_PERIOD}
_PACING = {"greedy": PACE_GREEDY, "coin": PACE_COIN, "lp": PACE_LP}


def _longest_deadline(problem: Problem) -> float:
    return float(problem.deadlines.max())


def _cutoff(options: PolicyOptions, problem: Problem) -> float:
    if options.cutoff == "none":
        return math.inf
    if options.cutoff == "adaptive":
        silent = problem.feedback == "silent"  # nothing tells how much is still to come: wait for the deadline
        return _longest_deadline(problem) if silent else float(_ages(options, problem)[-1])
    if options.cutoff is not None:
        return options.cutoff
    if options.screening == "race":
        return math.nan
    if math.isinf(_longest_deadline(problem)):
        remedy = f"policy {options.name!r} needs one: without a race or a deadline nothing else says how long to wait"
        raise InvalidValue("cutoff", None, remedy)
    return _longest_deadline(problem)


def _ages(options: PolicyOptions, problem: Problem) -> Floats:
    """The grid of the return curves: it holds every deadline, so that tau is read where it is known exactly."""
    deadlines = problem.deadlines[np.isfinite(problem.deadlines)]
    last = float(deadlines.max()) if deadlines.size == problem.n_contexts else max(4.0, problem.horizon / 4)
    if deadlines.size < problem.n_contexts and isinstance(options.cutoff, float):
        last = options.cutoff
    ages = age_grid(last, options.curve_points)
    return np.unique(np.concatenate([ages, deadlines]))


def _learner(options: PolicyOptions, problem: Problem) -> int:
    if options.learner != "auto":
        return _LEARNER[options.learner]
    return LEARN_SCALED if problem.feedback == "silent" else LEARN_RETURNED


def build_rules(*, options: PolicyOptions, problem: Problem, seed: int, run: int) -> Rules:
    """The options in compiled form."""
    learner = _learner(options, problem)
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
        learner=learner,
        penalty=options.penalty,
        delta=options.delta,
        exploration=options.exploration,
        bonus=_BONUS[options.bonus],
        prior=_PRIOR[options.prior],
        counts_pending=options.pending == "expected",
        thompson=options.sampling == "thompson",
        return_optimism=options.return_optimism,
        until_end=options.until_end,
        half_life=math.inf if options.half_life is None else options.half_life,
        drops=options.dropping == "certified",
        adaptive_cutoff=options.cutoff == "adaptive" and problem.feedback == "explicit",
        cutoff_share=options.cutoff_share,
        splits_outcomes=options.outcome_split is not None and learner == LEARN_RETURNED,
        outcome_split=0.0 if options.outcome_split is None else options.outcome_split,
        outcome_limit=min(_longest_deadline(problem), float(_ages(options, problem)[-1])),
        silent=problem.feedback == "silent" and options.return_probability == "estimated",
        with_bias=options.learner == "thinned" if options.window_bias is None else options.window_bias,
        weighted_choice=options.choice == "weighted",
        tau=_TAU[options.return_probability],
        tau_by_cutoff=options.return_by == "cutoff",
        pacing=_PACING[options.pacing],
        rate=_RATE[options.rate],
        period_rounds=max(1, math.ceil(problem.horizon / options.periods)),
        learn_shares=problem.shares is None,
        has_deadline=bool(np.isfinite(problem.deadlines).all()),
        longest_deadline=_longest_deadline(problem),
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
    if features is None:
        features = problem.features
    state = new_state(
        rules=rules,
        features=np.zeros((problem.n_arms, 0)) if options.features == "none" else features,
        problem=problem,
        ages=_ages(options, problem),
        curves_by_context=options.curves_by == "context",
        oracle=oracle if rules.tau == TAU_ORACLE else None,
    )
    if not rules.races:
        state.now["must_read"] = 1
        take_stock(state, rules, False)  # given return probabilities hold from the first decision on
    return state
