"""READ ME FIRST. Delay-oriented resource allocation with learning: DORAL, the paper's Algorithm 2.

    stage 1   while |S| < A':  race (Algorithm 1)                        pieces/race.py, racing.py
    stage 2   while budget is left and t <= T:
                observe context j, or who it is: a row of values          pieces/people.py
                value the arms      eta_ja = tau_a * gamma_t(j, a)       pieces/index/, pieces/bonus/
                play with probability p_j(rho) of LP_m                   pieces/pace/, pieces/rate/, pacing/
                update V, G of context j when an answer returns          pieces/learn/, estimators/ridge.py
                now and then read tau and m off the return curves        pieces/returns/, estimators/survival.py

A policy is this state machine with its pieces chosen: D-LinUCB, Random and D-ALP are compositions, not copies. Events
hold the control flow; what a piece adds stands in its own file and is called from here by a hook or a slot (hooks.py).
Whoever drives it, simulator or live campaign, calls these events in the order in which they happen:

    an arrival     open_round, take_stock if is_stock_due, admit, decide (= choose and commit)
    an answer      observe (= hear and learn)
    time alone     tick, take_stock if is_stock_due

A log is replayed with the same events, but what was decided then is a fact: it is committed in place of the choice.

Clocks are numbers that never decrease (rounds in simulation, seconds live). A decision of age d is inside an age limit
while d <= limit and leaves when d > limit, so the order of events within one tick does not matter; with one exception:
a race on `returned` delays deals those of one arm into baskets as they come. Kernels never allocate: before an event
the driver asks `is_full`, and if so goes on with `grown(state)`.
"""

from __future__ import annotations

import math

from doral._arrays import Bits
from doral._kernel import kernel, position, rare, shared
from doral.engine.choice import SKIPPED_BUDGET, SKIPPED_OVER, SKIPPED_UNAVAILABLE, UNDECIDED, Choice
from doral.engine.hooks import (
    are_levels_full,
    before_arrival,
    class_of,
    control,
    examine,
    fade,
    first_try,
    follow_answers,
    forget_odds,
    is_record_full,
    learn_answer,
    on_answer,
    on_commit,
    on_renewed,
    on_settle,
    on_tick,
    on_weighed,
    pull,
    read_returns,
    relearn,
    renew,
    spend,
    try_out,
    watch,
)
from doral.engine.lessons import is_learnable
from doral.engine.purse import add_budget, can_pay, list_cost, rest_of
from doral.engine.schedule import has_prior_moved, set_next_look, set_next_reading
from doral.engine.state import FEWEST_ANSWERS, SPENT, State, mark_all_stale, mark_stale
from doral.pacing import NO_ARM, reweigh

# What became of an answer.
LEARNED, AFTER_CUTOFF, REPEATED, GONE = 0, 1, 2, 3


@kernel
def open_round(state: State, clock: float) -> None:
    """Somebody is about to arrive: stage 1 may be over, and time has passed."""
    if state.now[0].round < state.now[0].horizon:
        before_arrival(state, clock)
    tick(state, clock)


@kernel
def decide(state: State, context: int, available: Bits) -> Choice:
    """An arrival: choose an arm or skip, reserve its cost, remember it. `available` is empty when all arms are."""
    choice = choose(state, context, available)
    arm = what_is_done(state, choice)
    if arm != NO_ARM:
        arm = position(arm)
        commit(state, position(context), arm, list_cost(state, context, arm), state.now[0].clock)
    return choice


@kernel
def what_is_done(state: State, choice: Choice) -> int:
    """The chosen arm; with those who are skipped, what the control arm stands for, unless the campaign is over."""
    if choice.arm != NO_ARM or choice.reason == SKIPPED_OVER:
        return choice.arm
    return control(state)


@kernel
def choose(state: State, context: int, available: Bits) -> Choice:
    """What this arrival is offered, and with which probability."""
    now = state.now[0]
    context = position(context)
    now.round += 1
    state.contexts[context].arrivals += 1.0
    if state.limits.learns_shares:
        count_arrival(state, context)
    if now.round > now.horizon:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_OVER)
    n_available, n_affordable = _set_allowed(state, context, available)
    if n_available == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    if n_affordable == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_BUDGET)
    restricted = n_affordable < state.allowed.size
    forget_odds(state)
    if now.racing != 0:  # stage 1
        choice = pull(state)
        on_weighed(state, choice.arm, 1.0)
    else:  # stage 2
        choice = first_try(state, context, restricted)
        if choice.reason == UNDECIDED:
            choice = spend(state, context, restricted)
    return try_out(state, context, restricted, choice)


@shared
def observe(state: State, decision: int, reward: float, clock: float) -> int:
    """An answer returned. It counts once; after the cut-off it only feeds the return curve."""
    outcome = hear(state, decision, reward, clock)
    if outcome == LEARNED:
        learn(state, decision, reward)
    return outcome


@kernel
def hear(state: State, decision: int, reward: float, clock: float) -> int:
    """When an answer came, and whether there is something to learn from it."""
    now = state.now[0]
    if decision < now.first:
        return GONE
    slot = position(decision & (state.ring.size - 1))
    if state.ring[slot].answer_age < math.inf:
        return REPEATED
    age = clock - state.ring[slot].time
    state.ring[slot].answer_age = age
    on_answer(state, slot, reward, age)
    if not is_learnable(state, slot, position(state.ring[slot].context), age):
        return AFTER_CUTOFF
    return LEARNED


@kernel
def learn(state: State, decision: int, reward: float) -> None:
    """What an answer inside the cut-off teaches."""
    slot = position(decision & (state.ring.size - 1))
    if state.ring[slot].trains != 0:
        learn_answer(state, slot, reward)


@kernel
def tick(state: State, clock: float) -> None:
    """Time has passed: decisions that are older than the cut-off by now leave it, oldest first."""
    now = state.now[0]
    now.clock = clock
    mask = state.ring.size - 1
    while now.settled < now.next and now.clock - state.ring[now.settled & mask].time > now.cutoff:
        on_settle(state, now.settled & mask)
        now.settled += 1
    on_tick(state)


@kernel
def is_stock_due(state: State) -> bool:
    """Whether what was seen is to be looked at as a whole."""
    now = state.now[0]
    return now.round >= now.read_at or now.learned >= now.calibrate_at or now.must_read != 0


@rare
def take_stock(state: State) -> None:
    """The prior follows the answers, return curves grow, tau is read off them, and arms are examined anew."""
    now = state.now[0]
    has_moved = has_prior_moved(state)
    if state.hulls.floor[0] != state.limits.return_at_least and now.learned >= FEWEST_ANSWERS:
        state.hulls.floor[0] = state.limits.return_at_least
        mark_all_stale(state)
    if has_moved:
        follow_answers(state)
    is_due = now.round >= now.read_at
    if is_due:
        watch(state)
    if now.racing == 0 and ((is_due and state.limits.reads) or now.must_read != 0):
        fade(state)
        now.read_last, now.must_read = now.round, 0
        set_next_reading(state)
        read_returns(state)
        relearn(state)
        examine(state)
        has_moved = True
    elif is_due:
        set_next_look(state)
    if has_moved:
        renew(state)
        on_renewed(state)
        mark_all_stale(state)


@shared
def count_arrival(state: State, context: int) -> None:
    """Shares that are not given are smoothed counts of those who have arrived."""
    reweigh(state.hulls, state.demand, context, state.contexts[context].arrivals + 1.0)


@kernel
def _set_allowed(state: State, context: int, available: Bits) -> tuple[int, int]:
    """allowed[a] = available and affordable; how many are available, and how many both."""
    allowed = state.allowed
    dearest = position(state.dearest[min(context, state.dearest.size - 1)])
    if available.size == 0 and state.now[0].racing == 0 and can_pay(state, context, dearest):
        return allowed.size, allowed.size  # the common case: nobody reads `allowed`
    n_available = 0
    n_affordable = 0
    nothing = control(state)
    for a in range(allowed.size):
        is_available = a != nothing and (available.size == 0 or available[a] != 0)
        is_allowed = is_available and can_pay(state, context, a)
        allowed[a] = is_allowed
        n_available += is_available
        n_affordable += is_allowed
    if nothing != NO_ARM:  # it can always be had, and makes up for no arm that is missing
        n_available += n_available > 0
        n_affordable += n_affordable > 0
    return n_available, n_affordable


@kernel
def commit(state: State, context: int, arm: int, cost: float, time: float) -> None:
    """Reserve the cost and enter the decision into the ring, as one that was made at this time."""
    now = state.now[0]
    slot = position(now.next & (state.ring.size - 1))
    decision = state.ring[slot]
    decision.time = time
    decision.context = class_of(state, context)
    decision.arm = arm
    decision.trains = 1 if now.racing == 0 or arm == control(state) else now.race_trains
    decision.answer_age = math.inf
    decision.reward, decision.weight, decision.expected = 0.0, 0.0, -1.0
    now.next += 1
    add_budget(state, -cost, -rest_of(state, context, arm, cost))
    state.contexts[context].pulls += 1.0
    state.tiers[SPENT, state.demand.depth[context]] += cost
    on_commit(state, slot, context, arm, cost)
    mark_stale(state, context)


@kernel
def is_full(state: State) -> bool:
    """Whether the state must be `grown` before the next event."""
    now = state.now[0]
    return now.next - now.first >= state.ring.size or is_record_full(state) or are_levels_full(state)
