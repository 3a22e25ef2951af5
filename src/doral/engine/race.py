"""Stage 1: PR-SAR, patient racing (Algorithm 1). Which arms answer soonest, from delays that may be heavy tailed.

A Hoeffding race on delays, where smaller is better. Arms are pulled in turn. After each full pass over the arms still
racing, an arm is accepted when it is faster than enough of its rivals by their intervals, and rejected when enough of
them are faster than it. Intervals have relative width 2/sqrt(n): a heuristic that fits a realistic budget, not a proven
bound. When A' arms are accepted, or at the cap on its share of the budget, the race fixes the cut-off m and ends.
"""

from __future__ import annotations

import math

import numpy as np

from doral._arrays import Ints
from doral.compiled import kernel, rare
from doral.engine.state import Race, State
from doral.estimators.median_of_means import add_delay, add_open_pull, close_pull, median_of_means
from doral.estimators.survival import ReturnCurves, restricted_mean
from doral.pacing import NO_ARM

# Standing of an arm.
RACING, ACCEPTED, REJECTED = 0, 1, 2
# How delays that are not known yet are treated (`censoring`).
CENSOR_RETURNED, CENSOR_MIN_AGE, CENSOR_KAPLAN_MEIER, CENSOR_INSTANT = 0, 1, 2, 3
CENSORING = {
    "returned": CENSOR_RETURNED,
    "min_age": CENSOR_MIN_AGE,
    "kaplan_meier": CENSOR_KAPLAN_MEIER,
    "instant": CENSOR_INSTANT,
}
DELTA, TAIL_EXPONENT = 0.05, 0.5  # of the median of means; alpha: anything from 0.5 on is the same in practice


def width_constant(budget: float) -> float:
    """Return 2 log(16 / (1 - B^-alpha)), the constant under the first root of the width."""
    return 2.0 * math.log(16.0 / (1.0 - max(budget, 2.0) ** -TAIL_EXPONENT))


def start_race(race: Race, n_racing: int, control: int) -> None:
    """Set all arms racing, but for the control."""
    race.arms["estimate"], race.arms["lower"], race.arms["upper"] = np.inf, -np.inf, np.inf
    race.progress["pass_left"] = n_racing
    if control != NO_ARM:
        race.arms["standing"][control] = REJECTED


@rare
def set_bounds(race: Race, curves: ReturnCurves, arm: int, clock: float) -> None:
    """Eqs. (UCB) and (LCB), with the plug-in d^M for the unknown mean delay."""
    n = race.delays.held[arm] if race.rules.censoring == CENSOR_MIN_AGE else race.arms[arm].answers
    if race.rules.censoring == CENSOR_KAPLAN_MEIER:
        estimate = restricted_mean(curves, arm)
    else:
        estimate = median_of_means(race.delays, arm, clock, race.rules.delta, race.rules.printed_baskets)
    race.arms[arm].estimate = estimate
    if n < max(race.rules.min_answers, 1) or estimate == math.inf:
        race.arms[arm].lower, race.arms[arm].upper = -math.inf, math.inf
        return
    width = math.sqrt(race.rules.width_constant / n) + 2.0 * estimate * n ** -min(race.rules.tail_exponent, 0.5)
    race.arms[arm].lower = estimate - width
    race.arms[arm].upper = estimate + width


@rare
def judge(race: Race, curves: ReturnCurves, clock: float) -> None:
    """The end of a pass: new bounds for the arms still racing, then acceptances and rejections."""
    n_arms = race.arms.size
    racing = 0
    accepted = 0
    for a in range(n_arms):
        if race.arms[a].standing == RACING:
            racing += 1
            set_bounds(race, curves, a, clock)
        elif race.arms[a].standing == ACCEPTED:
            accepted += 1
    for a in range(n_arms):
        if race.arms[a].standing != RACING or accepted >= race.rules.accept:
            continue
        surely_slower = 0
        surely_faster = 0
        for other in range(n_arms):
            if other != a and race.arms[other].standing == RACING:
                surely_slower += race.arms[a].upper < race.arms[other].lower
                surely_faster += race.arms[a].lower > race.arms[other].upper
        missing = race.rules.accept - accepted
        if race.rules.printed_acceptance:
            accept, reject = surely_faster > missing, False
        else:
            accept, reject = surely_slower >= racing - missing, surely_faster >= missing
        if accept:
            race.arms[a].standing = ACCEPTED
            accepted += 1
            racing -= 1
        elif reject:
            race.arms[a].standing = REJECTED
            racing -= 1


@rare
def is_over(race: Race) -> bool:
    """Whether A' arms are accepted."""
    accepted = 0
    for a in range(race.arms.size):
        accepted += race.arms[a].standing == ACCEPTED
    return accepted >= race.rules.accept


@rare
def fill_with_smallest(race: Race, curves: ReturnCurves, clock: float) -> None:
    """At the cap on stage 1's budget: accept the arms with the smallest estimates until A' are accepted."""
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            set_bounds(race, curves, a, clock)
    while not is_over(race):
        best = -1
        for a in range(race.arms.size):
            if race.arms[a].standing == RACING and (best < 0 or race.arms[a].estimate < race.arms[best].estimate):
                best = a
        if best < 0:
            return
        race.arms[best].standing = ACCEPTED


@rare
def close_race(race: Race, curves: ReturnCurves, clock: float) -> float:
    """Reject the rest; m = the largest UCB over accepted (or all) arms, infinite where none has one."""
    cutoff = 0.0
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            race.arms[a].standing = REJECTED
        if race.rules.cutoff_over_all or race.arms[a].standing == ACCEPTED:
            set_bounds(race, curves, a, clock)
            if race.arms[a].upper < math.inf:
                cutoff = max(cutoff, race.arms[a].upper)
    return cutoff if cutoff > 0.0 else math.inf


@kernel
def next_pull(race: Race, allowed: Ints) -> int:
    """The racing and allowed arm with the fewest pulls (lowest index on ties), or -1."""
    best = -1
    for a in range(race.arms.size):
        fewer = best < 0 or race.arms[a].pulls < race.arms[best].pulls
        if fewer and race.arms[a].standing == RACING and allowed[a] != 0:
            best = a
    return best


@rare
def judge_race(state: State, clock: float) -> None:
    """Before a pull: at the end of a pass compare bounds; at the cap fill up; when A' are accepted, end."""
    race, progress = state.race, state.race.progress[0]
    if progress.pass_left <= 0:
        judge(race, state.curves, clock)
        for a in range(race.arms.size):
            progress.pass_left += race.arms[a].standing == RACING
    dearest = 0.0
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            for row in range(state.list_costs.shape[0]):
                dearest = max(dearest, state.list_costs[row, a])
    allowance = race.rules.budget_share * state.now[0].budget
    if not is_over(race) and progress.spend + dearest > allowance:
        fill_with_smallest(race, state.curves, clock)
        progress.is_capped = 1
    if is_over(race):
        _end_race(state, clock)


@kernel
def _end_race(state: State, clock: float) -> None:
    """S is complete: fix the cut-off m and start stage 2."""
    now, race = state.now[0], state.race
    cutoff = close_race(race, state.curves, clock)
    if not math.isnan(race.rules.cutoff):
        cutoff = race.rules.cutoff
    elif not race.rules.has_deadline or math.isinf(cutoff):
        cutoff = min(cutoff, state.curves.ages[-1])
    now.cutoff = max(cutoff, 1.0)
    for a in range(race.arms.size):
        for row in range(state.barrier.shape[0]):
            state.barrier[row, a] = 0.0 if race.arms[a].standing == ACCEPTED else -math.inf
    now.racing = 0
    state.race.progress[0].ended = now.round + 1
    now.must_read = 1


@kernel
def count_pull(state: State, slot: int, arm: int, cost: float) -> None:
    """Count a pull of the race."""
    if state.now[0].racing != 0 and arm != state.rules.control:
        progress, race = state.race.progress[0], state.race
        progress.pass_left -= 1
        progress.rounds += 1
        progress.spend += cost
        race.arms[arm].pulls += 1
        if state.race.rules.censoring == CENSOR_MIN_AGE:
            state.ring[slot].position = add_open_pull(race.delays, arm, state.ring[slot].time)


@kernel
def record_delay(state: State, slot: int, age: float) -> None:
    """An arm's delay became known (`instant` knew it before)."""
    censoring, race = state.race.rules.censoring, state.race
    arm = state.ring[slot].arm
    if state.now[0].racing != 0 and censoring != CENSOR_INSTANT and arm != state.rules.control:
        race.arms[arm].answers += 1
        if censoring == CENSOR_RETURNED:
            add_delay(race.delays, arm, age)
        elif censoring == CENSOR_MIN_AGE:
            close_pull(race.delays, arm, state.ring[slot].position, state.ring[slot].time, age)


@kernel
def learn_instant_delay(state: State, arm: int, delay: float) -> None:
    """`instant`: the delay of a pull is known as soon as it is made."""
    if state.race.rules.censoring == CENSOR_INSTANT and state.now[0].racing != 0 and delay < math.inf:
        add_delay(state.race.delays, arm, delay)
        state.race.arms[arm].answers += 1


@kernel
def cancel_pull(state: State, number: int, arm: int, cost: float, clock: float) -> None:
    """Its budget is free again; a `min_age` race keeps the pull, with the age that it had."""
    now, race = state.now[0], state.race
    if now.racing == 0:
        return
    state.race.progress[0].spend -= cost
    if state.race.rules.censoring != CENSOR_MIN_AGE:
        race.arms[arm].pulls -= 1
    elif number >= now.first:
        decision = state.ring[number & (state.ring.size - 1)]
        close_pull(race.delays, arm, decision.position, decision.time, clock - decision.time)


@kernel
def is_race_full(state: State) -> bool:
    """Return whether delays need more room: all pending pulls of an arm may answer in one round."""
    if state.now[0].racing != 0:
        race = state.race
        room = race.delays.sums.shape[1] - 1
        for a in range(race.arms.size):
            if race.arms[a].pulls >= room:
                return True
    return False


@kernel
def arms_in_play(state: State) -> float:
    """Return how many arms a context has to choose from, on average; while the race runs, none is ruled out yet."""
    n_contexts, n_arms = state.tally.shape[1], state.allowed.size
    if state.now[0].racing != 0:
        return float(n_arms)
    n = 0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += state.barrier[j, a] == 0.0
    return n / n_contexts
