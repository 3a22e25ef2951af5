"""LP_m: contexts are served in the order of what a unit of budget brings there, as far as rho goes."""

from __future__ import annotations

from doral._kernel import kernel, shared
from doral._kernel.philox import coin
from doral.engine.choice import PLAYED, PLAYED_MARGINAL, SKIPPED_PACED, SKIPPED_WORTHLESS, Choice
from doral.engine.hooks import (
    before_spending,
    draws,
    is_promising,
    on_draw,
    on_valued,
    on_weighed,
    rate,
    refunds,
    score,
)
from doral.engine.mixture import one_of_the_weighed
from doral.engine.state import CAP, RESERVED, SLACK, SPENT, TIER_PRICE, State
from doral.pacing import NO_ARM, Share, dearest_of, fill, place, set_hull, share_above, share_of


@shared
def spend(state: State, context: int, restricted: bool) -> Choice:
    """LP_m with this round's rho; where arms are missing today, this context enters with the hull of the others."""
    hulls = state.hulls
    before_spending(state, context)
    _repair(state)
    _set_caps(state)
    if draws(state) > 0:
        return _spend_by_draws(state, context, restricted)
    row = context
    if restricted:
        row = state.contexts.size
        _set_hull(state, row, context, restricted, True)
    share = fill(hulls, state.demand, state.tiers[CAP], state.tiers[SLACK], context, row)
    state.tiers[TIER_PRICE, state.demand.depth[context]] = share.price
    _weigh(state, row, share, 1.0)
    upper = flip(state, share.probability)
    vertex = share.upper if upper else share.lower
    probability = share.probability if upper else 1.0 - share.probability
    if vertex >= 0:
        reason = PLAYED if probability == 1.0 else PLAYED_MARGINAL
        return Choice(hulls.arm[row, vertex], probability, hulls.value[row, vertex], share.price, reason)
    if hulls.length[row] == 0:
        return Choice(NO_ARM, 1.0, 0.0, share.price, SKIPPED_WORTHLESS)
    return Choice(NO_ARM, probability, hulls.value[row, 0], share.price, SKIPPED_PACED)


@shared
def _spend_by_draws(state: State, context: int, restricted: bool) -> Choice:
    """LP_m for each draw of what this context is worth."""
    row, n_draws, n_worthless, price = state.contexts.size, draws(state), 0, 0.0
    for number in range(n_draws):
        on_draw(state, number)
        _set_hull(state, row, context, restricted, True)
        share = fill(state.hulls, state.demand, state.tiers[CAP], state.tiers[SLACK], context, row)
        _weigh(state, row, share, 1.0 / n_draws)
        n_worthless += state.hulls.length[row] == 0
        price += share.price / n_draws
    state.tiers[TIER_PRICE, state.demand.depth[context]] = price
    why_skipped = SKIPPED_WORTHLESS if n_worthless == n_draws else SKIPPED_PACED
    return one_of_the_weighed(state, context, price, why_skipped)


@kernel
def _weigh(state: State, row: int, share: Share, part: float) -> None:
    """What this share of LP_m does, and how likely that is."""
    upper = state.hulls.arm[row, share.upper] if share.upper >= 0 else NO_ARM
    lower = state.hulls.arm[row, share.lower] if share.lower >= 0 else NO_ARM
    on_weighed(state, upper, part * share.probability)
    on_weighed(state, lower, part * (1.0 - share.probability))


@kernel
def flip(state: State, probability: float) -> bool:
    """True with the given probability; the draw is a function of (seed, run, round), and made only if needed."""
    if probability >= 1.0:
        return True
    return probability > 0.0 and coin(state.coin.seed, state.coin.run, state.now[0].round) < probability


@kernel
def _set_hull(state: State, row: int, context: int, restricted: bool, is_here: bool) -> None:
    """From what the arms are worth; where none is thought to be worth anything, a piece may think again."""
    score(state, context, restricted, is_here)
    set_hull(state.hulls, row, context, state.values)
    is_worthless = state.hulls.length[row] == 0 or not is_promising(state, context, restricted)
    on_valued(state, context, restricted, is_worthless)
    if is_worthless:
        set_hull(state.hulls, row, context, state.values)


@kernel
def _repair(state: State) -> None:
    """Hulls of contexts that have changed."""
    now = state.now[0]
    while now.n_stale > 0:
        now.n_stale -= 1
        j = state.stale[now.n_stale]
        _set_hull(state, j, j, False, False)
        place(state.hulls, state.demand, j)
        state.contexts[j].is_stale = 0


@kernel
def _set_caps(state: State) -> None:
    """What each depth of urgency may spend per round: rho, less what is reserved above it and still needed there."""
    caps, now = state.tiers[CAP], state.now[0]
    caps[0] = rate(state)
    rounds_left = now.horizon - now.round + 1
    for d in range(1, caps.size):
        spent = 0.0
        for above in range(d):
            spent += state.tiers[SPENT, above]
        usable = _dearest_above(state, d) * rounds_left
        needed = min(max(0.0, state.tiers[RESERVED, d] - spent), usable)
        left = now.budget_left + refunds(state)
        kept = needed / left if left > 0.0 else 1.0
        caps[d] = min(caps[d - 1], caps[0] * max(0.0, 1.0 - kept))


@kernel
def _dearest_above(state: State, depth: int) -> float:
    """What a round costs at most that serves all contexts of less than this depth."""
    hulls, demand = state.hulls, state.demand
    if hulls.costs.shape[0] == 1:
        return share_above(demand, depth) * dearest_of(hulls, 0)
    total = 0.0
    for j in range(state.contexts.size):
        if demand.depth[j] < depth:
            total += share_of(demand, j) * dearest_of(hulls, j)
    return total
