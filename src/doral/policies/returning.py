"""tau: which share of answers returns in time, read off the return curves; and the cut-off that follows them."""

from __future__ import annotations

import math

import numpy as np

from doral._jit import jit_inner, jit_rare, jit_rare_inner
from doral.estimators.outcomes import HIGH, LOW, count_answer, set_weights
from doral.estimators.survival import WHOLE_ARM, count_passage, known_decisions, pool, return_probability
from doral.policies.dropping import certify
from doral.policies.learning import fit_factors, forget, recalibrate, rethin, reweigh
from doral.policies.state import LEARN_SCALED, TAU_ESTIMATED, TAU_ORACLE, Rules, State, mark_stale

REFRESH_ROUNDS = 32  # return curves move slowly: they are read once in so many rounds,
WELL_KNOWN = 10.0  # decisions with a known fate
RETURN_PRIOR_SD = 0.3  # how far apart return probabilities of arms are thought to be at first
REFRESH_SHARE, REFRESH_MOST = 32, 512  # and curves by context, which cost more, once in a share of the rounds so far


@jit_inner
def _watch(state: State, clock: float) -> None:
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
def _watch_outcomes(state: State, rules: Rules, clock: float) -> None:
    """The same for answers of two kinds; before `_watch`, which moves on."""
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


@jit_rare_inner
def take_stock(state: State, rules: Rules, watches: bool) -> None:
    """What is due now and then: the prior follows the answers, return curves grow, and tau is read off them."""
    now = state.now[0]
    if now.learned >= now.calibrate_at:
        recalibrate(state, rules)
    is_due = now.round >= now.read_at
    if is_due and watches:
        if rules.splits_outcomes:
            _watch_outcomes(state, rules, now.clock)
        _watch(state, now.clock)
        now.first = min(now.settled, state.curves.cursor[state.curves.cursor.size - 1])
    reads = rules.tau == TAU_ESTIMATED or rules.until_end or rules.drops or math.isfinite(rules.half_life)
    if now.racing == 0 and ((is_due and reads) or now.must_read != 0):
        read_curves(state, rules)
        now.must_read = 0
    elif is_due:
        now.read_at = (now.round // REFRESH_ROUNDS + 1) * REFRESH_ROUNDS


@jit_rare
def read_curves(state: State, rules: Rules) -> None:
    """tau by the deadline, or by the cut-off where there is no deadline; all values change with it."""
    now = state.now[0]
    if math.isfinite(rules.half_life) and now.round > now.read_last:
        forget(state, rules, now.round - now.read_last)
    now.read_last = now.round
    _set_next_reading(state, rules)
    if rules.silent:
        fit_factors(state, rules)
    elif rules.tau == TAU_ESTIMATED:
        _read_estimates(state, rules)
    elif rules.tau == TAU_ORACLE:
        _read_oracle(state, rules)
    if rules.splits_outcomes:
        _read_outcomes(state, rules)
    if rules.learner == LEARN_SCALED or rules.splits_outcomes:
        rethin(state, rules)
    if rules.drops:
        certify(state, rules)
    for j in range(state.contexts.size):
        mark_stale(state, j)


@jit_inner
def _read_outcomes(state: State, rules: Rules) -> None:
    ages = state.curves.ages
    last = ages.size - 1
    while last > 0 and ages[last] > rules.outcome_limit:
        last -= 1
    set_weights(state.outcomes, last)


@jit_inner
def _set_next_reading(state: State, rules: Rules) -> None:
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
    if rules.until_end and now.round > 0:  # the clock of one round, on average, times the rounds that are left
        limit = min(limit, (now.horizon - now.round) * (now.clock / now.round))
    return limit


@jit_rare_inner
def _read_estimates(state: State, rules: Rules) -> None:
    now, curves = state.now[0], state.curves
    _, n_contexts, n_arms = state.tally.shape
    by_context = curves.at_risk.shape[0] > n_arms
    pool(curves)
    if rules.adaptive_cutoff:
        _follow_curves(state, rules)
    if rules.until_end:
        _set_lost_rounds(state, rules)
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
        _shrink_to_all(state)


@jit_rare_inner
def _shrink_to_all(state: State) -> None:
    """An arm of which little is known is thought to return like the others, as far as those agree.

    Normal means with known errors: the spread between well-known arms is the prior, per context. A few arms that agree
    by chance must not make the rest of them certain, so the spread starts from a guess that counts like one arm.
    """
    _, n_contexts, n_arms = state.tally.shape
    for j in range(n_contexts):
        row = j if state.curves.at_risk.shape[0] > n_arms else 0
        n, mean, square, noise = 0.0, 0.0, 0.0, 0.0
        for a in range(n_arms):
            if known_decisions(state.curves, row, a) >= WELL_KNOWN:
                n += 1.0
                mean += state.tau[j, a]
                square += state.tau[j, a] ** 2
                noise += state.tau_error[j, a] ** 2
        if n < 3.0:
            continue
        mean /= n
        excess = max(square - n * mean * mean - (n - 1.0) * noise / n, 0.0)
        spread = (excess + RETURN_PRIOR_SD**2) / n
        for a in range(n_arms):
            keep = spread / (spread + state.tau_error[j, a] ** 2)
            state.tau[j, a] = mean + keep * (state.tau[j, a] - mean)
            state.tau_error[j, a] *= math.sqrt(keep)


@jit_rare_inner
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


@jit_rare_inner
def _follow_curves(state: State, rules: Rules) -> None:
    """m: the first grid age by which `cutoff_share` of all answers of the watched ages have come."""
    curves = state.curves
    n_ages = curves.ages.size
    last = curves.ages[n_ages - 1]
    total = 0.0
    for a in range(curves.arm_at_risk.shape[0]):
        total += curves.arm_at_risk[a, 0] * return_probability(curves, WHOLE_ARM, a, last)
    if total == 0.0:
        return
    for g in range(n_ages):
        come = 0.0
        for a in range(curves.arm_at_risk.shape[0]):
            come += curves.arm_at_risk[a, 0] * return_probability(curves, WHOLE_ARM, a, curves.ages[g])
        if come >= rules.cutoff_share * total:
            state.now[0].cutoff = curves.ages[g]
            return


@jit_rare_inner
def _set_lost_rounds(state: State, rules: Rules) -> None:
    """The mean age, in rounds, of answers that come in time: what is decided so near the end mostly earns nothing."""
    curves, now = state.curves, state.now[0]
    total, weight = 0.0, 0.0
    for a in range(curves.arm_at_risk.shape[0]):
        before, start = 0.0, 0.0
        for g in range(curves.ages.size):
            age = curves.ages[g]
            if age > rules.longest_deadline:
                break
            by = return_probability(curves, WHOLE_ARM, a, age)
            total += curves.arm_at_risk[a, 0] * (by - before) * 0.5 * (start + age)
            before, start = by, age
        weight += curves.arm_at_risk[a, 0] * before
    if weight > 0.0 and now.clock > 0.0:
        now.lost_rounds = int(total / weight * now.round / now.clock)
