"""From options and a problem to a first state: sizes, rules, first values; and states that grow.

The table of fields is `state.State`; `sizes_of` gives its axes and flags, `rules_of` the branches of the program. From
these follow allocation, growth, the estimate of memory, and what a snapshot must look like.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral._arrays import (
    Floats,
    Misfit,
    Sizes,
    allocate,
    axis_fields,
    check_values,
    count_bytes,
    leaves,
    replace_leaves,
    sizes_of_shapes,
)
from doral._cached import cached_property
from doral.compiled import Block, Template
from doral.engine import state as s
from doral.engine.budget import decimal_rest
from doral.engine.exploration import FIRST_TRIES
from doral.engine.options import ALL, MAX_COLUMNS, PLUS, TIMES, PolicyOptions
from doral.engine.people import FIRST_FOR_KNOTS, FIRST_PEOPLE, NO_COLUMN
from doral.engine.race import (
    ACCEPTED,
    CENSOR_MIN_AGE,
    CENSORING,
    DELTA,
    TAIL_EXPONENT,
    start_race,
    width_constant,
)
from doral.engine.state import FIRST_CAPACITY, RESERVED, Confidence, Limits, RaceRules, Rules, State, is_racing
from doral.errors import InvalidValue, UnknownName
from doral.estimators.design import Design, new_design
from doral.estimators.levels import EMPTY, NO_LEVEL, grown_levels, level_sizes, pairs_of, start_levels
from doral.estimators.line import n_pairs, start_line
from doral.estimators.median_of_means import delay_sizes, with_double_room
from doral.estimators.outcomes import WEIGHT
from doral.estimators.ridge import ridge_sizes, set_features, start_ridge
from doral.estimators.shrinkage import start_prior
from doral.estimators.survival import ReturnCurves, age_grid
from doral.pacing import NO_ARM, edge_sizes, hull_sizes, keeps_shares, start_demand, start_hulls
from doral.problem import Problem, reserve_depths

MAX_SEED = 2**53  # what a float holds exactly: seeds travel through JSON
CURVE_POINTS = 16  # ages at which return curves are kept
DRAWS = 8  # posterior draws that are mixed for one arrival, so that the probability of what is done is known
QUICK_REFRESH = 1_000_000  # multiplications, about a millisecond: up to here a refresh is as frequent as it is wanted
GIVEN_FACTOR, OWN_FACTOR = 2.0, 10.0  # by which a guess of the pace may be wrong: the user's, and one from the budget
PREDICTION_PREFIX = "predicted: "  # and the name of an arm: the feature that holds a prediction
NEVER = np.iinfo(np.int64).max
MOST_POLICIES = 64  # whose first states are remembered
_WAIT_FOR_SILENCE = ("scaled", "early")  # learners that a decision teaches when it settles
_GIB = 2**30
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """A policy for a problem, and what follows from both."""

    options: PolicyOptions
    problem: Problem
    seed: int
    run: int = 0
    given_features: Floats | None = None
    """Those of the problem, unless a simulation draws them."""
    oracle: Floats | None = None
    """(1 or J, A, ages) the return probability, where it is given."""
    true_values: Floats | None = None
    """(phases, J, A) the expected worth of what returns within the deadline, where it is given."""

    day: float | None = None
    """How long a day is on the clock, where arrivals may follow the hour and the weekday."""
    time_of_week: float = 0.0
    """How long ago the week began (on a Monday at midnight) when the clock showed 0."""

    @cached_property
    def learner(self) -> str:
        """The learner that the problem needs, where that is left open."""
        if self.options.learner != "auto":
            return self.options.learner
        if self.problem.feedback != "silent":
            return "returned"
        return "early" if self.options.return_probability == "estimated" else "scaled"

    @cached_property
    def features(self) -> Floats:
        """(A, k) of the arms."""
        if self.options.features == "none":
            return np.zeros((self.problem.n_arms, 0))
        features = self.problem.features if self.given_features is None else self.given_features
        if self.options.prior == "cells":
            return _with_level(features)
        return features if features.shape[1] > 0 else np.eye(self.problem.n_arms)  # one for each arm

    @cached_property
    def arm_design(self) -> Floats:
        """(A, q) of lines: 1 and the features of arms, centred and scaled; those that are alike for all are zeros."""
        features = self.problem.features if self.given_features is None else self.given_features
        if self.options.features == "none":
            features = features[:, :0]
        scale = features.std(axis=0)
        centred = np.divide(features - features.mean(axis=0), scale, out=np.zeros(features.shape), where=scale > 0.0)
        return np.column_stack([np.ones(len(features)), centred])

    @property
    def n_rows(self) -> int:
        """Rows of values: one for each context, and one for each recent arrival with features."""
        return self.problem.n_contexts + (self.options.reservoir if self.problem.person else 0)

    @cached_property
    def context_of_row(self) -> NDArray[np.int64]:
        """Rows of contexts come first; those of arrivals, of which none came yet, begin like the first of them."""
        return np.concatenate([np.arange(self.problem.n_contexts), np.zeros(self.n_rows, dtype=np.int64)])[
            : self.n_rows
        ]

    @cached_property
    def costs_by_row(self) -> Floats:
        """(rows, A), or (1, A) where no cost differs by context."""
        costs = self.problem.costs_by_context
        return costs if len(costs) == 1 else costs[self.context_of_row]

    @cached_property
    def has_learned_costs(self) -> bool:
        """Whether plans go by what is paid."""
        options = self.options
        is_learned = options.cost == "learned" and options.return_probability == "estimated"
        return is_learned and self.problem.paid == "on_answer"

    @cached_property
    def design(self) -> Design:
        """Columns that the features of a person make; with given values, features speak through predictions."""
        if not self.problem.person or self.options.values == "given":
            return new_design(numbers=[], splines=False, products=[])
        return new_design(
            numbers=numbers_of(self.problem),
            splines=self.options.basis == "splines",
            products=_products_of(self.options, self.problem),
        )

    @property
    def n_columns(self) -> int:
        """Columns of the lines; 0 without features of people."""
        return int(self.design.first.size) if self.problem.person else 0

    @cached_property
    def categories(self) -> list[int]:
        """Where categories are among the features of a person; NO_LEVEL for the context, if there are several."""
        if not self.problem.person:
            return []
        learned = list(self.problem.category_columns) if self.options.values == "learned" else []
        return ([NO_LEVEL] if self.problem.n_contexts > 1 else []) + learned

    @cached_property
    def longest_deadline(self) -> float:
        """Infinite if any context has none."""
        return longest(self.problem.deadlines)

    @cached_property
    def ages(self) -> Floats:
        """The grid of the return curves: it holds every deadline, so that tau is read where it is known exactly."""
        problem, cutoff = self.problem, self.options.cutoff
        deadlines = problem.deadlines[np.isfinite(problem.deadlines)]
        length = problem.horizon if problem.until is None else problem.until
        last = float(deadlines.max()) if deadlines.size == problem.n_contexts else max(4.0, length / 4)
        if deadlines.size < problem.n_contexts and isinstance(cutoff, float):
            last = cutoff
        return np.unique(np.concatenate([age_grid(last, CURVE_POINTS), deadlines]))

    @cached_property
    def cutoff(self) -> float:
        """m to start with; NaN: the race finds it."""
        options = self.options
        if options.cutoff == "none":
            return math.inf
        if options.cutoff == "adaptive":
            silent = self.problem.feedback == "silent"  # nothing tells how much is still to come: wait for the deadline
            return self.longest_deadline if silent else float(self.ages[-1])
        if isinstance(options.cutoff, float):
            return options.cutoff
        if options.screening == "race":
            return math.nan
        # Where no deadline says how long to wait, every answer counts, whenever it comes.
        if math.isinf(self.longest_deadline) and self.learner in _WAIT_FOR_SILENCE:
            remedy = (
                f"policy {options.name!r} takes silence for a no, and without a deadline nothing says after how long; "
                "give the problem a deadline or the policy a cutoff, or take doral-otf, which finds one itself"
            )
            raise InvalidValue("cutoff", None, remedy)
        return self.longest_deadline


def longest(deadlines: Floats) -> float:
    """Return the longest deadline; infinite if any context has none."""
    return float(deadlines.max()) if deadlines.size else math.inf


def _with_level(features: Floats) -> Floats:
    """Return features with one that is the same for all arms, unless there is one.

    What is not known of an arm is then estimated as elsewhere, and not as nothing. It is as large as all others
    together, so that it is learned as easily.
    """
    size = math.sqrt(float((features**2).sum(axis=1).mean())) if features.shape[1] > 0 else 1.0
    if size == 0.0 or (features.shape[1] > 0 and ((features == features[0]).all(axis=0) & (features[0] != 0.0)).any()):
        return features
    return np.column_stack([np.full(len(features), size), features])


def numbers_of(problem: Problem) -> list[int]:
    """Return where the numbers are among the features of a person."""
    return [i for i in range(problem.n_traits) if i not in problem.category_columns]


def _products_of(options: PolicyOptions, problem: Problem) -> list[tuple[int, int]]:
    numbers = [problem.person_names[i] for i in numbers_of(problem)]
    assert isinstance(options.products, str)
    if options.products == ALL:
        return list(itertools.combinations(range(len(numbers)), 2))
    pairs = [term.split(TIMES) for term in options.products.split(PLUS)] if options.products else []
    for name in itertools.chain.from_iterable(pairs):
        if name not in numbers:
            raise UnknownName("number in products", name, numbers)
    return [(numbers.index(one), numbers.index(two)) for one, two in pairs]


def check_problem(options: PolicyOptions, problem: Problem) -> None:
    """Refuse options that do not go together with the problem."""
    if not problem.person:
        if options.products:
            raise InvalidValue("products", options.products, "are of features of people: the problem names none")
        return
    if options.values == "given":
        if options.products or options.basis != "linear":
            raise InvalidValue("values", options.values, "leaves splines and products to the model that predicts")
        if options.screening != "none":
            raise InvalidValue("values", options.values, "does not go with a race; choose screening='none'")
        if options.sampling != "optimism":
            raise InvalidValue("values", options.values, "takes what is given as it is; choose sampling='optimism'")
    if options.learner in ("thinned", "scaled"):
        remedy = "knows classes alone; where people have features, choose learner='auto'"
        raise InvalidValue("learner", options.learner, remedy)
    if problem.feedback != "silent" or options.return_probability != "estimated" or options.sampling == "oracle":
        return
    if options.learner == "returned":
        raise InvalidValue("learner", options.learner, "does not see silence; choose learner='auto'")
    if options.prior == "fixed":
        remedy = "counts no trials where people have features and feedback is silent; choose prior='cells'"
        raise InvalidValue("prior", options.prior, remedy)


# --- rules and sizes -------------------------------------------------------------------------------------------------


def rules_of(blueprint: Blueprint) -> Rules:
    """Return the branches of the program that this policy takes on this problem."""
    options, problem = blueprint.options, blueprint.problem
    people, estimated = bool(problem.person), options.return_probability == "estimated"
    bonus = s.PRINTED if "bonus" in options.printed else _BONUSES[options.bonus]
    thompson = options.sampling == "thompson"
    has_race = options.screening == "race"
    in_noise = bonus in (s.CALIBRATED, s.TO_COME)
    return Rules(
        learner=_LEARNERS[blueprint.learner],
        prior=s.LINES if people and options.prior != "fixed" else _PRIORS[options.prior],
        returns=_returns_of(blueprint),
        bonus=bonus,
        sampling=_SAMPLINGS[options.sampling],
        pacing=_PACINGS[options.pacing],
        rate=_rate_of(options),
        has_race=has_race,
        has_curves=estimated or (has_race and options.censoring == "kaplan_meier"),
        has_people=people,
        has_pending=options.pending == "expected",
        has_learned_costs=blueprint.has_learned_costs,
        has_outcomes=options.outcome_split is not None and blueprint.learner == "returned",
        has_forecast=problem.until is not None,
        has_odds=thompson or options.explore > 0.0,
        has_start=options.start_share > 0.0 and not has_race,
        has_doubt=in_noise and options.sampling == "optimism" and options.pacing == "lp",
        has_window=_has_window(options, problem),
        has_baseline=problem.baseline is not None,
        has_predictions=people and options.values == "given",
        has_shift=people and estimated and problem.feedback == "explicit",
        has_cost_shift=people and blueprint.has_learned_costs,
        forgets=options.half_life is not None,
        stretches=bonus == s.TO_COME,
        is_unweighted="choice" in options.printed,
        control=NO_ARM if problem.control is None else problem.control,
        draws=DRAWS if thompson else 0,
        period_rounds=max(1, math.ceil(problem.horizon / options.periods)),
        periods=options.periods,
        half_life=1.0 if options.half_life is None else options.half_life,
        outcome_split=0.0 if options.outcome_split is None else options.outcome_split,
        explore=options.explore,
        start_share=options.start_share,
        start_tries=float(options.start_tries),
        certainty_of_credit=-math.log1p(-problem.reserve)
        if blueprint.has_learned_costs and problem.reserve < 1.0
        else 0.0,
        dearest=float(problem.costs.max()),
        cutoff_follows=options.cutoff == "adaptive",
        look_rounds=_look_rounds(problem.n_arms, max(1, blueprint.n_columns), blueprint.n_rows),
        first_people=min(
            FIRST_FOR_KNOTS if options.basis == "splines" else FIRST_PEOPLE, blueprint.n_rows - problem.n_contexts
        ),
        shares_lines=options.prior in ("shared", "cells"),
        predicts_by_silence=problem.feedback == "silent",
    )


_LEARNERS = {"returned": s.RETURNED, "thinned": s.THINNED, "scaled": s.SCALED, "early": s.EARLY}
_PRIORS = {"fixed": s.FIXED, "noise": s.NOISE_ONLY, "shared": s.SHARED, "cells": s.CELLS}
_BONUSES = {"corrected": s.CORRECTED, "calibrated": s.CALIBRATED, "to_come": s.TO_COME}
_SAMPLINGS = {"optimism": s.OPTIMISM, "thompson": s.THOMPSON, "oracle": s.TRUE_VALUES}
_PACINGS = {"lp": s.LP, "greedy": s.GREEDY, "coin": s.COIN}


def _returns_of(blueprint: Blueprint) -> int:
    """Return how tau is found: where feedback is silent, an answer of 0 cannot be seen, and there is no curve."""
    if blueprint.options.return_probability != "estimated":
        return s.ONE if blueprint.options.return_probability == "one" else s.GIVEN
    if blueprint.learner == "early":
        return s.BY_DEADLINE
    return s.FACTORS if blueprint.problem.feedback == "silent" else s.ESTIMATED


def _rate_of(options: PolicyOptions) -> int:
    if "rate" in options.printed:
        return s.PRINTED_COIN if options.pacing == "coin" else s.PRINTED_RATE
    return s.PERIOD if options.rate == "period" else s.REMAINING


def _has_window(options: PolicyOptions, problem: Problem) -> bool:
    """Return whether the bonus has its bias term: as printed, or with the thinned learner where there is a deadline.

    Where nothing says how long to wait every pull is inside the window, and the term would drown what is learned.
    """
    if "window" in options.printed:
        return True
    waits_for_deadline = options.cutoff is None and options.screening == "none"
    return options.learner == "thinned" and not (waits_for_deadline and math.isinf(longest(problem.deadlines)))


def _look_rounds(n_arms: int, p: int, n_rows: int) -> int:
    """Return how many rounds cost as much as valuing all rows anew, both counted in multiplications."""
    look = 10 * n_arms * p**3 + n_rows * n_arms * p * (p + 1)
    one_round = 500 + n_arms * p * (p + 3)
    return max(1, look // one_round)


def refresh_rounds(*, n_contexts: int, n_arms: int, n_features: int, n_ages: int, n_columns: int = 0) -> int:
    """Return how many rounds take eight times as long as a refresh, counted in multiplications; 0 where it is quick.

    A refresh inverts a few matrices per context and reads every return curve; a round updates one inverse and looks at
    every arm once. Where people have features, it inverts a few matrices per arm, and one for what arms share.
    """
    refresh = n_contexts * (4 * n_features**3 + 2 * n_arms * n_features**2 + n_arms * n_ages)
    one_round = 500 + 4 * n_features**2 + 4 * n_features * n_arms + 4 * n_arms
    if n_columns > 0:
        refresh += 8 * n_arms * n_columns**3 + 2 * (n_columns * (1 + n_features)) ** 3
        one_round += 10 * n_arms * n_columns**2
    return 0 if refresh <= QUICK_REFRESH else 8 * refresh // one_round


def limits_of(blueprint: Blueprint, rules: Rules) -> Limits:
    """Return ages and sizes that never change."""
    options, problem = blueprint.options, blueprint.problem
    until_end = options.until_end and problem.counted == "by_end"
    longest_deadline = blueprint.longest_deadline
    return Limits(
        longest_deadline=longest_deadline,
        learnable_age=min(longest_deadline, float(blueprint.ages[-1])) if rules.has_outcomes else math.inf,
        own_deadlines=rules.learner == s.EARLY and not problem.person,
        learns_shares=problem.shares is None and not problem.person,
        by_cutoff="returns" in options.printed,
        until_end=until_end,
        reads=options.return_probability == "estimated" or until_end or rules.forgets,
        return_at_least=problem.return_at_least,
        least_reward=problem.reward_range[0],
        most_reward=problem.reward_range[1],
        refresh_rounds=refresh_rounds(
            n_contexts=problem.n_contexts,
            n_arms=problem.n_arms,
            n_features=blueprint.features.shape[1],
            n_ages=blueprint.ages.size,
            n_columns=blueprint.n_columns,
        ),
    )


def sizes_of(blueprint: Blueprint, rules: Rules) -> Sizes:
    """Return the axes of the table of fields, and the flags by which fields are present."""
    options, problem, n_rows = blueprint.options, blueprint.problem, blueprint.n_rows
    n_arms, p, n_ages = problem.n_arms, max(1, blueprint.n_columns), blueprint.ages.size
    hulls = hull_sizes(blueprint.costs_by_row, n_rows, rules.has_learned_costs)
    oracle, truth = blueprint.oracle, blueprint.true_values
    return {
        **ridge_sizes(
            n_rows=n_rows,
            n_arms=n_arms,
            n_features=0 if problem.person else blueprint.features.shape[1],  # people have lines
            copies=2 if rules.has_pending else 1,
            is_drawn_from=rules.sampling == s.THOMPSON,
            deviates=options.prior == "cells",
        ),
        **level_sizes(len(blueprint.categories)),
        **delay_sizes(capacity=FIRST_CAPACITY, delta=DELTA, with_open=CENSORING[options.censoring] == CENSOR_MIN_AGE),
        **hulls,
        **edge_sizes(n_rows, hulls["H"]),
        "J": problem.n_contexts,
        "G": n_ages,
        "D": len(problem.reserves) + 1,
        "K": np.unique(problem.deadlines[np.isfinite(problem.deadlines)]).size,
        "Rc": len(blueprint.costs_by_row),
        "groups": n_arms * (problem.n_contexts if options.curves_by == "context" else 1),
        "m": problem.n_traits,
        "n": blueprint.design.number.size,
        "p": p,
        "q": blueprint.arm_design.shape[1] if problem.person else 1,
        "pairs": n_pairs(p),
        "ring": FIRST_CAPACITY,
        "phases": 0 if truth is None else truth.shape[0],
        "truths": 0 if truth is None else truth.shape[1],
        "curves_given": 0 if oracle is None else oracle.shape[0],
        "ages_given": 0 if oracle is None else oracle.shape[2],
        "shares": keeps_shares(n_rows, is_learned=problem.shares is None or bool(problem.person)),
        "prior": rules.prior != s.FIXED,
        "race": rules.has_race,
        "costs": rules.has_learned_costs,
        "early": rules.learner == s.EARLY,
        "people": rules.has_people,
        "aged": rules.has_people and rules.learner == s.EARLY,
        "row_costs": rules.has_people and (len(blueprint.costs_by_row) > 1 or rules.has_learned_costs),
        "window": rules.has_window,
        "corrected": rules.bonus == s.CORRECTED,
        "ahead": rules.stretches,
        "doubt": rules.has_doubt,
        "odds": rules.has_odds,
        "outcomes": rules.has_outcomes,
        "given": rules.returns == s.GIVEN,
    }


def first_sizes(blueprint: Blueprint) -> Sizes:
    """Return the sizes of a first state of this policy for this problem."""
    return sizes_of(blueprint, rules_of(blueprint))


# --- memory ----------------------------------------------------------------------------------------------------------


def state_bytes(blueprint: Blueprint) -> int:
    """Return what the arrays of a first state take, in bytes; nothing is allocated."""
    return count_bytes(State, first_sizes(blueprint))


def machine_bytes() -> int | None:
    """Return the memory of this machine, or of the container that it is; None where that is not known."""
    return min(_memory_limits(), default=None)


def _memory_limits() -> Iterator[int]:
    with suppress(AttributeError, OSError, ValueError):  # there is no such question on Windows
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            yield int(Path(path).read_text())


def check_size(*, policy: PolicyOptions, problem: Problem) -> None:
    """Refuse a problem that is too large for this policy on this machine; nothing is allocated."""
    _check_room(Blueprint(options=policy, problem=problem, seed=0))


def check_fit(*, policy: PolicyOptions, problem: Problem, seed: int) -> None:
    """Refuse options that do not fit the problem, before anything is made of them."""
    first_state(Blueprint(options=policy, problem=problem, seed=seed))


def _check_room(blueprint: Blueprint) -> None:
    needed, there = state_bytes(blueprint), machine_bytes()
    if there is None or needed <= there:
        return
    problem = blueprint.problem
    what, least = "contexts x arms x features", "group contexts or arms, or give fewer features"
    sizes = f"{problem.n_contexts:,} x {problem.n_arms:,} x {blueprint.features.shape[1]:,}"
    if problem.person:
        what, least = "arms x columns of a person", "give fewer arms, leave out splines or products"
        sizes = f"{problem.n_arms:,} x {blueprint.n_columns:,}"
    remedy = (
        f"policy {blueprint.options.name!r} needs {needed / _GIB:,.1f} GiB of memory for this, and the machine has "
        f"{there / _GIB:,.1f} GiB; {least}"
    )
    raise InvalidValue(what, sizes, remedy)


# --- the first state -------------------------------------------------------------------------------------------------


def first_state(blueprint: Blueprint) -> State:
    """Return the state before the first arrival, still to be completed by the program (`events.prepare`)."""
    options, problem = blueprint.options, blueprint.problem
    check_problem(options, problem)
    _check_given(blueprint)
    if blueprint.n_columns > MAX_COLUMNS:
        remedy = f"must be at most {MAX_COLUMNS:,}; leave out splines or products"
        raise InvalidValue("columns of a person", blueprint.n_columns, remedy)
    _check_room(blueprint)
    rules = rules_of(blueprint)
    sizes = sizes_of(blueprint, rules)
    state: State = allocate(
        State,
        sizes,
        rules=rules,
        limits=limits_of(blueprint, rules),
        confidence=Confidence(
            exploration=options.exploration,
            penalty=options.penalty,
            delta=options.delta,
            certainty=2.0 * math.log(1.0 / options.delta),
            printed_certainty=2.0 * math.log(1.0 / options.penalty),
        ),
        coin=coin_of(blueprint),
        curves=allocate(ReturnCurves, sizes, pools=options.curves_by == "context"),
        race=allocate(s.Race, sizes, rules=_race_rules(blueprint)),
        forecast=allocate(s.Forecast, sizes, **_forecast_numbers(blueprint)),
        truth=allocate(s.TrueValues, sizes, phase_rounds=_phase_rounds(blueprint)),
        **({} if blueprint.oracle is None or rules.returns != s.GIVEN else {"known_returns": blueprint.oracle}),
    )
    _start_common(state, blueprint)
    _start_parts(state, blueprint)
    if rules.has_people:
        _start_people(state, blueprint)
    return state


def coin_of(blueprint: Blueprint) -> s.Coin:
    """Return the key of the policy's own draws."""
    return s.Coin(np.uint64(blueprint.seed), np.uint64(blueprint.run))


def _check_given(blueprint: Blueprint) -> None:
    """Refuse what only a simulation has."""
    if blueprint.options.return_probability == "oracle" and blueprint.oracle is None:
        remedy = "needs the true delays, which only a simulation has; choose estimated or one"
        raise InvalidValue("return_probability", "oracle", remedy)
    if blueprint.options.sampling == "oracle" and blueprint.true_values is None:
        remedy = "needs the true values, which only a simulation has; choose optimism or thompson"
        raise InvalidValue("sampling", "oracle", remedy)
    n_contexts, n_arms = blueprint.problem.n_contexts, blueprint.problem.n_arms
    given = blueprint.oracle
    if given is not None and (given.ndim != 3 or given.shape[0] not in (1, n_contexts) or given.shape[1] != n_arms):
        remedy = f"must be (1 or {n_contexts} contexts, {n_arms} arms, ages)"
        raise InvalidValue("shape of oracle", given.shape, remedy)


def _race_rules(blueprint: Blueprint) -> RaceRules:
    options, problem = blueprint.options, blueprint.problem
    has_race = options.screening == "race"
    return RaceRules(
        accept=options.accepted_of(_n_racing(problem)) if has_race else 0,
        delta=DELTA,
        tail_exponent=TAIL_EXPONENT,
        width_constant=width_constant(problem.budget),
        censoring=CENSORING[options.censoring],
        min_answers=options.min_answers,
        printed_baskets="baskets" in options.printed,
        printed_acceptance="acceptance" in options.printed,
        budget_share=options.race_budget_share,
        cutoff=blueprint.cutoff,
        cutoff_over_all="cutoff" in options.printed,
        has_deadline=bool(np.isfinite(problem.deadlines).all()),
    )


def _n_racing(problem: Problem) -> int:
    """Return how many arms race: the control does not."""
    return problem.n_arms if problem.control is None else problem.n_arms - 1


def _forecast_numbers(blueprint: Blueprint) -> dict[str, float]:
    problem = blueprint.problem
    length = 1.0 if problem.until is None else problem.until
    factor = OWN_FACTOR if problem.expected_arrivals is None else GIVEN_FACTOR
    return {
        "day": 0.0 if blueprint.day is None else float(blueprint.day),
        "time_of_week": float(blueprint.time_of_week),
        "guess": problem.expected_rounds / length,
        "guess_weight": 1.0 / math.log(factor) ** 2,  # a Gamma law with this shape is about so wide
    }


def _phase_rounds(blueprint: Blueprint) -> int:
    truth = blueprint.true_values
    return 1 if truth is None else math.ceil(blueprint.problem.expected_rounds / truth.shape[0])


def _start_common(state: State, blueprint: Blueprint) -> None:
    """Set the first values of what every policy has."""
    options, problem, rules = blueprint.options, blueprint.problem, state.rules
    n_arms, n_rows = problem.n_arms, blueprint.n_rows
    now = state.now
    now["horizon"], now["budget"], now["budget_left"] = problem.expected_rounds, problem.budget, problem.budget
    now["until"] = math.inf if problem.until is None else problem.until
    now["budget_rest"] = decimal_rest(problem.budget)
    now["racing"], now["must_read"] = rules.has_race, not rules.has_race  # what is given holds from the first decision
    now["cutoff"] = math.inf if rules.has_race else blueprint.cutoff
    now["calibrate_at"] = 1
    now["n_stale"] = 0 if problem.person else problem.n_contexts
    of_row = blueprint.context_of_row
    state.contexts["weight"], state.contexts["deadline"] = problem.weights[of_row], problem.deadlines[of_row]
    state.contexts["is_stale"] = not problem.person
    state.stale[:] = np.arange(n_rows)[::-1]
    is_learned = problem.shares is None or bool(problem.person)
    weights = np.ones(n_rows) if problem.shares is None or problem.person else problem.shares
    start_demand(
        state.demand, weights, float(n_rows) if is_learned else 1.0, reserve_depths(problem)[blueprint.context_of_row]
    )
    if problem.person:  # no arrival yet
        for expected in (state.demand.weight, state.demand.total, state.demand.share, state.demand.of_depth):
            expected[:] = 0.0
    state.tiers[RESERVED, 1:] = np.cumsum([share * problem.budget for _, share in reversed(problem.reserves)])
    start_ridge(state.ridge, np.zeros((n_arms, 0)) if problem.person else blueprint.features, options.penalty)
    state.tau_error[:] = 1.0 if options.return_probability == "estimated" else 0.0
    state.curves.ages[:] = blueprint.ages
    floor = 0.0 if rules.prior != s.FIXED else problem.return_at_least  # before noise is known, nothing is asked for
    start_hulls(state.hulls, blueprint.costs_by_row, floor)
    state.list_costs[:] = blueprint.costs_by_row
    state.cost_rest[:] = [[decimal_rest(cost) for cost in row] for row in blueprint.costs_by_row.tolist()]
    state.dearest[:] = n_arms - 1 - blueprint.costs_by_row[:, ::-1].argmax(axis=1)
    state.barrier[:, :n_arms] = -np.inf if rules.has_race else 0.0
    if problem.control is not None:
        state.barrier[:, problem.control] = -np.inf
    if problem.baseline is not None and not isinstance(problem.baseline, str):
        state.baseline[:] = problem.baseline
    start_prior(state.prior, options.penalty)


def _start_parts(state: State, blueprint: Blueprint) -> None:
    """Set the first values of parts that some policies have."""
    problem, rules = blueprint.problem, state.rules
    state.widths["pulls"] = math.nan
    if rules.has_outcomes:
        state.outcomes[WEIGHT] = 1.0
    if rules.has_race:
        start_race(state.race, _n_racing(problem), rules.control)
    state.start.enough[:] = max(FIRST_TRIES, rules.start_tries)
    pace = state.forecast.pace
    pace["span"] = (1.0 if problem.until is None else problem.until) / s.SPANS
    pace["level"] = state.forecast.guess
    if blueprint.true_values is not None and rules.sampling == s.TRUE_VALUES:
        state.truth.values[:] = blueprint.true_values
    if rules.has_learned_costs:
        deadlines = np.unique(problem.deadlines[np.isfinite(problem.deadlines)])
        state.costs.deadlines[:] = deadlines
        state.costs.deadline_of[:] = np.searchsorted(deadlines, problem.deadlines)
        last_age = np.searchsorted(blueprint.ages, problem.deadlines)
        state.costs.last_age[:] = np.minimum(last_age, blueprint.ages.size - 1)


def _start_people(state: State, blueprint: Blueprint) -> None:
    """Set the first values of lines, levels and rows."""
    people, problem, variance = state.people, blueprint.problem, 1.0 / blueprint.options.penalty
    for mine, theirs in zip(people.design, blueprint.design, strict=True):
        mine[...] = theirs
    start_line(people.line, blueprint.arm_design, blueprint.design.group, variance)
    start_levels(people.levels, variance)
    people.columns[:, 0] = 1.0
    people.context[:] = blueprint.context_of_row
    people.categories[:] = blueprint.categories
    if state.rules.has_predictions:
        places = {name: place for place, name in enumerate(problem.person_names)}
        column = [places.get(PREDICTION_PREFIX + arm, NO_COLUMN) for arm in problem.arm_names]
        if all(one == NO_COLUMN for one in column):
            remedy = (
                f"needs features that hold predictions, as in person=[{PREDICTION_PREFIX + problem.arm_names[0]!r}, "
                "...]; doral.external(model) makes them"
            )
            raise InvalidValue("values", "given", remedy)
        state.predictions.column[:] = column
        state.predictions.counts[:] = 0, NEVER


class FirstStates:
    """First states of many runs that have the problem in common, and given return probabilities: made once.

    Runs differ in their coins, and in their features and true values where these are drawn.
    """

    def __init__(self) -> None:
        self._templates: dict[PolicyOptions, Template[State]] = {}

    def block(self, blueprint: Blueprint) -> Block[State]:
        """Return what `first_state` makes of this blueprint, in a block."""
        block = self._template(blueprint).block()
        if blueprint.problem.person:
            block.tree.people.line.arms[:] = blueprint.arm_design
        else:
            set_features(block.tree.ridge, blueprint.features)
        if block.tree.rules.sampling == s.TRUE_VALUES and blueprint.true_values is not None:
            block.tree.truth.values[:] = blueprint.true_values
        block.replace(coin=coin_of(blueprint))
        return block

    def _template(self, blueprint: Blueprint) -> Template[State]:
        template = self._templates.get(blueprint.options)
        if template is None:
            shared = () if blueprint.oracle is None else (blueprint.oracle,)
            template = Template(first_state(blueprint), shared=shared)
            if len(self._templates) >= MOST_POLICIES:  # also when threads come at the same time: one more, or one less
                self._templates.clear()
            self._templates[blueprint.options] = template
        return template


# --- stored states ---------------------------------------------------------------------------------------------------

GROWING = ("ring", "delays", "L", "Lp")  # axes that double when they are full


def grown_sizes(blueprint: Blueprint, shapes: Mapping[str, tuple[int, ...]]) -> Sizes:
    """Return the sizes of a state with arrays of these shapes. Misfit unless it is one of this blueprint, grown."""
    first = first_sizes(blueprint)
    sizes = sizes_of_shapes(State, shapes, first, GROWING)
    for axis in GROWING:
        times, rest = divmod(sizes[axis], first[axis])
        if rest or times & (times - 1):
            raise Misfit(f"{axis} has grown from {first[axis]} to {sizes[axis]}, which is no doubling")
    return sizes


def check_state(blueprint: Blueprint, arrays: Mapping[str, Any]) -> None:
    """Raise Misfit unless these are the arrays of a state of this blueprint: compiled code checks no index."""
    shapes = {name: array.shape for name, array in arrays.items()}
    check_values(State, arrays, grown_sizes(blueprint, shapes))
    now, start, size = arrays["now"][0], arrays["hulls.edges.start"], arrays["hulls.edges.size"]
    cursor = arrays["curves.cursor"]
    if not 0 <= now["first"] <= now["settled"] <= now["next"] <= now["first"] + arrays["ring"].size:
        raise Misfit("now: the decisions in the ring are not in order")
    if not 0 <= cursor.min() <= cursor.max() <= now["next"]:
        raise Misfit("curves.cursor is beyond the last decision")
    if np.count_nonzero(arrays["contexts"]["is_stale"]) != now["n_stale"]:
        raise Misfit("stale does not list the contexts that are")
    if (start + size > arrays["hulls.edges.slope"].size).any():
        raise Misfit("hulls.edges.size has no room")
    if (arrays["race.arms"]["pulls"] < arrays["race.delays.held"][: arrays["race.arms"].size]).any():
        raise Misfit("race.delays.held is more than was pulled")
    if not arrays["forecast.pace"]["span"][0] > 0.0:  # time is divided by it
        raise Misfit("forecast.pace has no span of time")
    if blueprint.problem.person:
        _check_people(blueprint, arrays)


def _check_people(blueprint: Blueprint, arrays: Mapping[str, Any]) -> None:
    """Raise Misfit unless tables of levels can be searched, and hold levels and arms that there are."""
    if arrays["people.counts"].min() < 0:
        raise Misfit("people.counts is below 0")
    for name in ("people.levels.keys", "people.levels.pair_keys"):
        if not (arrays[name] == EMPTY).any():
            raise Misfit(f"{name} has no free place")
    n_levels, n_arms = arrays["people.levels.n"][0], blueprint.problem.n_arms
    for one, other, arm in pairs_of(arrays["people.levels.pair_keys"]):
        if not (0 <= one < n_levels and 0 <= other < n_levels and 0 <= arm < n_arms):
            raise Misfit("people.levels.pair_keys names a level or an arm that does not exist")


# --- states that grow ------------------------------------------------------------------------------------------------


def grown(state: State) -> State:
    """Return the same state with twice the room wherever it is full: kernels never allocate, their caller does."""
    now, capacity = state.now[0], state.ring.size
    if now["next"] - now["first"] >= capacity:
        sequence = np.arange(now["first"], now["next"])
        arrays: dict[str, Any] = {}
        for name, array, fill in axis_fields(state, "ring"):
            if array.shape[0]:
                more = array.shape[0] - capacity
                larger = np.zeros((2 * capacity + more, *array.shape[1:]), dtype=array.dtype)
                if fill:
                    larger[...] = fill
                larger[sequence & (2 * capacity - 1)] = array[sequence & (capacity - 1)]
                arrays[name] = larger
        state = replace_leaves(state, arrays)
    race = state.race
    if state.rules.has_race and race.arms["pulls"].max() >= race.delays.sums.shape[1] - 1:
        state = state._replace(race=race._replace(delays=with_double_room(race.delays)))
    if state.people.categories.size > 0:
        state = state._replace(people=state.people._replace(levels=grown_levels(state.people.levels)))
    return state


def mark_every_row_stale(state: State) -> None:
    """Have all hulls rebuilt, from Python."""
    state.contexts["is_stale"] = 1
    state.stale[:] = np.arange(state.stale.size)[::-1]
    state.now["n_stale"] = state.stale.size


def widened(state: State, before: State, after: State) -> State:
    """Return the state with one more arm, about which nothing is known; the program has to `recompute` it.

    `before` and `after` are first states without and with the arm; an axis on which they differ has one entry per arm.
    What is known of the other arms stays. A new arm joins a race that still runs; after it, it is accepted at once.
    """
    arrays: dict[str, Any] = {}
    rows = zip(leaves(state), leaves(before), leaves(after), strict=True)
    for (name, now), (_, narrow), (_, wide) in rows:
        if name.startswith("hulls.") and name != "hulls.floor":
            arrays[name] = wide  # derived: built anew from the values below
        elif name in ("curves.at_risk", "curves.returned"):  # rows of contexts by arms, in one axis
            n_rows = narrow.shape[0] // (after.allowed.size - 1)
            split = now.reshape(n_rows, -1, now.shape[1])
            arrays[name] = _wider(split, narrow.reshape(split.shape), wide.reshape(n_rows, -1, now.shape[1]))
            arrays[name] = arrays[name].reshape(-1, now.shape[1])
        else:
            arrays[name] = _wider(now, narrow, wide)
    arrays["ridge.features"], arrays["ridge.features_by_row"] = after.ridge.features, after.ridge.features_by_row
    arrays["ridge.reach"] = after.ridge.reach
    if after.rules.has_people:
        arrays["people.line.arms"] = after.people.line.arms
    arrays["dearest"] = after.dearest  # of all arms: the budget must be able to pay for the new one, too
    wider: State = replace_leaves(state, arrays)
    wider = wider._replace(rules=wider.rules._replace(dearest=after.rules.dearest))
    new = wider.allowed.size - 1
    wider.barrier[:, new] = -np.inf if is_racing(wider) else 0.0
    if not is_racing(wider) and wider.rules.has_race:
        wider.race.arms["standing"][new] = ACCEPTED
    if wider.rules.has_start:
        wider.start.is_open[0] = 1.0
    mark_every_row_stale(wider)
    return wider


def _wider(now: Any, narrow: Any, wide: Any) -> Any:
    """Return what is there now, in the shape of `wide` on every axis on which that differs from `narrow`."""
    by_arm = [n != w for n, w in zip(narrow.shape, wide.shape, strict=True)]
    if not any(by_arm):
        return now
    shape = tuple(w if differs else n for n, w, differs in zip(now.shape, wide.shape, by_arm, strict=True))
    larger = np.zeros(shape, dtype=now.dtype)
    shared = tuple(slice(min(a, b)) for a, b in zip(shape, wide.shape, strict=True))
    larger[shared] = wide[shared]
    larger[tuple(slice(n) for n in now.shape)] = now
    return larger
