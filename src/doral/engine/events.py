"""READ ME FIRST. Delay-oriented resource allocation with learning: DORAL, the paper's Algorithm 2.

    stage 1   while |S| < A':  race (Algorithm 1)                        race.py
    stage 2   while budget is left and t <= T:
                observe context j, or an arrival with features           people.py
                value the arms      eta_ja = tau_a * gamma_t(j, a)       decide.py, bonus.py
                play with probability p_j(rho) of LP_m                   decide.py, budget.py, pacing/
                update V, G of context j when an answer returns          learn.py, estimators/
                at a refresh, read tau and m off the return curves       returns.py

A policy is this state machine with its branches chosen by `state.rules`: D-LinUCB, Random and D-ALP are options, not
copies. The driver, a simulator or a live campaign, calls these events in the order in which they happen:

    an arrival     welcome (= open_round, refresh if due, admit), choose, commit
    an answer      observe (= hear and learn)
    time alone     pass_time

A log is replayed with the same events, but what was decided then is a fact: it is committed in place of the choice.

Clocks are numbers that never decrease (rounds in simulation, seconds live). A decision of age d is inside an age limit
while d <= limit and leaves when d > limit, so the order of events within one tick does not matter; with one exception:
a race on `returned` delays deals those of one arm into baskets as they come. Kernels never allocate: before an event
the driver asks `is_full`, and if so goes on with `grown(state)`.
"""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Bits, Floats
from doral.compiled import kernel, position, rare, shared
from doral.engine.bonus import set_stretch_of_contexts
from doral.engine.budget import (
    add_budget,
    can_pay,
    cancel_claim,
    count_payment,
    count_recalled_answer,
    fade_costs,
    lapse_claims,
    read_costs,
    reserve,
    rest_of,
    set_planned_costs,
    settle_payment,
)
from doral.engine.decide import (
    SKIPPED_BUDGET,
    SKIPPED_OVER,
    SKIPPED_UNAVAILABLE,
    Choice,
    clear_odds,
    pull,
    spend,
)
from doral.engine.exploration import UNDECIDED, explore, first_try, plan_first_tries
from doral.engine.forecast import follow_arrivals
from doral.engine.learn import (
    cancel_learned,
    fade_rewards,
    follow_answers,
    is_calibration_due,
    learn_answer,
    learn_correction,
    learn_pull,
    learn_recalled,
    rebuild_rewards,
    renew_pending,
    reweigh_answer,
    set_next_look,
    set_next_reading,
    settle,
)
from doral.engine.people import (
    KNOWN,
    admit,
    are_levels_full,
    cancel_aged,
    count_aged,
    fade_lines,
    is_model_due,
    recall_arrival,
    remember_arrival,
    rescore_contexts,
)
from doral.engine.race import cancel_pull, count_pull, is_race_full, judge_race, record_delay
from doral.engine.returns import (
    cancel_trial,
    count_recalled_outcome,
    count_recalled_positive,
    count_silence,
    fade_silence,
    read_returns,
)
from doral.engine.state import (
    EARLY,
    FEWEST_ANSWERS,
    NOISE_ONLY,
    PRINTED,
    SCALED,
    SPENT,
    State,
    class_of,
    is_learnable,
    mark_all_stale,
    mark_stale,
    slot_of,
)
from doral.estimators.ridge import refactor_rows
from doral.estimators.survival import count_passage, is_by_context
from doral.pacing import NO_ARM, reweigh

# The outcome of an answer.
LEARNED, AFTER_CUTOFF, REPEATED, GONE = 0, 1, 2, 3
WATCH_EVERY = 512  # recorded decisions, between two looks at the return curves

# --- an arrival ------------------------------------------------------------------------------------------------------


@kernel
def welcome(state: State, context: int, traits: Floats, weight: float, deadline: float, clock: float) -> int:
    """Prepare for an arrival of this context; return its row of values: the context, or a row of its own."""
    open_round(state, clock)
    if is_refresh_due(state):
        refresh(state)
    if state.rules.has_people:
        return position(admit(state, context, traits, weight, deadline))
    return position(context)


@kernel
def open_round(state: State, clock: float) -> None:
    """Let time pass until an arrival; stage 1 may end before it."""
    if state.now[0].racing != 0 and state.now[0].round < state.now[0].horizon:
        judge_race(state, clock)
    tick(state, clock)


@kernel
def choose(state: State, row: int, available: Bits) -> Choice:
    """Return what this arrival is offered, and with which probability. `available` is empty when all arms are."""
    now = state.now[0]
    row = position(row)
    now.round += 1
    state.contexts[row].arrivals += 1.0
    if state.limits.learns_shares:
        count_arrival(state, row)
    if now.round > now.horizon:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_OVER)
    n_available, n_affordable = _set_allowed(state, row, available)
    if n_available == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    if n_affordable == 0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_BUDGET)
    restricted = n_affordable < state.allowed.size
    clear_odds(state)
    if now.racing != 0:  # stage 1
        choice = pull(state)
    else:  # stage 2
        choice = first_try(state, row, restricted)
        if choice.reason == UNDECIDED:
            choice = spend(state, row, restricted)
    if state.rules.explore > 0.0:
        choice = explore(state, row, restricted, choice)
    return choice


@kernel
def action_of(state: State, choice: Choice) -> int:
    """Return the arm that is played: the chosen one; with a skip the control, unless the campaign is over."""
    if choice.arm != NO_ARM or choice.reason == SKIPPED_OVER:
        return choice.arm
    return state.rules.control


@kernel
def commit(state: State, row: int, arm: int, cost: float, time: float) -> None:
    """Reserve the cost and enter the decision into the ring, as one that was made at this time."""
    now, rules = state.now[0], state.rules
    slot = position(now.next & (state.ring.size - 1))
    decision = state.ring[slot]
    decision.time = time
    decision.context = class_of(state, row)
    decision.arm = arm
    decision.answer_age = math.inf
    decision.reward, decision.weight, decision.expected = 0.0, 0.0, -1.0
    now.next += 1
    add_budget(state, -cost, -rest_of(state, row, arm, cost))
    state.contexts[row].pulls += 1.0
    state.tiers[SPENT, state.demand.depth[row]] += cost
    if rules.has_people:
        remember_arrival(state, slot, row, arm)
    if rules.has_learned_costs:
        reserve(state, slot, arm, cost)
    if rules.has_race:
        count_pull(state, slot, arm, cost)
    if rules.has_start:
        state.start.tries[arm] += 1.0
    learn_pull(state, slot, row, arm)
    mark_stale(state, row)


@shared
def count_arrival(state: State, context: int) -> None:
    """Count an arrival for the shares of contexts: smoothed counts, where they are not given."""
    reweigh(state.hulls, state.demand, context, state.contexts[context].arrivals + 1.0)


@kernel
def _set_allowed(state: State, row: int, available: Bits) -> tuple[int, int]:
    """Set allowed[a] = available and affordable; return how many are available, and how many both."""
    allowed = state.allowed
    dearest = position(state.dearest[min(row, state.dearest.size - 1)])
    if available.size == 0 and state.now[0].racing == 0 and can_pay(state, row, dearest):
        return allowed.size, allowed.size  # the common case: `allowed` is not read
    n_available = 0
    n_affordable = 0
    control = state.rules.control
    for a in range(allowed.size):
        is_available = a != control and (available.size == 0 or available[a] != 0)
        is_allowed = is_available and can_pay(state, row, a)
        allowed[a] = is_allowed
        n_available += is_available
        n_affordable += is_allowed
    if control != NO_ARM:  # it can always be had, and makes up for no arm that is missing
        n_available += n_available > 0
        n_affordable += n_affordable > 0
    return n_available, n_affordable


# --- an answer -------------------------------------------------------------------------------------------------------


@shared
def observe(state: State, number: int, reward: float, clock: float) -> int:
    """Take in an answer; return its outcome. It counts once; after the cut-off it only feeds the return curve."""
    outcome = hear(state, number, reward, clock)
    if outcome == LEARNED:
        learn(state, number, reward)
    return outcome


@kernel
def hear(state: State, number: int, reward: float, clock: float) -> int:
    """Enter when an answer came; return whether there is something to learn from it."""
    if number < state.now[0].first:
        return GONE
    slot = position(number & (state.ring.size - 1))
    if state.ring[slot].answer_age < math.inf:
        return REPEATED
    age = clock - state.ring[slot].time
    _enter_age(state, slot, reward, age)
    if not is_learnable(state, slot, position(state.ring[slot].context), age):
        return AFTER_CUTOFF
    return LEARNED


@kernel
def _enter_age(state: State, slot: int, reward: float, age: float) -> None:
    """Enter the age at which a decision in the ring was answered."""
    rules = state.rules
    state.ring[slot].answer_age = age
    if rules.has_outcomes:  # even if it is late, it tells when its kind returns
        state.ring[slot].reward = reward
    if rules.has_race:
        record_delay(state, slot, age)
    if rules.has_predictions and not rules.predicts_by_silence and age <= state.limits.longest_deadline:
        state.predictions.counts[KNOWN] += 1


@kernel
def learn(state: State, number: int, reward: float) -> None:
    """Learn from an answer inside the cut-off."""
    learn_answer(state, position(number & (state.ring.size - 1)), reward)


# --- time ------------------------------------------------------------------------------------------------------------


@kernel
def tick(state: State, clock: float) -> None:
    """Let time pass: decisions that are older than the cut-off by now leave it, oldest first."""
    now, rules = state.now[0], state.rules
    now.clock = clock
    mask = state.ring.size - 1
    while now.settled < now.next and now.clock - state.ring[now.settled & mask].time > now.cutoff:
        settle(state, now.settled & mask)
        now.settled += 1
    if not rules.has_curves:
        now.first = now.settled
    if rules.has_learned_costs:
        lapse_claims(state)
    if rules.has_forecast:
        follow_arrivals(state)
    if rules.bonus == PRINTED and now.racing == 0:  # n = t: every bonus moves in every round
        mark_all_stale(state)


@rare
def pass_time(state: State, clock: float) -> None:
    """Let time pass without an arrival."""
    tick(state, clock)
    if is_refresh_due(state):
        refresh(state)


@kernel
def is_refresh_due(state: State) -> bool:
    """Return whether estimates are due for a refresh."""
    now = state.now[0]
    return now.round >= now.read_at or now.learned >= now.calibrate_at or now.must_read != 0


@rare
def refresh(state: State) -> None:
    """Re-estimate: the prior follows the answers, return curves grow, and tau and the cut-off are read off them."""
    now, rules = state.now[0], state.rules
    has_moved = is_calibration_due(state)
    if state.hulls.floor[0] != state.limits.return_at_least and now.learned >= FEWEST_ANSWERS:
        state.hulls.floor[0] = state.limits.return_at_least
        mark_all_stale(state)
    if has_moved:
        follow_answers(state)
    is_due = now.round >= now.read_at
    if is_due and rules.has_curves:
        watch(state)
    if now.racing == 0 and ((is_due and state.limits.reads) or now.must_read != 0):
        if rules.forgets:
            _fade(state)
        now.read_last, now.must_read = now.round, 0
        set_next_reading(state)
        read_returns(state)
        if rules.has_learned_costs:
            read_costs(state)
        if rules.learner == EARLY or rules.learner == SCALED or rules.has_outcomes:  # tau and trials enter V and G
            rebuild_rewards(state)
        has_moved = True
    elif is_due:
        set_next_look(state)
    if has_moved:
        renew_pending(state)
        if rules.has_start:
            plan_first_tries(state)
        _renew(state)
        mark_all_stale(state)


@kernel
def _renew(state: State) -> None:
    """Work out what follows from new estimates and norms."""
    if state.rules.has_people:
        rescore_contexts(state)
    elif state.rules.stretches:
        set_stretch_of_contexts(state)


@rare
def _fade(state: State) -> None:
    """Discount all that was learned, with a half-life."""
    rules = state.rules
    fade_rewards(state)
    if rules.learner == EARLY:
        fade_silence(state)
    if rules.has_learned_costs:
        fade_costs(state)
    if rules.has_people:
        fade_lines(state)


@kernel
def watch(state: State) -> None:
    """Count every decision at every age of the grid that it has passed since the last time."""
    now, ring, curves = state.now[0], state.ring, state.curves
    end, mask, clock = now.next, np.uint64(ring.size - 1), now.clock  # unsigned: no test for indices from the end
    n_arms = curves.arm_at_risk.shape[0]
    by_context = is_by_context(curves)
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
            _pass_age(state, decision & (ring.size - 1), g, clock - ring[slot].time)
            decision += 1
        curves.cursor[g] = decision
    now.first = min(now.settled, curves.cursor[curves.cursor.size - 1])


@kernel
def _pass_age(state: State, slot: int, g: int, age: float) -> None:
    """Count a decision that has passed the grid age g wherever ages count."""
    rules = state.rules
    if rules.learner == EARLY:
        count_silence(state, slot, g)
    if rules.has_learned_costs:
        count_payment(state, slot, g)
    if rules.has_outcomes:
        reweigh_answer(state, slot, g, age)
    if rules.has_people:
        count_aged(state, slot, g)


@kernel
def is_full(state: State) -> bool:
    """Return whether the state must be `grown`, or a model refit, before the next event."""
    now, rules = state.now[0], state.rules
    if now.next - now.first >= state.ring.size:
        return True
    if rules.has_race and is_race_full(state):
        return True
    return rules.has_people and (are_levels_full(state) or (rules.has_predictions and is_model_due(state)))


# --- beyond the ordinary: records, late answers, cancellations, corrections, payments ---------------------------------


@rare
def record(
    state: State,
    context: int,
    traits: Floats,
    weight: float,
    deadline: float,
    arm: int,
    cost: float,
    time: float,
    clock: float,
    is_arrival: bool,
) -> None:
    """Take in a decision that was made elsewhere: it teaches as one of ours does.

    It is an arrival only if it is one of those that are expected; `cost` is what it takes from the budget, and the arm
    is below 0 for a skip.
    """
    now = state.now[0]
    tick(state, clock)
    if is_arrival:
        now.round += 1
    elif now.round == 0:
        now.opened = clock
    row = position(context)
    if state.rules.has_people:
        row = position(admit(state, context, traits, weight, deadline))
    state.contexts[row].arrivals += 1.0
    if state.limits.learns_shares:
        count_arrival(state, row)
    if arm >= 0:
        commit(state, row, arm, cost, time)
        now.read_at = min(now.read_at, now.round)  # the next arrival is decided with it
        if now.next % WATCH_EVERY == 0 and state.rules.has_curves:  # the ring must not hold all of a log
            watch(state)


@rare
def recall(state: State, number: int, context: int, arm: int, reward: float, age: float, traits: Floats) -> int:
    """Take in the age of an answer that came long ago: what silence has taught meanwhile is taken back."""
    rules = state.rules
    if rules.has_people:
        recall_arrival(state, number, context, traits)
    if number >= state.now[0].first:
        slot = position(number & (state.ring.size - 1))
        if state.ring[slot].answer_age < math.inf:
            return REPEATED
        _enter_age(state, slot, reward, age)
    if rules.has_curves:
        _recall_passages(state, number, context, arm, age)
    if rules.has_learned_costs:
        count_recalled_answer(state, number, context, arm, age)
    if rules.has_outcomes:
        count_recalled_outcome(state, number, context, arm, reward, age)
    if rules.learner == EARLY:
        count_recalled_positive(state, number, context, arm, reward, age)
    if not is_learnable(state, slot_of(state, number), context, age):
        return AFTER_CUTOFF
    return LEARNED


@rare
def learn_late(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """Learn from such an answer, if it came inside the cut-off."""
    if number >= state.now[0].settled:
        learn(state, number, reward)
    else:
        learn_recalled(state, number, context, arm, reward)


@kernel
def _recall_passages(state: State, number: int, context: int, arm: int, age: float) -> None:
    """Correct the ages that a decision has passed as pending: now it is known when the answer came."""
    curves = state.curves
    group = arm
    if is_by_context(curves):
        group += curves.arm_at_risk.shape[0] * context
    for g in range(curves.ages.size):
        if number < curves.cursor[g]:
            if g > 0 and age <= curves.ages[g - 1]:
                curves.at_risk[group, g] = max(0.0, curves.at_risk[group, g] - 1.0)
            elif age <= curves.ages[g]:
                curves.returned[group, g] = min(curves.returned[group, g] + 1.0, curves.at_risk[group, g])


@rare
def cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """Take back a decision without an answer: its cost is free again and it is forgotten as far as possible.

    Undone: the reservation; its place among the pulls of its context (the bonus) and of its arm (the race); its risk
    in the return curves; what the pull itself taught THINNED, or the silence SCALED and EARLY; its place among pending
    decisions. Not undone: it stays in the bias window until it is older than the cut-off, where SCALED then takes it
    for a silence; a `min_age` race keeps the pull with the age that it had; what was decided meanwhile.
    """
    rules = state.rules
    add_budget(state, cost, rest_of(state, context, arm, cost))
    state.tiers[SPENT, state.demand.depth[context]] -= cost
    state.contexts[context].pulls = max(0.0, state.contexts[context].pulls - 1.0)
    if rules.has_learned_costs:
        cancel_claim(state, number, context, arm)
    if rules.has_curves:
        _cancel_passages(state, number, context, arm)
    if rules.learner == EARLY:
        cancel_trial(state, number, context, arm)
    cancel_learned(state, number, context, arm)
    if rules.has_people:
        cancel_aged(state, number, arm)
    if rules.has_race and in_race:
        cancel_pull(state, number, arm, cost, clock)
    if rules.has_start:
        state.start.tries[arm] = max(0.0, state.start.tries[arm] - 1.0)
        state.start.is_open[0] = 1.0
    if number >= state.now[0].first:
        # neither answered nor at risk: every comparison with it is false
        state.ring[number & (state.ring.size - 1)].answer_age = math.nan
    mark_stale(state, context)


@kernel
def _cancel_passages(state: State, number: int, context: int, arm: int) -> None:
    """Take a pending decision out of every age that it has passed."""
    curves = state.curves
    group = arm
    if is_by_context(curves):
        group += curves.arm_at_risk.shape[0] * context
    for g in range(curves.ages.size):
        if number < curves.cursor[g]:
            curves.at_risk[group, g] = max(0.0, curves.at_risk[group, g] - 1.0)


@rare
def correct(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """Replace a reward that was learned by another one.

    What was learned is then what it would be had the answer been right at once, however wrong it was. What was measured
    on it follows with the next arrival; in a large problem, at the next refresh. With a half-life the answer moves by
    what is still remembered of it, and not at all once the decision has left the ring. With `outcome_split`, ages that
    the decision has passed stay counted for the outcome as it was.
    """
    learn_correction(state, number, context, arm, previous, reward)


@rare
def pay(state: State, number: int, context: int, arm: int, age: float, change: float) -> None:
    """Enter the share of its list price that a decision costs, or by how much it was wrong (age below 0)."""
    if state.rules.has_learned_costs:
        settle_payment(state, number, context, arm, age, change)


@rare
def recompute(state: State) -> None:
    """Work out whatever follows from the sums, after an arm was added."""
    rules = state.rules
    if rules.prior > NOISE_ONLY:
        rebuild_rewards(state)
    if rules.has_learned_costs:
        set_planned_costs(state)
    if not rules.has_people:
        refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])
    _renew(state)


@rare
def prepare(state: State) -> None:
    """Fill in what a first state has to be computed for."""
    refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])
    if state.now[0].racing == 0:
        refresh(state)
