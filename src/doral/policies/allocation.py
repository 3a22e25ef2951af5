"""Stage 2, allocation: whether this arrival is worth its cost today."""

from __future__ import annotations

import math

from doral._arrays import Bits
from doral._jit import jit_inner
from doral._philox import coin
from doral.pacing import NO_ARM, fill, first_best, place, set_hull
from doral.policies.choice import (
    PLAYED,
    PLAYED_MARGINAL,
    SKIPPED_PACED,
    SKIPPED_UNAVAILABLE,
    SKIPPED_WORTHLESS,
    Choice,
)
from doral.policies.scoring import set_values
from doral.policies.state import (
    CAP,
    PACE_COIN,
    PACE_GREEDY,
    PRICE,
    RATE_PERIOD,
    RATE_PRINTED,
    RESERVED,
    SLACK,
    SPENT,
    Rules,
    State,
)


@jit_inner
def rate(state: State, rules: Rules) -> float:
    """rho: the remaining budget per remaining round.

    Printed: per elapsed round; for the coin, per initial budget. By period: what is left of the period's equal share of
    the budget, and of those before it, per remaining round of the period.
    """
    now = state.now[0]
    if rules.rate == RATE_PRINTED:
        return now.budget_left / (now.budget if rules.pacing == PACE_COIN else now.round)
    if rules.rate == RATE_PERIOD:
        end = min(now.horizon, ((now.round - 1) // rules.period_rounds + 1) * rules.period_rounds)
        return max(0.0, now.budget_left - now.budget * (1.0 - end / now.horizon)) / (end - now.round + 1)
    rounds_left = now.horizon - now.round + 1
    if rules.until_end:
        rounds_left = max(1, rounds_left - now.lost_rounds)
    return now.budget_left / rounds_left


@jit_inner
def set_caps(state: State, rules: Rules) -> None:
    """What each depth of urgency may spend per round: rho, less what is reserved above it and still needed there."""
    caps, now = state.tiers[CAP], state.now[0]
    caps[0] = rate(state, rules)
    rounds_left = now.horizon - now.round + 1
    dearest = state.hulls.costs[state.hulls.by_cost[state.hulls.costs.size - 1]]
    for d in range(1, caps.size):
        spent, share = 0.0, 0.0
        for above in range(d):
            spent += state.tiers[SPENT, above]
        for j in range(state.depths.size):
            if state.depths[j] < d:
                share += state.shares[j]
        needed = min(max(0.0, state.tiers[RESERVED, d] - spent), share * dearest * rounds_left)
        caps[d] = min(caps[d - 1], caps[0] * max(0.0, 1.0 - needed / now.budget_left))


@jit_inner
def flip(rules: Rules, probability: float, round_: int) -> bool:
    """True with the given probability; the draw is a function of (seed, run, round), and made only if needed."""
    if probability >= 1.0:
        return True
    return probability > 0.0 and coin(rules.seed, rules.run, round_) < probability


@jit_inner
def allocate(state: State, rules: Rules, context: int, restricted: bool) -> Choice:
    """LP_m with this round's rho; where arms are missing today, this context enters with the hull of the others."""
    hulls = state.hulls
    now = state.now[0]
    while now.n_stale > 0:
        now.n_stale -= 1
        j = state.stale[now.n_stale]
        set_values(state, rules, j, False, False)
        set_hull(hulls, j, state.values)
        place(hulls, j)
        state.contexts[j].is_stale = 0
    row = context
    if restricted or rules.thompson:
        row = state.contexts.size
        set_values(state, rules, context, restricted, True)
        set_hull(hulls, row, state.values)
    set_caps(state, rules)
    share = fill(hulls, state.shares, state.tiers[CAP], state.depths, state.tiers[SLACK], context, row)
    state.tiers[PRICE, state.depths[context]] = share.price
    upper = flip(rules, share.probability, state.now[0].round)
    vertex = share.upper if upper else share.lower
    probability = share.probability if upper else 1.0 - share.probability
    if vertex >= 0:
        reason = PLAYED if probability == 1.0 else PLAYED_MARGINAL
        return Choice(hulls.arm[row, vertex], probability, hulls.value[row, vertex], share.price, reason)
    if hulls.length[row] == 0:
        return Choice(NO_ARM, 1.0, 0.0, share.price, SKIPPED_WORTHLESS)
    return Choice(NO_ARM, probability, hulls.value[row, 0], share.price, SKIPPED_PACED)


@jit_inner
def play_best(state: State, rules: Rules, context: int, restricted: bool) -> Choice:
    """D-LinUCB plays its best arm always, Random with probability rho."""
    set_values(state, rules, context, restricted, True)
    arm = first_best(state.values)
    value = state.values[arm]
    if value == -math.inf:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    if rules.pacing == PACE_GREEDY:
        return Choice(arm, 1.0, value, 0.0, PLAYED)
    probability = min(1.0, rate(state, rules))
    if flip(rules, probability, state.now[0].round):
        return Choice(arm, probability, value, 0.0, PLAYED_MARGINAL)
    return Choice(NO_ARM, 1.0 - probability, value, 0.0, SKIPPED_PACED)


@jit_inner
def set_allowed(state: State, available: Bits) -> tuple[int, int]:
    """allowed[a] = available and affordable; how many are available, and how many both."""
    left = state.now[0].budget_left
    allowed, costs = state.allowed, state.hulls.costs
    dearest = costs[state.hulls.by_cost[costs.size - 1]]
    if available.size == 0 and left >= dearest and state.now[0].racing == 0:
        return costs.size, costs.size  # the common case: nobody reads `allowed`
    n_available = 0
    n_affordable = 0
    for a in range(allowed.size):
        is_available = available.size == 0 or available[a] != 0
        is_allowed = is_available and costs[a] <= left
        allowed[a] = is_allowed
        n_available += is_available
        n_affordable += is_allowed
    return n_available, n_affordable
