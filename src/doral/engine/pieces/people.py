"""Arrivals that are people: everybody who comes has features, and is worth what the lines of the arms say of them.

There are no classes to pace over. Those who came lately stand for those who will: each has a row of its own in all that
is kept by row (values, return, hull), LP_m is solved over these rows exactly as over contexts, and its price is that of
the stream as it is now. Rows of contexts come first and stand for the average of each: nobody is expected in them.
Whoever arrives takes the row of the one who came longest ago. Lines move slowly: they are looked at when a 32nd more
have come, or as soon as rounds have paid for it, and then everybody is valued by them.

Lines (estimators/line.py) take the place of the ridge: its rows hold what the lines say of those who are in them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral._kernel import kernel, position, rare
from doral.engine.hooks import (
    correction_weight,
    kept,
    noise_variance,
    norm_row,
    on_lines,
    on_revalued,
    on_terms,
    remembered,
    set_tau,
)
from doral.engine.pieces import costs, learn
from doral.engine.state import FIRST_CAPACITY, GUEST, State, mark_stale
from doral.errors import InvalidValue, UnknownName
from doral.estimators.design import Design, learn_design, new_design, set_columns
from doral.estimators.levels import (
    NO_LEVEL,
    LevelEffects,
    are_full,
    fade_levels,
    grown_levels,
    learn_levels,
    level_kin,
    level_mean,
    level_variance,
    new_level_effects,
    set_lines,
    set_own_levels,
)
from doral.estimators.line import Line, lay_out, learn_line, new_line, value_by_lines
from doral.estimators.ridge import padded
from doral.pacing import reweigh, sort_costs

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.estimators.ridge import Ridge
    from doral.problem import Problem

FIRST_PEOPLE = 32  # by whom numbers are centred and scaled
FIRST_FOR_KNOTS = 128
LOOKS = 32  # everybody is valued anew when this part more have come, or as soon as rounds have paid for it
MAX_RESERVOIR = 100_000
MAX_COLUMNS = 2_000
ALL, TIMES, PLUS = "all", "*", "+"

# Of `counts`: how many came, after how many everybody is valued anew, and the first decision by which columns were
# known; rounds and decisions at the last look.
CAME, NEXT_LOOK, KNOWN_FROM, ROUND_THEN, DECISIONS_THEN = 0, 1, 2, 3, 4


class PeopleMemory(NamedTuple):
    """For m features of a person, p columns and R rows."""

    line: Line
    design: Design
    traits: Floats  # (R, m) of the one in a row
    columns: Floats  # (R, p)
    context: Ints  # (R,)
    who: Ints  # (R,) in simulation, the number of the one in a row
    ring_columns: Floats  # (capacity + 1, p) of those who were decided for, in step with the ring; and of the GUEST
    counts: Ints  # (5,)
    look_rounds: int  # that take as long as a look at everybody
    first_people: int  # by whom numbers are centred and scaled
    shares: bool  # whether arms share what they have in common
    by_age: Floats  # (A, 1 + ages, p, p) decisions made and past each age, where silence counts as it grows old
    sorted: Floats  # (R,) scratch
    levels: LevelEffects  # of the context, if there are several, and of categories
    categories: Ints  # (C,) where they are among the features of a person; NO_LEVEL for the context
    own_levels: Ints  # (R, C) of the one in a row
    ring_levels: Ints  # (capacity + 1, C) as `ring_columns`
    narrowed: Floats  # (A+,) scratch
    kin: Floats  # (R,) for which share of all who come counts what is learned from the one in a row
    tau: Floats  # (3, J, A+) of contexts at the last look, its error, and the logarithm of what does not return
    costs: Floats  # (J, A) likewise, where plans have costs by row; else (0, A)


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """How people are valued, where a problem says what is known of them."""

    reservoir: int = 512
    basis: Literal["linear", "splines"] = "linear"
    products: str | Sequence[tuple[str, str]] = ""


def check(options: PolicyOptions) -> None:
    reservoir = _check.whole_number("reservoir", options.reservoir, at_least=2, at_most=MAX_RESERVOIR)
    _check.set_fields(options, reservoir=reservoir, products=_in_words(options.products))


def _in_words(products: object) -> str:
    """As they are kept: one word for a policy of any products."""
    if isinstance(products, str):
        pairs: list[object] = [] if products in ("", ALL) else [term.split(TIMES) for term in products.split(PLUS)]
    else:
        what = "pairs of names, as in [('age', 'distance_km')], or 'all'"
        pairs = list(_check.items("products", products, what=what, at_most=MAX_COLUMNS, at_least=0))
    words = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidValue("products", pair, "must be pairs of names, as in [('age', 'distance_km')], or 'all'")
        names = [_check.name("number in products", name.strip() if isinstance(name, str) else name) for name in pair]
        for name in names:
            if TIMES in name or PLUS in name:
                raise InvalidValue("number in products", name, f"must not hold {TIMES} or {PLUS}; give it another name")
        words.append(TIMES.join(names))
    return ALL if products == ALL else PLUS.join(words)


def check_problem(options: PolicyOptions, problem: Problem) -> None:
    """What does not go together with people who have features."""
    if not problem.person:
        if options.products:
            raise InvalidValue("products", options.products, "are of features of people: the problem names none")
        return
    if options.values == "given" and (options.products or options.basis != "linear"):
        raise InvalidValue("values", options.values, "leaves splines and products to the model that predicts")
    if options.learner in ("thinned", "scaled"):
        remedy = "knows classes alone; where people have features, choose learner='auto'"
        raise InvalidValue("learner", options.learner, remedy)
    is_deaf = problem.feedback == "silent" and options.learner == "returned" and options.sampling != "oracle"
    if options.return_probability == "estimated" and is_deaf:
        raise InvalidValue("learner", options.learner, "does not see silence; choose learner='auto'")
    if options.return_probability == "estimated" and problem.feedback == "silent" and options.prior == "fixed":
        remedy = "counts no trials where people have features and feedback is silent; choose prior='cells'"
        raise InvalidValue("prior", options.prior, remedy)


def numbers_of(problem: Problem) -> list[int]:
    """Where the numbers are among the features of a person."""
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


def new_design_of(options: PolicyOptions, problem: Problem) -> Design:
    if options.values == "given":  # features speak through predictions
        return new_design(numbers=[], splines=False, products=[])
    return new_design(
        numbers=numbers_of(problem), splines=options.basis == "splines", products=_products_of(options, problem)
    )


def n_columns(options: PolicyOptions, problem: Problem) -> int:
    """Of the line."""
    return int(new_design_of(options, problem).first.size)


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return bool(problem.person)


def memory(blueprint: Blueprint) -> PeopleMemory:
    options, problem = blueprint.options, blueprint.problem
    check_problem(options, problem)
    design = new_design_of(options, problem)
    p, n_rows = design.first.size, blueprint.n_rows
    if p > MAX_COLUMNS:
        raise InvalidValue("columns of a person", p, f"must be at most {MAX_COLUMNS:,}; leave out splines or products")
    capacity = FIRST_CAPACITY if problem.person else 1
    learned = list(problem.category_columns) if options.values == "learned" else []
    categories = ([NO_LEVEL] if problem.n_contexts > 1 else []) + learned
    early = learn.word(options, problem) == "early"
    first = FIRST_FOR_KNOTS if options.basis == "splines" else FIRST_PEOPLE
    return PeopleMemory(
        line=new_line(arm_design(blueprint), design.group, 1.0 / options.penalty),
        design=design,
        traits=np.full((n_rows, problem.n_traits), np.nan),
        columns=np.tile(np.eye(1, p), (n_rows, 1)),
        context=blueprint.context_of_row.copy(),
        who=np.zeros(n_rows, dtype=np.int64),
        ring_columns=np.zeros((capacity + 1, p)),
        counts=np.zeros(5, dtype=np.int64),
        look_rounds=_look_rounds(problem.n_arms, p, n_rows),
        first_people=min(first, n_rows - problem.n_contexts),
        shares=options.prior in ("shared", "cells"),
        by_age=np.zeros((problem.n_arms, 1 + blueprint.ages.size, p, p) if early else (0, 0, p, p)),
        sorted=np.zeros(n_rows),
        levels=new_level_effects(len(categories), problem.n_arms, p, 1.0 / options.penalty),
        categories=np.array(categories, dtype=np.int64),
        own_levels=np.full((n_rows, len(categories)), NO_LEVEL),
        ring_levels=np.full((capacity + 1, len(categories)), NO_LEVEL),
        narrowed=np.zeros(padded(problem.n_arms)),
        kin=np.ones(n_rows),
        tau=np.ones((3, problem.n_contexts, padded(problem.n_arms))),
        costs=np.zeros((problem.n_contexts if _have_rows_costs(blueprint) else 0, problem.n_arms)),
    )


def _look_rounds(n_arms: int, p: int, n_rows: int) -> int:
    """How many rounds take as long as a look at everybody, both counted in multiplications."""
    look = 10 * n_arms * p**3 + n_rows * n_arms * p * (p + 1)
    one_round = 500 + n_arms * p * (p + 3)
    return max(1, look // one_round)


def _have_rows_costs(blueprint: Blueprint) -> bool:
    return len(blueprint.costs_by_row) > 1 or costs.is_in(blueprint.options, blueprint.problem)


def arm_design(blueprint: Blueprint) -> Floats:
    """(A, 1 + k): features of arms, centred and scaled; those that are the same for all tell nothing."""
    features = blueprint.problem.features if blueprint.given_features is None else blueprint.given_features
    if blueprint.options.features == "none":
        features = features[:, :0]
    scale = features.std(axis=0)
    centred = np.divide(features - features.mean(axis=0), scale, out=np.zeros(features.shape), where=scale > 0.0)
    return np.column_stack([np.ones(len(features)), centred])


def grown(memory: PeopleMemory, first: int, end: int) -> PeopleMemory:
    """With room for twice as many decisions, of which those from `first` to `end` are there."""
    capacity, p = memory.ring_columns.shape[0] - 1, memory.ring_columns.shape[1]
    sequence = np.arange(first, end)
    columns = np.zeros((2 * capacity + 1, p))
    columns[sequence & (2 * capacity - 1)] = memory.ring_columns[sequence & (capacity - 1)]
    levels = np.full((2 * capacity + 1, memory.ring_levels.shape[1]), NO_LEVEL)
    levels[sequence & (2 * capacity - 1)] = memory.ring_levels[sequence & (capacity - 1)]
    return memory._replace(ring_columns=columns, ring_levels=levels)


def with_more_levels(memory: PeopleMemory) -> PeopleMemory:
    """With room for twice as many levels, if they are full."""
    return memory._replace(levels=grown_levels(memory.levels)) if memory.categories.size > 0 else memory


# --- who arrives -----------------------------------------------------------------------------------------------------


@kernel
def admit(state: State, context: int, traits: Floats, weight: float, deadline: float) -> int:
    """Whoever arrives takes the row of the one who came longest ago."""
    people, n_contexts = state.people, state.tally.shape[1]
    n_people = people.context.size - n_contexts
    row = position(n_contexts + people.counts[CAME] % n_people)
    people.counts[CAME] += 1
    n_traits = people.traits.shape[1]
    for i in range(n_traits):
        people.traits[row, i] = traits[i]
    if traits.size > n_traits:
        people.who[row] = int(traits[n_traits])
    people.context[row] = context
    state.contexts[row].weight = state.contexts[context].weight if math.isnan(weight) else weight
    state.contexts[row].deadline = state.contexts[context].deadline if math.isnan(deadline) else deadline
    state.contexts[context].arrivals += 1.0
    _join(state, row, context)
    if people.design.is_known[0] == 0 and people.counts[CAME] >= people.first_people:
        _know_columns(state)
    set_columns(people.design, people.traits[row], people.columns[row])
    set_own_levels(people.levels, people.categories, context, people.traits[row], people.own_levels[row], True)
    _add_to_crowd(people.line, people.columns[row])
    if people.counts[CAME] >= people.counts[NEXT_LOOK]:
        _look(state)
    else:
        _revalue(state, row)
    return row


@kernel
def _join(state: State, row: int, context: int) -> None:
    """One more is expected to be like this one, at the costs and with the urgency of the context."""
    demand = state.demand
    if demand.depth[row] != demand.depth[context]:
        reweigh(state.hulls, demand, row, 0.0)
        demand.depth[row] = demand.depth[context]
    if demand.weight[row] == 0.0:
        reweigh(state.hulls, demand, row, 1.0)
    if state.list_costs.shape[0] > 1:
        state.dearest[row] = state.dearest[context]
        for a in range(state.allowed.size):
            state.list_costs[row, a], state.cost_rest[row, a] = (
                state.list_costs[context, a],
                state.cost_rest[context, a],
            )


@kernel
def _add_to_crowd(line: Line, x: Floats) -> None:
    for i in range(x.size):
        for l in range(x.size):  # noqa: E741
            line.crowd[i, l] += x[i] * x[l]


@rare
def _know_columns(state: State) -> None:
    """Enough have come to tell what numbers are like."""
    people, n_contexts = state.people, state.tally.shape[1]
    n = min(people.counts[CAME], people.context.size - n_contexts)
    learn_design(people.design, people.traits[n_contexts:], people.sorted, n)
    people.counts[KNOWN_FROM] = state.now[0].next
    for row in range(n_contexts, n_contexts + n):
        set_columns(people.design, people.traits[row], people.columns[row])
    people.counts[NEXT_LOOK] = 0


@rare
def _look(state: State) -> None:
    """Lines follow the answers, and everybody is valued by them: all at the same time, for who is served is a matter of
    comparing.
    """
    counts, n_contexts = state.people.counts, state.tally.shape[1]
    n_people = state.contexts.size - n_contexts
    counts[NEXT_LOOK] = counts[CAME] + max(1, min(counts[CAME] // LOOKS, state.people.look_rounds))
    counts[ROUND_THEN], counts[DECISIONS_THEN] = state.now[0].round, state.now[0].next
    set_lines(state.people.line, state.people.levels)
    on_lines(state)
    lay_out(state.people.line)
    for j in range(n_contexts):
        _remember_context(state, j)
    for row in range(n_contexts, n_contexts + min(counts[CAME], n_people)):
        _revalue(state, row)


@kernel
def _remember_context(state: State, context: int) -> None:
    people = state.people
    for a in range(state.allowed.size):
        tau = state.tau[context, a]
        people.tau[0, context, a], people.tau[1, context, a] = tau, state.tau_error[context, a]
        people.tau[2, context, a] = math.log1p(-tau) if tau < 1.0 else -math.inf
        if people.costs.shape[0] > 0:
            people.costs[context, a] = state.hulls.costs[context, a]


@kernel
def _revalue(state: State, row: int) -> None:
    """What the lines say of the one in this row, and what else is kept by row."""
    people, ridge = state.people, state.ridge
    line, x, context = people.line, people.columns[row], position(people.context[row])
    if row != context:
        _set_terms(state, row, context)
    expected, unit = norm_row(state, row), 1.0 / noise_variance(state)  # norms are in units of the noise
    ridge.is_touched[row] = state.now[0].learned > 0
    levels, own, n_arms, alike = people.levels, people.own_levels[row], state.allowed.size, 0.0
    n = max(line.crowd[0, 0], 1.0)
    estimate, variance, narrowed = ridge.estimate[row], ridge.norm_squared[row], people.narrowed
    value_by_lines(line, x, estimate, variance, narrowed)
    for a in range(n_arms if own.size > 0 else 0):
        of_line, of_levels = max(variance[a], 0.0), level_variance(levels, own, a)
        estimate[a] += level_mean(levels, own, a)
        variance[a] += of_levels
        narrowed[a] += of_levels
        if of_line + of_levels > 0.0:
            both = of_line * of_line * line.kin[0] + level_kin(levels, own, a, n)
            alike += both / ((of_line + of_levels) * (of_line + of_levels)) / n_arms
    if own.size == 0:
        alike = line.kin[0]
    people.kin[row] = alike
    _set_norms(ridge, row, variance, unit)
    for a in range(n_arms):
        ridge.weight[row, a] = alike * line.gram[a, 0, 0]  # how many answers are from those who are like this one
    if expected != row:
        _set_norms(ridge, expected, narrowed, unit)
        for a in range(n_arms):
            ridge.weight[expected, a] = alike * (line.gram[a, 0, 0] + line.open[a, 0, 0])
    state.contexts[row].arrivals = alike * people.counts[ROUND_THEN]
    state.contexts[row].pulls = alike * people.counts[DECISIONS_THEN]
    on_revalued(state, row)
    mark_stale(state, row)


@kernel
def _set_norms(ridge: Ridge, row: int, variance: Floats, unit: float) -> None:
    squares, norm = ridge.norm_squared[row], ridge.norm[row]
    for a in range(norm.size):
        squares[a] = max(variance[a], 0.0) * unit
    for a in range(norm.size):
        norm[a] = math.sqrt(squares[a])


@kernel
def _set_terms(state: State, row: int, context: int) -> None:
    """What use costs, and which share of answers returns in time."""
    people = state.people
    if people.costs.shape[0] > 0:
        for a in range(state.allowed.size):
            state.hulls.costs[row, a] = people.costs[context, a]
        sort_costs(state.hulls, row)
    if state.contexts[row].deadline == state.contexts[context].deadline:
        for a in range(state.allowed.size):
            state.tau[row, a], state.tau_error[row, a] = people.tau[0, context, a], people.tau[1, context, a]
    else:
        set_tau(state, row, context)
    on_terms(state, row)


@kernel
def class_of(state: State, row: int) -> int:
    return state.people.context[row]


@kernel
def whose(state: State, row: int) -> int:
    return state.people.who[row]


@kernel
def kin(state: State, row: int) -> float:
    return state.people.kin[row] * state.now[0].horizon


@kernel
def unknowns(state: State) -> int:
    """w_a."""
    return state.people.line.own.size


@rare
def on_renewed(state: State) -> None:
    """The average of every context."""
    for j in range(state.tally.shape[1]):
        arrivals, pulls = state.contexts[j].arrivals, state.contexts[j].pulls
        _revalue(state, j)
        state.contexts[j].arrivals, state.contexts[j].pulls = arrivals, pulls


# --- what is learned -------------------------------------------------------------------------------------------------


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    people = state.people
    for i in range(people.columns.shape[1]):
        people.ring_columns[slot, i] = people.columns[context, i]
    for c in range(people.own_levels.shape[1]):
        people.ring_levels[slot, c] = people.own_levels[context, c]
    state.contexts[people.context[context]].pulls += 1.0
    if people.by_age.shape[0] > 0 and state.ring[slot].trains != 0:
        state.ring[slot].reading = state.now[0].read_last  # what is forgotten since
        _add_aged(state, slot, arm, 0, 1.0)


@kernel
def on_guest(state: State, number: int, context: int, traits: Floats) -> None:
    people = state.people
    columns = people.ring_columns[_place_of(state, GUEST)]
    set_columns(people.design, traits, columns)
    if number < people.counts[KNOWN_FROM]:
        for i in range(1, columns.size):
            columns[i] = 0.0
    own = people.ring_levels[_place_of(state, GUEST)]
    set_own_levels(people.levels, people.categories, context, traits, own, False)


@kernel
def _place_of(state: State, slot: int) -> int:
    """Where the columns are of the one in this slot of the ring, or of the GUEST."""
    return state.ring.size if slot == GUEST else slot


@kernel
def deadline_of(state: State, slot: int, context: int) -> float:
    """What is learned of silence is by the longest of all, and tau takes it from there."""
    return state.limits.longest_deadline


@kernel
def teach(state: State, slot: int, context: int, arm: int, weight: float, target: float) -> None:
    people, place = state.people, _place_of(state, slot)
    learn_line(people.line, arm, people.ring_columns[place], weight, target)
    if _is_grown_up(state, slot):
        _add_to_levels(state, slot, arm, weight, target)


@rare
def reteach(state: State, slot: int, context: int, arm: int, change: float, total: float) -> None:
    """The line follows when stock is taken, with the next arrival."""
    line, x = state.people.line, state.people.ring_columns[_place_of(state, slot)]
    for i in range(x.size):
        line.moment[arm, i] += change * x[i]
    if _is_grown_up(state, slot):
        _add_to_levels(state, slot, arm, 0.0, change)


@rare
def on_reweighed(state: State, slot: int, arm: int, reward: float, change: float) -> None:
    line, x = state.people.line, state.people.ring_columns[_place_of(state, slot)]
    for i in range(x.size):
        line.moment[arm, i] += change * reward * x[i]
        for l in range(x.size):  # noqa: E741
            line.gram[arm, i, l] += change * x[i] * x[l]
    _add_to_levels(state, slot, arm, change, change * reward)


@kernel
def _add_to_levels(state: State, slot: int, arm: int, weight: float, target: float) -> None:
    people, place = state.people, _place_of(state, slot)
    if people.categories.size > 0:
        learn_levels(people.levels, people.ring_levels[place], arm, people.ring_columns[place], weight, target)


# --- silence ---------------------------------------------------------------------------------------------------------


@kernel
def on_passage(state: State, slot: int, g: int, age: float) -> None:
    if state.people.by_age.shape[0] > 0:
        decision = state.ring[slot]
        if decision.trains != 0 and not math.isnan(decision.answer_age):
            _add_aged(state, slot, position(decision.arm), g + 1, 1.0)
            if g == _full_age(state):
                weight = remembered(state, slot)
                _add_to_levels(state, slot, position(decision.arm), weight, weight * decision.reward)


@kernel
def _full_age(state: State) -> int:
    """The age at which silence is a whole trial. Levels are learned there, and never before the line: what they take of
    it must be in it.
    """
    ages, g = state.curves.ages, 0
    while g < ages.size - 1 and ages[g] < state.limits.longest_deadline:
        g += 1
    return g


@kernel
def _is_grown_up(state: State, slot: int) -> bool:
    """Whether levels are to learn, or have learned, from the decision in this slot: where silence tells, once it has
    passed the full age.
    """
    if state.people.by_age.shape[0] == 0 or slot == GUEST:
        return True
    first = state.now[0].first
    return first + ((slot - first) & (state.ring.size - 1)) < state.curves.cursor[_full_age(state)]


@kernel
def are_levels_full(state: State) -> bool:
    return state.people.categories.size > 0 and are_full(state.people.levels)


@kernel
def _add_aged(state: State, slot: int, arm: int, which: int, weight: float) -> None:
    x, sums = state.people.ring_columns[_place_of(state, slot)], state.people.by_age[arm, which]
    for i in range(x.size):
        for l in range(x.size):  # noqa: E741
            sums[i, l] += weight * x[i] * x[l]


@rare
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """It was no trial."""
    people = state.people
    if people.by_age.shape[0] == 0 or (in_race and state.now[0].race_trains == 0):
        return
    slot = GUEST if number < state.now[0].first else number & (state.ring.size - 1)
    weight = correction_weight(state, number, 0.0) if slot == GUEST else remembered(state, slot)
    _add_aged(state, slot, arm, 0, -weight)
    for g in range(state.curves.cursor.size):
        if number < state.curves.cursor[g]:
            _add_aged(state, slot, arm, g + 1, -weight)
    if number < state.curves.cursor[_full_age(state)]:
        _add_to_levels(state, slot, arm, -weight, 0.0)


@rare
def fade(state: State) -> None:
    """Where the past counts less, lines remember less of it."""
    keep, people = kept(state), state.people
    if keep < 1.0:
        n_arms, p = people.line.mean.shape
        for i in range(p):
            for l in range(p):  # noqa: E741
                people.line.crowd[i, l] *= keep
                for a in range(n_arms):
                    people.line.gram[a, i, l] *= keep
                    people.line.open[a, i, l] *= keep
                    for g in range(people.by_age.shape[1]):
                        people.by_age[a, g, i, l] *= keep
        for a in range(n_arms):
            for i in range(p):
                people.line.moment[a, i] *= keep
        fade_levels(people.levels, keep)
