"""tau: which share of answers returns in time, read off the return curves; and the cut-off that follows them."""

from __future__ import annotations

import math

import numpy as np

from doral._jit import jit_inner, jit_rare_inner
from doral.estimators.outcomes import HIGH, LOW, count_answer, set_weights
from doral.estimators.shrinkage import NOISE
from doral.estimators.survival import (
    age_of_share,
    count_passage,
    known_decisions,
    mean_age,
    pool,
    return_probability,
    shrink_to_others,
)
from doral.policies.learning import fit_factors, reweigh
from doral.policies.state import LEARN_SCALED, TAU_ESTIMATED, TAU_ORACLE, Rules, State, clock_left

YOUNG_SHARE = 0.1  # of the age by which answers have to come
REFRESH_ROUNDS = 32  # return curves move slowly: they are read once in so many rounds,
REFRESH_SHARE, REFRESH_MOST = 32, 512  # and curves by context, which cost more, once in a share of the rounds so far


@jit_inner
def watch(state: State, clock: float) -> None:
    """Return curves: count every decision at every grid age that it has passed since the last time."""
    ring, curves = state.ring, state.curves
    end, mask = state.now[0].next, np.uint64(ring.size - 1)  # unsigned: no test for indices from the end
    n_arms = curves.arm_at_risk.shape[0]
    by_context = curves.at_risk.shape[0] > n_arms
    for g in range(curves.ages.size):
        decision = curves.cursor[g]
        age = curves.ages[g]
        while decision < end:
            slot = np.uint64(decision) & mask
            if not clock - ring[slot].time > age:
                break
            group = ring[slot].arm
            if by_context:
                group += n_arms * ring[slot].context
            count_passage(curves, group, g, ring[slot].answer_age)
            decision += 1
        curves.cursor[g] = decision


@jit_rare_inner
def watch_outcomes(state: State, rules: Rules, clock: float) -> None:
    """The same for answers of two kinds; before `watch`, which moves on."""
    ring, curves = state.ring, state.curves
    for g in range(curves.ages.size):
        for decision in range(curves.cursor[g], state.now[0].next):
            slot = decision & (ring.size - 1)
            age = clock - ring[slot].time
            if not age > curves.ages[g]:
                break
            if ring[slot].answer_age <= curves.ages[g]:
                kind = HIGH if ring[slot].reward > rules.outcome_split else LOW
                count_answer(state.outcomes, curves.ages, kind, ring[slot].arm, g, ring[slot].answer_age)
                reweigh(state, rules, slot, age)


@jit_inner
def read_curves(state: State, rules: Rules) -> None:
    """tau by the deadline, or by the cut-off where there is no deadline."""
    if rules.silent:
        fit_factors(state.tally, state.ridge.estimate, state.prior.scale[NOISE], state.tau, state.tau_error)
        if rules.learner == LEARN_SCALED:
            n_contexts, n_arms = state.thinning.shape
            for j in range(n_contexts):
                for a in range(n_arms):
                    state.thinning[j, a] = state.tau[j, a]
    elif rules.tau == TAU_ESTIMATED:
        _read_estimates(state, rules)
    elif rules.tau == TAU_ORACLE:
        _read_oracle(state, rules)
    if rules.splits_outcomes:
        _read_outcomes(state, rules)


@jit_inner
def _read_outcomes(state: State, rules: Rules) -> None:
    ages = state.curves.ages
    last = ages.size - 1
    while last > 0 and ages[last] > rules.outcome_limit:
        last -= 1
    set_weights(state.outcomes, last)


@jit_inner
def set_next_reading(state: State, rules: Rules) -> None:
    now = state.now[0]
    wait = REFRESH_ROUNDS
    if state.curves.at_risk.shape[0] > state.curves.arm_at_risk.shape[0]:
        wait = max(REFRESH_ROUNDS, min(now.round // REFRESH_SHARE, REFRESH_MOST))
        if rules.until_end and now.horizon - now.round < 4 * REFRESH_MOST:
            wait = REFRESH_ROUNDS  # near the end tau changes with every round
    now.read_at = (now.round // wait + 1) * wait


@jit_inner
def _limit(state: State, rules: Rules, context: int) -> float:
    """The age by which an answer of this context has to come."""
    now = state.now[0]
    limit = state.contexts[context].deadline
    if rules.tau_by_cutoff or math.isinf(limit):
        limit = now.cutoff
    # A young campaign knows no pace of arrivals yet: the first of them may come as one batch.
    if rules.until_end and now.round > 0 and now.clock >= YOUNG_SHARE * limit:
        limit = min(limit, clock_left(state))
    return limit


@jit_inner
def _read_estimates(state: State, rules: Rules) -> None:
    now, curves = state.now[0], state.curves
    _, n_contexts, n_arms = state.tally.shape
    by_context = curves.at_risk.shape[0] > n_arms
    pool(curves)
    if rules.adaptive_cutoff:
        m = age_of_share(curves, rules.cutoff_share)
        now.cutoff = m if m < math.inf else now.cutoff
    if rules.until_end and now.clock > 0.0:  # what is decided so near the end mostly earns nothing
        age = mean_age(curves, rules.longest_deadline)
        if age > 0.0:
            now.lost_rounds = int(age * now.round / now.clock)
    for a in range(n_arms):
        for j in range(n_contexts):
            row = j if by_context else 0
            if j > 0 and not by_context and state.contexts[j].deadline == state.contexts[0].deadline:
                state.tau[j, a], state.tau_error[j, a] = state.tau[0, a], state.tau_error[0, a]
                state.thinning[j, a] = state.thinning[0, a]
                continue
            tau = return_probability(curves, row, a, _limit(state, rules, j))
            known = known_decisions(curves, row, a)
            state.tau[j, a] = tau
            state.tau_error[j, a] = math.sqrt((tau * (1.0 - tau) + 1.0 / (known + 1.0)) / (known + 1.0))
            if rules.learner == LEARN_SCALED:
                state.thinning[j, a] = return_probability(curves, row, a, now.cutoff)
    if rules.return_optimism > 0.0:
        shrink_to_others(curves, state.tau, state.tau_error)


@jit_inner
def _read_oracle(state: State, rules: Rules) -> None:
    now = state.now[0]
    _, n_contexts, n_arms = state.tally.shape
    last = float(state.oracle.shape[2] - 1)
    for a in range(n_arms):
        for j in range(n_contexts):
            curve = state.oracle[min(j, state.oracle.shape[0] - 1), a]
            state.tau[j, a] = curve[int(min(_limit(state, rules, j), last))]
            state.tau_error[j, a] = 0.0
            if rules.learner == LEARN_SCALED:
                state.thinning[j, a] = curve[int(min(now.cutoff, last))]
