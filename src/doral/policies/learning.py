"""What answers and silences teach: rewards (V and G per context), delays (the race)."""

from __future__ import annotations

import math

from doral._jit import jit_inner, jit_rare_inner, position
from doral.estimators.median_of_means import add_delay, close_pull
from doral.estimators.ridge import refactor, update
from doral.estimators.shrinkage import COUNT, NOISE, PENALTY, REWARD, SQUARE, calibrate, measure_noise
from doral.policies.state import (
    LEARN_RETURNED,
    LEARN_SCALED,
    LEARN_THINNED,
    PRIOR_FIXED,
    PRIOR_NOISE,
    PRIOR_SHARED,
    Rules,
    State,
    mark_stale,
)
from doral.racing import INSTANT, MIN_AGE, RETURNED

CALIBRATE_SHARE = 10  # the prior is moved when a tenth more has been learned,
CALIBRATE_FEWEST, CALIBRATE_MOST = 10, 2_000  # but never more, nor less, often than this
FACTOR_PRIOR_SD = 0.3  # how far the factor of an arm is thought to be from 1 (`silent`)


@jit_inner
def penalty(state: State, rules: Rules) -> float:
    """lambda: given, or noise over spread as measured."""
    return state.prior.scale[PENALTY] if rules.prior == PRIOR_SHARED else rules.penalty


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
    if rules.learner == LEARN_RETURNED:
        _enter(state, rules, j, a, reward, 1.0)
    elif rules.learner == LEARN_THINNED:
        update(state.ridge, j, a, 0.0, reward, rules.penalty)
    mark_stale(state, j)


@jit_inner
def _enter(state: State, rules: Rules, context: int, arm: int, reward: float, thin: float) -> None:
    """One observation: a reward with mean thin * <theta_j, f_a>."""
    state.tally[COUNT, context, arm] += 1.0
    state.tally[REWARD, context, arm] += reward
    state.tally[SQUARE, context, arm] += reward * reward
    update(state.ridge, context, arm, thin * thin, thin * reward, penalty(state, rules))
    if rules.prior != PRIOR_FIXED:
        now = state.now[0]
        now.learned += 1
        if now.learned >= now.calibrate_at:
            recalibrate(state, rules)


@jit_rare_inner
def recalibrate(state: State, rules: Rules) -> None:
    """The noise, or noise and common prior, from all that has been learned."""
    now = state.now[0]
    now.calibrate_at = now.learned + max(CALIBRATE_FEWEST, min(now.learned // CALIBRATE_SHARE, CALIBRATE_MOST))
    if rules.prior == PRIOR_NOISE:
        measure_noise(state.prior, state.tally)
    else:
        calibrate(state.prior, state.ridge, state.tally, state.thinning)
    _renew_pending(state, rules)


@jit_rare_inner
def _renew_pending(state: State, rules: Rules) -> None:
    """The penalty has moved: so do the norms that count open decisions, and all values."""
    n_contexts = state.contexts.size
    for j in range(n_contexts):
        mark_stale(state, j)
        if rules.counts_pending:
            refactor(state.ridge, n_contexts + j, penalty(state, rules))


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
    if rules.learner == LEARN_SCALED and (rules.race_trains or state.ring[slot].in_race == 0):
        _enter(state, rules, j, a, state.ring[slot].reward, state.thinning[j, a])
        mark_stale(state, j)


@jit_inner
def rethin(state: State, rules: Rules) -> None:
    """`scaled`: tau enters V and G, so they are rebuilt when it has changed."""
    if rules.prior == PRIOR_SHARED:
        calibrate(state.prior, state.ridge, state.tally, state.thinning)
        _renew_pending(state, rules)
        return
    _, n_contexts, n_arms = state.tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            thin = state.thinning[j, a]
            state.ridge.weight[j, a] = thin * thin * state.tally[COUNT, j, a]
            state.ridge.target[j, a] = thin * state.tally[REWARD, j, a]
        refactor(state.ridge, j, rules.penalty)


@jit_inner
def fit_factors(state: State, rules: Rules) -> None:
    """`silent`: which answers came as zeros cannot be seen, so tau_a is the factor by which an arm falls short.

    E[reward seen by the deadline] = factor_a <theta_j, f_a>: given theta, the factor is a regression on the contexts,
    with a prior around 1; given the factors, theta is the ridge. The two are fitted in turn.
    """
    _, n_contexts, n_arms = state.tally.shape
    noise = state.prior.scale[NOISE]
    for a in range(n_arms):
        top = bottom = 1.0 / (FACTOR_PRIOR_SD * FACTOR_PRIOR_SD)
        for j in range(n_contexts):
            mean = state.ridge.estimate[j, a]
            top += state.tally[REWARD, j, a] * mean / noise
            bottom += state.tally[COUNT, j, a] * mean * mean / noise
        factor = min(max(top / bottom, 0.01), 2.0)
        for j in range(n_contexts):
            state.tau[j, a] = factor
            if rules.learner == LEARN_SCALED:
                state.thinning[j, a] = factor
            state.tau_error[j, a] = math.sqrt(1.0 / bottom)


@jit_inner
def forget(state: State, rules: Rules, rounds: int) -> None:
    """What was learned counts half after every half-life: rewards, widths and return curves."""
    keep = 0.5 ** (rounds / rules.half_life)
    _, n_contexts, n_arms = state.tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            state.tally[COUNT, j, a] *= keep
            state.tally[REWARD, j, a] *= keep
            state.tally[SQUARE, j, a] *= keep
            state.ridge.weight[j, a] *= keep
            state.ridge.target[j, a] *= keep
            if rules.counts_pending:
                state.ridge.weight[n_contexts + j, a] *= keep
        refactor(state.ridge, j, penalty(state, rules))
        if rules.counts_pending:
            refactor(state.ridge, n_contexts + j, penalty(state, rules))
    curves = state.curves
    for group in range(curves.at_risk.shape[0]):
        for g in range(curves.ages.size):
            curves.at_risk[group, g] *= keep
            curves.returned[group, g] *= keep
