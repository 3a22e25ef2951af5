"""Returns: which share of answers comes in time (tau), the cut-off m, and what silence and slow outcomes mean.

tau is read off the return curves, the product-limit estimates of `estimators/survival.py`, by the deadline, or by m
where there is none. Under silent feedback a zero cannot be seen, and there is no such curve: a pending decision is a
fraction of a trial instead (`estimators/positives.py`), so that what is learned is by the deadline and tau is 1 but for
the end. Where the delay depends on the outcome, answers above a split and those at or below it have return curves of
their own, by which the answers of young decisions are weighted (`estimators/outcomes.py`).
"""

from __future__ import annotations

import math

from doral._arrays import Floats
from doral.compiled import kernel, position, rare
from doral.engine.state import (
    BY_DEADLINE,
    ESTIMATED,
    FACTORS,
    GIVEN,
    SCALED,
    State,
    clock_left,
    clock_passed,
    deadline_of,
    is_learnable,
    kept,
    noise_variance,
    slot_of,
)
from doral.estimators.outcomes import HIGH, LOW, WEIGHT, count_answer, set_weights
from doral.estimators.positives import count_positive, set_shares, share_by, trial_share, trials
from doral.estimators.positives import mean_age as mean_age_of_answers
from doral.estimators.ridge import COUNT, REWARD, SQUARE
from doral.estimators.survival import (
    age_of_share,
    is_by_context,
    known_decisions,
    mean_age,
    pool,
    return_probability,
)

CUTOFF_SHARE = 0.999  # an adaptive cut-off is the age by which this share of the answers has come
YOUNG_SHARE = 0.1  # of the age by which answers have to come
FACTOR_PRIOR_SD = 0.3  # how far the factor of an arm is thought to be from 1


@rare
def read_returns(state: State) -> None:
    """Set tau, its error and the cut-off from what has returned so far."""
    returns = state.rules.returns
    if returns == ESTIMATED:
        _read_curves(state)
    elif returns == BY_DEADLINE:
        _read_silence(state)
    elif returns == FACTORS:
        _read_factors(state)
    elif returns == GIVEN:
        _read_given(state)
    if state.rules.has_outcomes:
        _read_outcomes(state)


@kernel
def set_tau(state: State, row: int, context: int) -> None:
    """Set tau of a row whose deadline may differ from that of its context."""
    if state.rules.returns == ESTIMATED:
        _set_tau_of_row(state, row, context)
    elif state.rules.returns == BY_DEADLINE:
        _set_tau_by_deadline(state, row)
    elif row != context:
        for a in range(state.allowed.size):
            state.tau[row, a], state.tau_error[row, a] = state.tau[context, a], state.tau_error[context, a]


@kernel
def answer_limit(state: State, context: int) -> float:
    """The deadline, or the cut-off where there is none; and near the end, what is left of time."""
    now = state.now[0]
    limit = state.contexts[context].deadline
    if state.limits.by_cutoff or math.isinf(limit):
        limit = now.cutoff
    # A young campaign knows no pace of arrivals yet: the first of them may come as one batch.
    if state.limits.until_end and now.round > 0 and clock_passed(state) >= YOUNG_SHARE * limit:
        limit = min(limit, clock_left(state))
    return limit


@kernel
def _read_curves(state: State) -> None:
    """tau by the deadline, or by the cut-off where there is no deadline."""
    pool(state.curves)
    _follow_curves(state)
    like = -1
    for j in range(state.tally.shape[1]):
        if like >= 0 and _is_curve_shared(state, j) and state.contexts[j].deadline == state.contexts[like].deadline:
            _copy_tau(state, like, j)
        else:
            _read_row(state, j)
            if like < 0 and _is_curve_shared(state, j):
                like = j


@kernel
def _set_tau_of_row(state: State, row: int, context: int) -> None:
    if row == context:
        return
    is_alike = state.contexts[row].deadline == state.contexts[context].deadline
    for a in range(state.allowed.size):
        state.tau[row, a], state.tau_error[row, a] = state.tau[context, a], state.tau_error[context, a]
        if not is_alike:
            _set_tau(state, context if is_by_context(state.curves) else 0, row, a)


@kernel
def _is_curve_shared(state: State, context: int) -> bool:
    """Whether a context has no curve of its own: all that have none return alike by the same deadline."""
    return not is_by_context(state.curves) or state.contexts[context].pulls == 0.0


@kernel
def _copy_tau(state: State, source: int, to: int) -> None:
    for a in range(state.allowed.size):
        state.tau[to, a], state.tau_error[to, a] = state.tau[source, a], state.tau_error[source, a]
        state.thinning[to, a] = state.thinning[source, a]


@kernel
def _read_row(state: State, context: int) -> None:
    row = context if is_by_context(state.curves) else 0
    for a in range(state.allowed.size):
        _read_one(state, row, context, a)


@kernel
def _follow_curves(state: State) -> None:
    """The cut-off, and how many rounds are lost at the end."""
    now, curves = state.now[0], state.curves
    if state.rules.cutoff_follows:
        m = age_of_share(curves, CUTOFF_SHARE)
        now.cutoff = m if m < math.inf else now.cutoff
    if state.limits.until_end and clock_passed(state) > 0.0:  # what is decided so near the end mostly earns nothing
        age = mean_age(curves, state.limits.longest_deadline)
        if age > 0.0:
            now.lost_rounds = int(age * now.round / clock_passed(state))


@kernel
def _read_one(state: State, row: int, context: int, arm: int) -> None:
    _set_tau(state, row, context, arm)
    if state.rules.learner == SCALED:
        state.thinning[context, arm] = return_probability(state.curves, row, arm, state.now[0].cutoff)


@kernel
def _set_tau(state: State, row: int, context: int, arm: int) -> None:
    tau = return_probability(state.curves, row, arm, answer_limit(state, context))
    known = known_decisions(state.curves, row, arm)
    state.tau[context, arm] = tau
    state.tau_error[context, arm] = math.sqrt((tau * (1.0 - tau) + 1.0 / (known + 1.0)) / (known + 1.0))


@kernel
def _read_given(state: State) -> None:
    _, n_contexts, n_arms = state.tally.shape
    last = float(state.known_returns.shape[2] - 1)
    for a in range(n_arms):
        for j in range(n_contexts):
            curve = state.known_returns[min(j, state.known_returns.shape[0] - 1), a]
            state.tau[j, a] = curve[int(min(answer_limit(state, j), last))]
            state.tau_error[j, a] = 0.0
            if state.rules.learner == SCALED:
                state.thinning[j, a] = curve[int(min(state.now[0].cutoff, last))]


@kernel
def _read_factors(state: State) -> None:
    _fit_factors(state.tally, state.ridge.estimate, noise_variance(state), state.tau, state.tau_error)
    if state.rules.learner == SCALED:
        n_contexts, n_arms = state.thinning.shape
        for j in range(n_contexts):
            for a in range(n_arms):
                state.thinning[j, a] = state.tau[j, a]


@rare
def _fit_factors(tally: Floats, estimate: Floats, noise: float, factors: Floats, errors: Floats) -> None:
    """E[reward seen by the deadline] = factor_a <theta_j, f_a>: given theta, the factor is a regression on the
    contexts, with a prior around 1; given the factors, theta is the ridge. The two are fitted in turn.
    """
    _, n_contexts, n_arms = tally.shape
    for a in range(n_arms):
        top = bottom = 1.0 / (FACTOR_PRIOR_SD * FACTOR_PRIOR_SD)
        for j in range(n_contexts):
            top += tally[REWARD, j, a] * estimate[j, a] / noise
            bottom += tally[COUNT, j, a] * estimate[j, a] * estimate[j, a] / noise
        for j in range(n_contexts):
            factors[j, a] = min(max(top / bottom, 0.01), 2.0)
            errors[j, a] = math.sqrt(1.0 / bottom)


# --- silent feedback --------------------------------------------------------------------------------------------------


@rare
def _read_silence(state: State) -> None:
    """How much of a trial every decision is by now; and which share of answers can still come before the end."""
    silence, ages = state.silence, state.curves.ages
    set_shares(silence.counts, ages, silence.shares)
    for j in range(state.tally.shape[1]):
        for a in range(state.allowed.size):
            exposed = trials(silence.passed[j, a], silence.shares, ages, a, _learned_by(state, j))
            state.tally[COUNT, j, a] = max(exposed, answers_seen(state, j, a))
        _set_tau_by_deadline(state, j)
    now = state.now[0]
    if state.limits.until_end and clock_passed(state) > 0.0:  # what is decided so near the end mostly earns nothing
        now.lost_rounds = int(
            mean_age_of_answers(silence.counts, ages, silence.shares) * now.round / clock_passed(state)
        )


@kernel
def answers_seen(state: State, context: int, arm: int) -> float:
    """Return how many equal answers have the sums of a cell: at least so many decisions were whole trials."""
    square = state.tally[SQUARE, context, arm]
    return state.tally[REWARD, context, arm] * state.tally[REWARD, context, arm] / square if square > 0.0 else 0.0


@kernel
def _learned_by(state: State, context: int) -> float:
    """The age by which what is learned has come."""
    deadline = state.contexts[context].deadline if state.limits.own_deadlines else state.limits.longest_deadline
    return min(deadline, state.curves.ages[state.curves.ages.size - 1])


@kernel
def _set_tau_by_deadline(state: State, row: int) -> None:
    """Which share of that can come in time."""
    shares, ages, learned_by = state.silence.shares, state.curves.ages, _learned_by(state, row)
    limit = min(answer_limit(state, row), learned_by)
    for a in range(state.allowed.size):
        whole = share_by(shares, ages, a, learned_by)
        state.tau[row, a] = 1.0 if limit >= learned_by else min(share_by(shares, ages, a, limit) / whole, 1.0)
        state.tau_error[row, a] = 0.0


@kernel
def count_silence(state: State, slot: int, g: int) -> None:
    """Count a decision that has passed the grid age g, and its answer if it came by then."""
    decision = state.ring[slot]
    if not math.isnan(decision.answer_age):  # else it was cancelled
        context, arm, ages = position(decision.context), position(decision.arm), state.curves.ages
        state.silence.passed[context, arm, g + 1] += 1.0
        if decision.reward != 0.0 and decision.answer_age <= ages[g] and ages[g] <= deadline_of(state, slot, context):
            count_positive(state.silence.counts, ages, arm, g, decision.answer_age)


@kernel
def trial_part(state: State, arm: int, g: int) -> float:
    """Return by how much of a trial a decision counts more past the age before g; g = 0: once it is made."""
    return trial_share(state.silence.shares, state.curves.ages, arm, g, state.limits.longest_deadline)


@rare
def count_recalled_positive(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed since its answer came are counted now, if the answer teaches anything."""
    ages = state.curves.ages
    slot = slot_of(state, number)
    if not is_learnable(state, slot, context, age):
        return
    for g in range(ages.size):
        is_passed = number < state.curves.cursor[g] and age <= ages[g] and ages[g] <= deadline_of(state, slot, context)
        if reward != 0.0 and is_passed:
            count_positive(state.silence.counts, ages, arm, g, age)


@rare
def cancel_trial(state: State, number: int, context: int, arm: int) -> None:
    """Remove a cancelled decision from the trials."""
    passed, cursor = state.silence.passed[context, arm], state.curves.cursor
    passed[0] = max(0.0, passed[0] - 1.0)
    for g in range(cursor.size):
        if number < cursor[g]:
            passed[g + 1] = max(0.0, passed[g + 1] - 1.0)


@rare
def fade_silence(state: State) -> None:
    """Where the past counts less, so do its trials and its answers."""
    keep = kept(state)
    if keep < 1.0:
        for j in range(state.silence.passed.shape[0]):
            for a in range(state.silence.passed.shape[1]):
                for g in range(state.silence.passed.shape[2]):
                    state.silence.passed[j, a, g] *= keep
        for which in range(state.silence.counts.shape[0]):
            for a in range(state.silence.counts.shape[1]):
                for g in range(state.silence.counts.shape[2]):
                    state.silence.counts[which, a, g] *= keep


# --- outcomes whose delays differ -------------------------------------------------------------------------------------


@rare
def outcome_weight(state: State, slot: int, age: float) -> float:
    """What the answer of a decision of this age counts for, where its kind is slower or quicker than the other."""
    decision, ages, cutoff = state.ring[slot], state.curves.ages, state.now[0].cutoff
    passed = 0
    while passed < ages.size and min(age, cutoff) >= ages[passed]:
        passed += 1
    kind = HIGH if decision.reward > state.rules.outcome_split else LOW
    weights = state.outcomes[WEIGHT, kind, decision.arm]
    if age < cutoff and passed < ages.size:  # on the way to the next age, where it is weighed again
        return 0.5 * (weights[passed] + weights[passed + 1])
    return weights[passed]


@rare
def count_recalled_outcome(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed since its answer came are counted for its kind."""
    ages = state.curves.ages
    kind = HIGH if reward > state.rules.outcome_split else LOW
    for g in range(ages.size):
        if number < state.curves.cursor[g] and age <= ages[g]:
            count_answer(state.outcomes, ages, kind, arm, g, age)


@kernel
def _read_outcomes(state: State) -> None:
    """Weights, over the ages that count."""
    ages = state.curves.ages
    last = ages.size - 1
    while last > 0 and ages[last] > state.limits.learnable_age:
        last -= 1
    set_weights(state.outcomes, last)
