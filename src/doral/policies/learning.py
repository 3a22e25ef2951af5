"""What answers and silences teach: rewards (V and G per context), delays (the race) and return curves."""

from __future__ import annotations

import math

from doral._jit import jit, jit_rare
from doral.estimators.median_of_means import add_delay, close_pull
from doral.estimators.ridge import refactor, update
from doral.estimators.survival import count_passage, return_probability
from doral.policies.state import LEARN_RETURNED, LEARN_SCALED, LEARN_THINNED, TAU_ESTIMATED, TAU_ORACLE, Rules, State
from doral.racing import INSTANT, MIN_AGE, RETURNED


@jit
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


@jit
def learn_reward(state: State, rules: Rules, slot: int, reward: float) -> None:
    """An answer inside the cut-off. `returned`: V and G grow now. `thinned`: V grew at the pull. `scaled`: not yet."""
    j, a = state.ring[slot].context, state.ring[slot].arm
    state.ring[slot].reward = reward
    if rules.learner == LEARN_RETURNED:
        update(state.ridge, j, a, 1.0, reward, rules.penalty)
    elif rules.learner == LEARN_THINNED:
        update(state.ridge, j, a, 0.0, reward, rules.penalty)
    state.stale[j] = 1


@jit
def settle(state: State, rules: Rules) -> None:
    """Decisions that are older than the cut-off by now leave it, oldest first."""
    now = state.now[0]
    mask = state.ring.size - 1
    while now.settled < now.next and now.clock - state.ring[now.settled & mask].time > now.cutoff:
        _leave_cutoff(state, rules, now.settled & mask)
        now.settled += 1


@jit
def _leave_cutoff(state: State, rules: Rules, slot: int) -> None:
    """A decision grew older than m: it is out of the bias window, and `scaled` now knows its thinned reward."""
    j, a = state.ring[slot].context, state.ring[slot].arm
    if rules.with_bias:
        state.window[j, a] -= 1.0
        state.stale[j] = 1
    if rules.learner == LEARN_SCALED and (rules.race_trains or state.ring[slot].in_race == 0):
        reward = state.ring[slot].reward
        state.settled_pulls[j, a] += 1.0
        state.settled_rewards[j, a] += reward
        thin = state.tau_cutoff[j, a]
        update(state.ridge, j, a, thin * thin, thin * reward, rules.penalty)
        state.stale[j] = 1


@jit
def watch(state: State, clock: float) -> None:
    """Return curves: count every decision at every grid age that it has passed since the last time."""
    ring, curves, now = state.ring, state.curves, state.now[0]
    mask = ring.size - 1
    for g in range(curves.ages.size):
        decision = curves.cursor[g]
        age = curves.ages[g]
        while decision < now.next and clock - ring[decision & mask].time > age:
            count_passage(curves, ring[decision & mask].arm, g, ring[decision & mask].answer_age)
            decision += 1
        curves.cursor[g] = decision


@jit_rare
def read_curves(state: State, rules: Rules) -> None:
    """tau by the deadline, or by the cut-off where there is no deadline; all values change with it."""
    now = state.now[0]
    n_contexts, n_arms = state.tau.shape
    by = rules.deadline if math.isfinite(rules.deadline) and not rules.tau_by_cutoff else now.cutoff
    for a in range(n_arms):
        if rules.tau == TAU_ESTIMATED:
            by_end = return_probability(state.curves, a, by)
            by_cutoff = return_probability(state.curves, a, now.cutoff)
            for j in range(n_contexts):
                state.tau[j, a], state.tau_cutoff[j, a] = by_end, by_cutoff
        elif rules.tau == TAU_ORACLE:
            last = state.oracle.shape[2] - 1
            for j in range(n_contexts):
                curve = state.oracle[min(j, state.oracle.shape[0] - 1), a]
                state.tau[j, a] = curve[int(min(by, float(last)))]
                state.tau_cutoff[j, a] = curve[int(min(now.cutoff, float(last)))]
    for j in range(n_contexts):
        state.stale[j] = 1
        if rules.learner == LEARN_SCALED:  # tau enters V and G: rebuild them with today's
            for a in range(n_arms):
                thin = state.tau_cutoff[j, a]
                state.ridge.weight[j, a] = thin * thin * state.settled_pulls[j, a]
                state.ridge.target[j, a] = thin * state.settled_rewards[j, a]
            refactor(state.ridge, j, rules.penalty)
