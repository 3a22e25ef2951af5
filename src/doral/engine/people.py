"""Arrivals with features: each is worth what the lines of the arms say.

There are no classes to pace over. Recent arrivals stand for those to come: each has a row of its own in all that is
kept by row (values, return, hull), LP_m is solved over these rows exactly as over contexts, and its price is that of
the stream as it is now. Rows of contexts come first and stand for the average of each: no arrival is expected in them.
A new arrival takes the row of the oldest one. Lines move slowly: they are refit when a 32nd more have come, or as soon
as rounds have paid for it, and then all rows are rescored.

Lines (`estimators/line.py`) take the place of the ridge: its rows hold what the lines say of the arrivals in them.
"""

from __future__ import annotations

import math

from doral._arrays import Floats
from doral.compiled import kernel, position, rare
from doral.engine.bonus import set_stretch
from doral.engine.returns import set_tau, trial_part
from doral.engine.state import GONE_SLOT, State, kept, mark_stale, noise_variance, norm_row, remembered
from doral.estimators.design import learn_design, set_columns
from doral.estimators.levels import are_full as is_level_table_full
from doral.estimators.levels import (
    calibrate_lines,
    fade_levels,
    learn_levels,
    level_kin,
    level_mean,
    level_variance,
    set_lines,
    set_own_levels,
    start_level_variances,
)
from doral.estimators.line import (
    Line,
    expect_line,
    lay_out,
    learn_line,
    measure_line_noise,
    narrow_lines,
    start_variances,
    value_by_lines,
)
from doral.estimators.ridge import Ridge
from doral.estimators.shift import count_chance, count_shift, fade_shift, solve_shift, times
from doral.estimators.shrinkage import ANEW, ANEW_STEPS, IS_SET, MEAN_SQUARE, NOISE
from doral.estimators.survival import is_by_context, return_probability
from doral.pacing import reweigh, sort_costs

FIRST_PEOPLE = 32  # by whom numbers are centred and scaled
FIRST_FOR_KNOTS = 128
LOOKS = 32  # all rows are rescored when this part more have come, or as soon as rounds have paid for it
STEPS = 2  # of scoring, at each calibration
NO_COLUMN = -1
# Of `People.counts`: arrivals, after how many all rows are rescored, the first decision by which columns were known,
# and rounds and decisions at the last look.
CAME, NEXT_LOOK, KNOWN_FROM, ROUND_THEN, DECISIONS_THEN = 0, 1, 2, 3, 4
# Of `Predictions.counts`: decisions whose fate a model can learn from, and at how many the driver is asked for a model.
KNOWN, ASK_AT = 0, 1


# --- an arrival -------------------------------------------------------------------------------------------------------


@kernel
def admit(state: State, context: int, traits: Floats, weight: float, deadline: float) -> int:
    """Return the row of a new arrival: that of the oldest one. A weight or deadline that is NaN is the context's."""
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
    _join_demand(state, row, context)
    if people.design.is_known[0] == 0 and people.counts[CAME] >= state.rules.first_people:
        _learn_columns(state)
    set_columns(people.design, people.traits[row], people.columns[row])
    set_own_levels(people.levels, people.categories, context, people.traits[row], people.own_levels[row], True)
    _count_columns(people.line, people.columns[row])
    if people.counts[CAME] >= people.counts[NEXT_LOOK]:
        _rescore(state)
    else:
        _revalue(state, row)
    return row


@kernel
def _join_demand(state: State, row: int, context: int) -> None:
    """Expect one more arrival like this one, at the costs and with the urgency of the context."""
    demand = state.demand
    if demand.depth[row] != demand.depth[context]:
        if demand.weight[row] > 0.0:
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
def _count_columns(line: Line, x: Floats) -> None:
    for i in range(x.size):
        for l in range(x.size):  # noqa: E741
            line.crowd[i, l] += x[i] * x[l]


@rare
def _learn_columns(state: State) -> None:
    """Centre and scale the numbers by the first arrivals."""
    people, n_contexts = state.people, state.tally.shape[1]
    n = min(people.counts[CAME], people.context.size - n_contexts)
    learn_design(people.design, people.traits, n_contexts, n, people.sorted)
    people.counts[KNOWN_FROM] = state.now[0].next
    for row in range(n_contexts, n_contexts + n):
        set_columns(people.design, people.traits[row], people.columns[row])
    people.counts[NEXT_LOOK] = 0


@rare
def _rescore(state: State) -> None:
    """Refit the lines and rescore all rows at the same time: serving is a matter of comparing."""
    counts, n_contexts = state.people.counts, state.tally.shape[1]
    n_people = state.contexts.size - n_contexts
    counts[NEXT_LOOK] = counts[CAME] + max(1, min(counts[CAME] // LOOKS, state.rules.look_rounds))
    counts[ROUND_THEN], counts[DECISIONS_THEN] = state.now[0].round, state.now[0].next
    set_lines(state.people.line, state.people.levels)
    if state.rules.has_pending:
        narrow_lines(state.people.line)
    if state.rules.has_shift:
        solve_shift(state.people.shift)
    if state.rules.has_cost_shift:
        solve_shift(state.people.cost_shift)
    lay_out(state.people.line)
    for j in range(n_contexts):
        _remember_context(state, j)
    for row in range(n_contexts, n_contexts + min(counts[CAME], n_people)):
        _revalue(state, row)


@kernel
def _remember_context(state: State, context: int) -> None:
    """Keep tau and costs of a context until the next look: rows are compared as of the same moment."""
    people = state.people
    for a in range(state.allowed.size):
        tau = state.tau[context, a]
        people.tau[0, context, a], people.tau[1, context, a] = tau, state.tau_error[context, a]
        people.tau[2, context, a] = math.log1p(-tau) if tau < 1.0 else -math.inf
        if people.costs.shape[0] > 0:
            people.costs[context, a] = state.hulls.costs[context, a]


@kernel
def _revalue(state: State, row: int) -> None:
    """Score a row by the lines, and set what else is kept by row."""
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
    if state.rules.has_predictions:
        _take_predictions(state, row)
    set_stretch(state, row)
    mark_stale(state, row)


@kernel
def _set_norms(ridge: Ridge, row: int, variance: Floats, unit: float) -> None:
    """Set norms from variances, in units of the noise."""
    squares, norm = ridge.norm_squared[row], ridge.norm[row]
    for a in range(norm.size):
        squares[a] = max(variance[a], 0.0) * unit
    for a in range(norm.size):
        norm[a] = math.sqrt(squares[a])


@kernel
def _set_terms(state: State, row: int, context: int) -> None:
    """Set the costs and the return probability of a row."""
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
    if state.rules.has_shift:
        _shift_returns(state, row)
    if state.rules.has_cost_shift:
        _shift_costs(state, row)


@rare
def rescore_contexts(state: State) -> None:
    """Score the average arrival of every context."""
    for j in range(state.tally.shape[1]):
        arrivals, pulls = state.contexts[j].arrivals, state.contexts[j].pulls
        _revalue(state, j)
        state.contexts[j].arrivals, state.contexts[j].pulls = arrivals, pulls


@kernel
def _shift_returns(state: State, row: int) -> None:
    """Shift the return probability of a row by its features: a proportional hazard."""
    x = state.people.columns[row]
    faster = times(state.people.shift, x)
    context = position(state.people.context[row])
    if state.contexts[row].deadline == state.contexts[context].deadline:
        log_open = state.people.tau[2, context]  # as of the last look, like tau
        for a in range(state.allowed.size):
            state.tau[row, a] = 1.0 - math.exp(faster * log_open[a])
    else:
        for a in range(state.allowed.size):
            tau = state.tau[row, a]
            if tau < 1.0:
                state.tau[row, a] = 1.0 - math.exp(faster * math.log1p(-tau))


@kernel
def _shift_costs(state: State, row: int) -> None:
    """Shift the learned costs of a row by its features, up to the list price."""
    dearer = times(state.people.cost_shift, state.people.columns[row])
    list_row = min(row, state.list_costs.shape[0] - 1)
    for a in range(state.allowed.size):
        state.hulls.costs[row, a] = min(dearer * state.hulls.costs[row, a], state.list_costs[list_row, a])
    sort_costs(state.hulls, row)


@kernel
def _take_predictions(state: State, row: int) -> None:
    """Put predictions of a model, which came as features, in place of what the lines say; they have no bonus."""
    ridge, column, traits = state.ridge, state.predictions.column, state.people.traits[row]
    expected = norm_row(state, row)
    for a in range(column.size):
        if column[a] != NO_COLUMN and not math.isnan(traits[column[a]]):
            ridge.estimate[row, a] = traits[column[a]]
            ridge.norm_squared[row, a] = ridge.norm[row, a] = 0.0
            ridge.norm_squared[expected, a] = ridge.norm[expected, a] = 0.0


# --- learning ---------------------------------------------------------------------------------------------------------


@kernel
def remember_arrival(state: State, slot: int, context: int, arm: int) -> None:
    """Keep the columns of the arrival in this row beside its decision."""
    people = state.people
    for i in range(people.columns.shape[1]):
        people.ring_columns[slot, i] = people.columns[context, i]
    for c in range(people.own_levels.shape[1]):
        people.ring_levels[slot, c] = people.own_levels[context, c]
    state.contexts[people.context[context]].pulls += 1.0
    if people.by_age.shape[0] > 0:
        state.ring[slot].reading = state.now[0].read_last  # what is forgotten since
        _add_aged(state, slot, arm, 0, 1.0)


@kernel
def recall_arrival(state: State, number: int, context: int, traits: Floats) -> None:
    """Set the columns of an arrival whose decision may have left the ring, before it is answered or corrected."""
    people = state.people
    columns = people.ring_columns[_place_of(state, GONE_SLOT)]
    set_columns(people.design, traits, columns)
    if number < people.counts[KNOWN_FROM]:
        for i in range(1, columns.size):
            columns[i] = 0.0
    own = people.ring_levels[_place_of(state, GONE_SLOT)]
    set_own_levels(people.levels, people.categories, context, traits, own, False)


@kernel
def _place_of(state: State, slot: int) -> int:
    """Return where the columns of a decision are; the last place is that of a decision outside the ring."""
    return state.ring.size if slot == GONE_SLOT else slot


@kernel
def teach_line(state: State, slot: int, arm: int, weight: float, target: float) -> None:
    """Add an answer to the sums of the line, and of levels where they are due."""
    people, place = state.people, _place_of(state, slot)
    learn_line(people.line, arm, people.ring_columns[place], weight, target)
    if _is_grown_up(state, slot):
        _add_to_levels(state, slot, arm, weight, target)


@rare
def reteach_line(state: State, slot: int, arm: int, change: float) -> None:
    """Correct the sums by the change of one reward; the line follows at the next refresh."""
    line, x = state.people.line, state.people.ring_columns[_place_of(state, slot)]
    for i in range(x.size):
        line.moment[arm, i] += change * x[i]
    if _is_grown_up(state, slot):
        _add_to_levels(state, slot, arm, 0.0, change)


@rare
def reweigh_line(state: State, slot: int, arm: int, reward: float, change: float) -> None:
    """Change the weight with which an answer counts."""
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


@kernel
def expect_answer(state: State, slot: int, row: int, arm: int) -> None:
    """Count a new decision in the norms as if it were answered as expected."""
    decision = state.ring[slot]
    decision.expected, decision.reading = min(state.tau[row, arm], 1.0), state.now[0].read_last
    expect_line(state.people.line, arm, state.people.columns[row], decision.expected)


@kernel
def settle_expected(state: State, slot: int) -> None:
    """Take a decision whose fate is known out of the expected ones."""
    decision = state.ring[slot]
    if decision.expected >= 0.0:
        counted = decision.expected * remembered(state, slot)
        expect_line(state.people.line, position(decision.arm), state.people.ring_columns[slot], -counted)
        decision.expected = -1.0


@kernel
def settle_arrival(state: State, slot: int) -> None:
    """Count a decision that leaves the cut-off: by now it is known whether it was answered and what was paid."""
    decision, rules = state.ring[slot], state.rules
    is_cancelled = math.isnan(decision.answer_age)
    x, arm = state.people.ring_columns[slot], position(decision.arm)
    if rules.has_shift and not is_cancelled:
        row = position(decision.context) if is_by_context(state.curves) else 0
        share = return_probability(state.curves, row, arm, state.now[0].cutoff)
        count_chance(state.people.shift, arm, x, decision.answer_age <= state.now[0].cutoff, share)
    if rules.has_cost_shift and not is_cancelled and not math.isnan(state.costs.claims[slot].paid):
        usual = state.costs.share[position(decision.context), arm]
        count_shift(state.people.cost_shift, arm, x, max(state.costs.claims[slot].paid, 0.0), usual)
    if rules.has_predictions and rules.predicts_by_silence:
        state.predictions.counts[KNOWN] += 1


@kernel
def is_model_due(state: State) -> bool:
    """Return whether a new model is due, which only the driver can fit."""
    return state.predictions.counts[KNOWN] >= state.predictions.counts[ASK_AT]


@rare
def rebuild_lines(state: State) -> None:
    """Measure the noise and the variances, for lines that are refit at the next look."""
    people, prior = state.people, state.prior
    line = people.line
    if people.by_age.shape[0] > 0:
        _count_trials(state)
    second_moment = measure_line_noise(prior, line, state.tally, people.levels.explained)
    if not second_moment > 0.0:
        if prior.scale[IS_SET] == ANEW:
            _start_over(state)
        return
    n_arms = line.mean.shape[0]
    n = 0.0
    for a in range(n_arms):
        n += line.gram[a, 0, 0]
    noise = min(prior.scale[NOISE], second_moment)
    of_means = (second_moment - noise) + noise * min(1.0, n_arms / n) if n > 0.0 else second_moment
    line.scale[0] = min(second_moment, 4.0 * of_means)
    line.common[0, 0] = line.scale[0]
    steps = STEPS
    if prior.scale[IS_SET] != 1.0:
        steps = ANEW_STEPS if prior.scale[IS_SET] == ANEW else STEPS
        start_variances(line)
        start_level_variances(people.levels, line.scale[0])
        prior.scale[IS_SET] = 1.0
    calibrate_lines(line, people.levels, state.rules.shares_lines, steps)
    people.counts[NEXT_LOOK] = 0


@rare
def _start_over(state: State) -> None:
    """Start over: all that was measured rested on rewards that were corrected to none."""
    people, prior, variance = state.people, state.prior, 1.0 / state.confidence.penalty
    line = people.line
    prior.scale[NOISE], prior.scale[MEAN_SQUARE], prior.scale[IS_SET] = 1.0, 0.0, 0.0
    for row in range(prior.sigma.size):
        prior.sigma[row] = 1.0
    line.scale[0] = 0.0
    for a in range(line.noise.size):
        line.noise[a] = 1.0
    for i in range(line.own.size):
        line.own[i] = variance
    for i in range(line.hyper_mean.size):
        line.hyper_mean[i] = 0.0
        for l in range(line.hyper_mean.size):  # noqa: E741
            line.hyper_cov[i, l] = 0.0
    for c in range(people.levels.common.size):
        people.levels.common[c], people.levels.own[c] = 0.0, variance
    people.counts[NEXT_LOOK] = 0


@rare
def _count_trials(state: State) -> None:
    """What decisions that are still silent count for by now: gram is the sum over ages of what has passed them."""
    people = state.people
    n_arms, n_ages, p, _ = people.by_age.shape
    for a in range(n_arms):
        for i in range(p):
            for l in range(p):  # noqa: E741
                people.line.gram[a, i, l] = 0.0
        for g in range(n_ages):
            share = trial_part(state, a, g)
            for i in range(p):
                for l in range(p):  # noqa: E741
                    people.line.gram[a, i, l] += share * people.by_age[a, g, i, l]


# --- silence ----------------------------------------------------------------------------------------------------------


@kernel
def count_aged(state: State, slot: int, g: int) -> None:
    """Count a decision that has passed the grid age g, where silence counts as it grows old."""
    if state.people.by_age.shape[0] > 0:
        decision = state.ring[slot]
        if not math.isnan(decision.answer_age):
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
    if state.people.by_age.shape[0] == 0 or slot == GONE_SLOT:
        return True
    first = state.now[0].first
    return first + ((slot - first) & (state.ring.size - 1)) < state.curves.cursor[_full_age(state)]


@kernel
def are_levels_full(state: State) -> bool:
    """Return whether another level of a category would find no room."""
    return state.people.categories.size > 0 and is_level_table_full(state.people.levels)


@kernel
def _add_aged(state: State, slot: int, arm: int, which: int, weight: float) -> None:
    """Add x x^T of a decision to the sums of an age."""
    x, sums = state.people.ring_columns[_place_of(state, slot)], state.people.by_age[arm, which]
    for i in range(x.size):
        for l in range(x.size):  # noqa: E741
            sums[i, l] += weight * x[i] * x[l]


@rare
def cancel_aged(state: State, number: int, arm: int) -> None:
    """Remove a cancelled decision from the trials."""
    if state.people.by_age.shape[0] == 0:
        return
    slot = GONE_SLOT if number < state.now[0].first else number & (state.ring.size - 1)
    weight = remembered(state, slot) if slot != GONE_SLOT else 0.0 if state.rules.forgets else 1.0
    _add_aged(state, slot, arm, 0, -weight)
    for g in range(state.curves.cursor.size):
        if number < state.curves.cursor[g]:
            _add_aged(state, slot, arm, g + 1, -weight)
    if number < state.curves.cursor[_full_age(state)]:
        _add_to_levels(state, slot, arm, -weight, 0.0)


@rare
def fade_lines(state: State) -> None:
    """Discount what the lines rest on, with a half-life."""
    keep, people = kept(state), state.people
    if keep < 1.0:
        n_arms, p = people.line.mean.shape
        for i in range(p):
            for l in range(p):  # noqa: E741
                people.line.crowd[i, l] *= keep
                for a in range(n_arms):
                    people.line.gram[a, i, l] *= keep
                    people.line.open[a, i, l] *= keep
                    for g in range(people.by_age.shape[1] if people.by_age.shape[0] > 0 else 0):
                        people.by_age[a, g, i, l] *= keep
        for a in range(n_arms):
            for i in range(p):
                people.line.moment[a, i] *= keep
        fade_levels(people.levels, keep)
    if state.rules.has_shift:
        fade_shift(people.shift, keep)
    if state.rules.has_cost_shift:
        fade_shift(people.cost_shift, keep)
