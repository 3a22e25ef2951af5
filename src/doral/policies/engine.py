"""READ ME FIRST. Delay-oriented resource allocation with learning: DORAL, the paper's Algorithm 2.

    stage 1   while |S| < A':  race (Algorithm 1)                        screening.py, racing.py
    stage 2   while budget is left and t <= T:
                observe context j
                value the arms      eta_ja = tau_a * gamma_t(j, a)       scoring.py
                play with probability p_j(rho) of LP_m                   allocation.py, pacing.py
                update V, G of context j when an answer returns          learning.py, estimators/
                now and then read tau and m off the return curves        stock.py, returning.py, dropping.py

A policy is this state machine with its pieces chosen by `Rules`: D-LinUCB, Random and D-ALP are choices, not copies.
Whoever drives it, simulator or live campaign, calls exactly the three events below, in the order in which they happen.

Clocks are numbers that never decrease (rounds in simulation, seconds live). A decision of age d is inside an age limit
while d <= limit and leaves when d > limit, so the order of events within one tick does not matter; with one exception:
a race on `returned` delays deals those of one arm into baskets as they come. Kernels never allocate: before an event
the driver asks `is_full`, and if so goes on with `grown(state)`.
"""

from __future__ import annotations

import math

from doral._arrays import Bits
from doral._jit import jit, jit_inner, jit_rare_inner, position
from doral.estimators.median_of_means import add_delay, add_open_pull
from doral.estimators.ridge import update
from doral.pacing import NO_ARM
from doral.policies.allocation import allocate, play_best, set_allowed
from doral.policies.choice import SKIPPED_BUDGET, SKIPPED_OVER, SKIPPED_UNAVAILABLE, Choice
from doral.policies.learning import learn_delay, learn_reward, settle
from doral.policies.screening import judge_race, race_step
from doral.policies.state import BONUS_PRINTED, LEARN_THINNED, PACE_LP, SPENT, TAU_ESTIMATED, Rules, State, mark_stale
from doral.policies.stock import take_stock
from doral.racing import INSTANT, KAPLAN_MEIER, MIN_AGE

# What became of an answer.
LEARNED, LATE, REPEATED, GONE = 0, 1, 2, 3


@jit
def decide(state: State, rules: Rules, context: int, available: Bits, clock: float) -> Choice:
    """An arrival: choose an arm or skip, reserve its cost, remember it. `available` is empty when all arms are."""
    now = state.now[0]
    if now.racing != 0 and now.round < now.horizon:
        judge_race(state, rules, clock)
    tick(state, rules, clock)
    context = position(context)
    now.round += 1
    if rules.learn_shares:
        _count_arrival(state, context)
    if now.round > now.horizon:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_OVER)
    n_available, n_affordable = set_allowed(state, available)
    if n_available == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    if n_affordable == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_BUDGET)
    restricted = n_affordable < state.allowed.size
    if now.racing != 0:
        choice = race_step(state)  # stage 1
    elif rules.pacing == PACE_LP:
        choice = allocate(state, rules, context, restricted)  # stage 2
    else:
        choice = play_best(state, rules, context, restricted)
    if choice.arm != NO_ARM:
        _commit(state, rules, context, choice.arm)
    return choice


@jit
def observe(state: State, rules: Rules, decision: int, reward: float, clock: float) -> int:
    """An answer returned. It counts once; after the cut-off it only feeds the return curve."""
    now = state.now[0]
    if decision < now.first:
        return GONE
    slot = position(decision & (state.ring.size - 1))
    if state.ring[slot].answer_age < math.inf:
        return REPEATED
    age = clock - state.ring[slot].time
    state.ring[slot].answer_age = age
    if now.racing != 0:
        learn_delay(state, rules, slot, age)
    if rules.splits_outcomes:
        state.ring[slot].reward = reward  # even if it is late, it tells when its kind returns
    if age > now.cutoff or (rules.splits_outcomes and age > rules.outcome_limit):
        return LATE
    if state.ring[slot].in_race == 0 or rules.race_trains:
        learn_reward(state, rules, slot, reward)
    return LEARNED


@jit
def tick(state: State, rules: Rules, clock: float) -> None:
    """Time has passed: decisions leave the cut-off; now and then, what was seen is looked at as a whole."""
    now = state.now[0]
    now.clock = clock
    settle(state, rules)
    if rules.bonus == BONUS_PRINTED and now.racing == 0:
        for j in range(state.contexts.size):
            mark_stale(state, j)  # n = t: every bonus moves in every round
    watches = rules.tau == TAU_ESTIMATED or (rules.races and rules.race.censoring == KAPLAN_MEIER)
    if not watches:
        now.first = now.settled
    if now.round >= now.read_at or now.learned >= now.calibrate_at or now.must_read != 0:
        take_stock(state, rules, watches)


@jit_inner
def _commit(state: State, rules: Rules, context: int, arm: int) -> None:
    """Reserve the cost and enter the decision into the ring."""
    now = state.now[0]
    slot = position(now.next & (state.ring.size - 1))
    arm = position(arm)
    cost = state.hulls.costs[arm]
    decision = state.ring[slot]
    decision.time = now.clock
    decision.context = context
    decision.arm = arm
    decision.in_race = now.racing
    decision.answer_age = math.inf
    decision.reward, decision.weight, decision.expected = 0.0, 0.0, -1.0
    now.next += 1
    now.budget_left -= cost
    state.contexts[context].pulls += 1.0
    if now.racing != 0:
        now.race_rounds += 1
        now.race_spend += cost
        state.race.arms[arm].pulls += 1
        if rules.race.censoring == MIN_AGE:
            decision.position = add_open_pull(state.race.delays, arm, now.clock)
    state.tiers[SPENT, state.depths[context]] += cost
    if rules.with_bias:
        state.window[context, arm] += 1.0
    if rules.counts_pending:
        decision.expected, decision.reading = min(state.tau[context, arm], 1.0), now.read_last
        update(state.ridge, state.contexts.size + context, arm, decision.expected, 0.0)
    elif rules.learner == LEARN_THINNED and (now.racing == 0 or rules.race_trains):
        update(state.ridge, context, arm, 1.0, 0.0)
    mark_stale(state, context)


@jit_rare_inner
def _count_arrival(state: State, context: int) -> None:
    """Shares learned online: smoothed counts."""
    state.contexts[context].arrivals += 1.0
    n_contexts = state.shares.size
    for j in range(n_contexts):
        state.shares[j] = (state.contexts[j].arrivals + 1.0) / (state.now[0].round + n_contexts)


@jit_inner
def tell_delay(state: State, rules: Rules, decision: int, delay: float) -> None:
    """`instant` racing, in simulation only: the delay of a pull is known as soon as it is made."""
    slot = decision & (state.ring.size - 1)
    if rules.race.censoring == INSTANT and state.ring[slot].in_race != 0 and delay < math.inf:
        arm = state.ring[slot].arm
        add_delay(state.race.delays, arm, delay)
        state.race.arms[arm].answers += 1


@jit
def is_full(state: State) -> bool:
    """Whether the state must be `grown` before the next event."""
    now = state.now[0]
    if now.next - now.first >= state.ring.size:
        return True
    if now.racing != 0:
        room = state.race.delays.sums.shape[1] - 1
        for a in range(state.race.arms.size):
            if state.race.arms[a].pulls >= room:  # all open pulls of an arm may answer in one round
                return True
    return False
