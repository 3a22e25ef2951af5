"""What answers and silences teach: rewards (V and G per context), delays (the race)."""

from __future__ import annotations

import math

from doral._arrays import Floats
from doral._jit import jit_inner, jit_rare, jit_rare_inner, position
from doral.estimators.median_of_means import add_delay, close_pull
from doral.estimators.outcomes import HIGH, LOW, WEIGHT
from doral.estimators.ridge import Ridge, add_weight, refactor, update
from doral.estimators.shrinkage import COUNT, REWARD, SQUARE, calibrate, measure_noise, rebuild
from doral.estimators.survival import ReturnCurves
from doral.policies.state import (
    LEARN_RETURNED,
    LEARN_SCALED,
    PRIOR_FIXED,
    PRIOR_NOISE,
    Rules,
    State,
    mark_stale,
)
from doral.racing import INSTANT, MIN_AGE, RETURNED

CALIBRATE_SHARE = 10  # the prior is moved when a tenth more has been learned,
CALIBRATE_FEWEST, CALIBRATE_MOST = 10, 2_000  # but never more, nor less, often than this
FACTOR_PRIOR_SD = 0.3  # how far the factor of an arm is thought to be from 1 (`silent`)


@jit_inner
def learn_delay(state: State, rules: Rules, slot: int, age: float) -> None:
    """Stage 1: an arm's delay became known (`instant` knew it before)."""
    if rules.race.censoring == INSTANT:
        return
    arm = state.ring[slot].arm
    state.race.arms[arm].answers += 1
    if rules.race.censoring == RETURNED:
        add_delay(state.race.delays, arm, age)
    elif rules.race.censoring == MIN_AGE:
        close_pull(state.race.delays, arm, state.ring[slot].position, state.ring[slot].time, age)


@jit_inner
def learn_reward(state: State, rules: Rules, slot: int, reward: float) -> None:
    """An answer inside the cut-off. `returned`: V and G grow now. `thinned`: V grew at the pull. `scaled`: not yet."""
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    state.ring[slot].reward = reward
    mark_stale(state, j)
    if rules.learner == LEARN_SCALED:
        return
    weight = 1.0
    if rules.splits_outcomes:
        weight = outcome_weight(state, rules, slot, state.ring[slot].answer_age)
        state.ring[slot].weight = weight
    is_returned = rules.learner == LEARN_RETURNED
    if is_returned:
        if rules.counts_pending:
            count_fate(state, rules, slot, 1.0)
        _add_to_tally(state, j, a, reward, weight)
    update(state.ridge, j, a, weight if is_returned else 0.0, weight * reward)
    state.now[0].learned += rules.prior != PRIOR_FIXED
    state.ring[slot].reading = state.now[0].read_last  # from now on it is the answer that is forgotten


@jit_rare_inner
def _learn_settled(state: State, rules: Rules, slot: int) -> None:
    """`scaled`: a reward with mean thin * <theta_j, f_a>; 0 if nothing came."""
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    reward, thin = state.ring[slot].reward, state.thinning[j, a]
    _add_to_tally(state, j, a, reward, 1.0)
    update(state.ridge, j, a, thin * thin, thin * reward)
    state.now[0].learned += rules.prior != PRIOR_FIXED
    mark_stale(state, j)


@jit_inner
def _add_to_tally(state: State, context: int, arm: int, reward: float, weight: float) -> None:
    state.tally[COUNT, context, arm] += weight
    state.tally[REWARD, context, arm] += weight * reward
    state.tally[SQUARE, context, arm] += weight * reward * reward


@jit_rare_inner
def outcome_weight(state: State, rules: Rules, slot: int, age: float) -> float:
    """What the answer of a decision of this age counts for, where its kind is slower or quicker than the other."""
    decision, ages, cutoff = state.ring[slot], state.curves.ages, state.now[0].cutoff
    passed = 0
    while passed < ages.size and min(age, cutoff) >= ages[passed]:
        passed += 1
    kind = HIGH if decision.reward > rules.outcome_split else LOW
    weights = state.outcomes[WEIGHT, kind, decision.arm]
    if age < cutoff and passed < ages.size:  # on the way to the next age, where it is weighed again
        return 0.5 * (weights[passed] + weights[passed + 1])
    return weights[passed]


@jit_rare_inner
def reweigh(state: State, rules: Rules, slot: int, age: float) -> None:
    """A decision that has been answered grew older: its answer counts for more, or for less, than before."""
    decision = state.ring[slot]
    if decision.weight > 0.0:
        weight = outcome_weight(state, rules, slot, age)
        context, arm = position(decision.context), position(decision.arm)
        _add_to_tally(state, context, arm, decision.reward, weight - decision.weight)
        decision.weight = weight


@jit_inner
def remembered(state: State, rules: Rules, slot: int) -> float:
    """How much still counts of what a decision, or by now its answer, once entered: half after every half-life."""
    if math.isinf(rules.half_life):
        return 1.0
    return 0.5 ** ((state.now[0].read_last - state.ring[slot].reading) / rules.half_life)


@jit_inner
def count_fate(state: State, rules: Rules, slot: int, answered: float) -> None:
    """An open decision counted as if answered with the chance of it; now it is (1), or not (0), or settled (`scaled`).

    The sums change at once and the norms when stock is taken next: one decision more or less is soon enough then, and
    without it those that are never answered would pass for known.
    """
    decision = state.ring[slot]
    if decision.expected >= 0.0 or answered > 0.0:  # an answer: the cut-off may have grown again after it left it
        counted = max(decision.expected, 0.0) * remembered(state, rules, slot)
        context = position(decision.context)
        add_weight(state.ridge, state.contexts.size + context, position(decision.arm), answered - counted)
        decision.expected = -1.0
        if state.ridge.features.shape[1] == 0:
            mark_stale(state, context)


@jit_inner
def settle(state: State, rules: Rules) -> None:
    """Decisions that are older than the cut-off by now leave it, oldest first."""
    now = state.now[0]
    mask = state.ring.size - 1
    while now.settled < now.next and now.clock - state.ring[now.settled & mask].time > now.cutoff:
        _leave_cutoff(state, rules, now.settled & mask)
        now.settled += 1


@jit_inner
def _leave_cutoff(state: State, rules: Rules, slot: int) -> None:
    """A decision grew older than m: it is out of the bias window, and `scaled` now knows its thinned reward."""
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    if rules.with_bias:
        state.window[j, a] -= 1.0
        mark_stale(state, j)
    is_learned = rules.learner == LEARN_SCALED and (rules.race_trains or state.ring[slot].in_race == 0)
    if rules.counts_pending:
        thin = state.thinning[j, a]
        count_fate(state, rules, slot, thin * thin if is_learned else 0.0)
    if is_learned:
        _learn_settled(state, rules, slot)


@jit_inner
def follow_answers(state: State, rules: Rules) -> None:
    """The noise, or noise and common prior, from all that has been learned."""
    now = state.now[0]
    now.calibrate_at = now.learned + max(CALIBRATE_FEWEST, min(now.learned // CALIBRATE_SHARE, CALIBRATE_MOST))
    if rules.prior == PRIOR_NOISE:
        measure_noise(state.prior, state.tally)
    else:
        calibrate(state.prior, state.ridge, state.tally, state.thinning)


# What follows is rare, and takes only the arrays that it needs: to pass a whole state takes long to compile.


@jit_rare
def renew_pending(ridge: Ridge, n_contexts: int) -> None:
    """The prior has moved, and with it the norms that count open decisions."""
    for row in range(n_contexts, ridge.weight.shape[0]):
        refactor(ridge, row)


@jit_rare
def rethin(ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """`scaled`: tau enters V and G, so they are rebuilt when it has changed. (A shared prior is calibrated instead.)"""
    rebuild(ridge, tally, thinning)
    for j in range(tally.shape[1]):
        refactor(ridge, j)


@jit_rare
def fit_factors(tally: Floats, estimate: Floats, noise: float, factors: Floats, errors: Floats) -> None:
    """`silent`: which answers came as zeros cannot be seen, so tau_a is the factor by which an arm falls short.

    E[reward seen by the deadline] = factor_a <theta_j, f_a>: given theta, the factor is a regression on the contexts,
    with a prior around 1; given the factors, theta is the ridge. The two are fitted in turn.
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


@jit_rare
def forget(tally: Floats, ridge: Ridge, curves: ReturnCurves, keep: float) -> None:
    """What was learned counts less: rewards, widths and return curves."""
    _, n_contexts, n_arms = tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            tally[COUNT, j, a] *= keep
            tally[REWARD, j, a] *= keep
            tally[SQUARE, j, a] *= keep
    for row in range(ridge.weight.shape[0]):
        for a in range(n_arms):
            ridge.weight[row, a] *= keep
            ridge.target[row, a] *= keep
        refactor(ridge, row)
    for group in range(curves.at_risk.shape[0]):
        for g in range(curves.ages.size):
            curves.at_risk[group, g] *= keep
            curves.returned[group, g] *= keep
