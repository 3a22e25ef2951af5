"""Arrivals that are served to learn: planned first tries of arms, and arms at random for the log."""

from __future__ import annotations

import math

import numpy as np

from doral.compiled import kernel, rare
from doral.engine.budget import rate
from doral.engine.decide import (
    PLAYED_EXPLORING,
    PLAYED_FIRST,
    PLAYED_RACING,
    SKIPPED_EXPLORING,
    SKIPPED_PACED,
    SKIPPED_WORTHLESS,
    Choice,
    baseline,
    odds_of,
    toss,
    write_odds,
)
from doral.engine.state import (
    LP,
    State,
)
from doral.estimators.ridge import COUNT, REWARD
from doral.estimators.shrinkage import DOUBT, MEAN_SQUARE
from doral.numerics.kernels import COIN as COIN_PURPOSE
from doral.numerics.kernels import philox, to_uniform
from doral.pacing import (
    NO_ARM,
    cost_of,
)

UNDECIDED = -1  # nothing is planned: stage 2 decides
FIRST_TRIES = 4.0  # before any answer has come: then it is known how many are enough
_EXPLORE_LANE = 1  # of the policy's coin: its own toss is lane 0

# --- first tries ------------------------------------------------------------------------------------------------------

# Every arm is tried a few times before it can be passed over, whatever it costs. Before there are answers an arm is
# worth its bonus, and what little is known of one may be bad luck. So each is tried in turn until
#
#     n_a  =  4 noise / (c_a r)^2        r: what a unit of budget has brought so far
#
# tries are made: then twice the standard error of its mean is what its cost has to bring. All arms together may take
# `start_share` of the budget for it; where that does not pay for a try of each, there is no such start.


@kernel
def first_try(state: State, context: int, restricted: bool) -> Choice:
    """Return a planned first try, UNDECIDED where there is none."""
    if not state.rules.has_start or state.start.is_open[0] == 0.0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, UNDECIDED)
    return _try(state, context, _untried(state, context, restricted))


@rare
def _try(state: State, context: int, arm: int) -> Choice:
    """No faster than the budget allows for."""
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, UNDECIDED)
    cost, rho = cost_of(state.hulls, context, arm), rate(state)
    probability = 1.0 if cost <= rho else rho / cost
    write_odds(state, arm, probability)
    write_odds(state, NO_ARM, 1.0 - probability)
    if toss(state, probability):
        return Choice(arm, probability, 0.0, 0.0, PLAYED_FIRST)
    return Choice(NO_ARM, 1.0 - probability, 0.0, 0.0, SKIPPED_PACED)


@rare
def _untried(state: State, context: int, restricted: bool) -> int:
    """The arm with the fewest tries, of those that need one; of several the one with the fewest here."""
    barrier, tries, chosen = state.barrier[state.contexts.size], state.start.tries, NO_ARM
    most = _affordable_tries(state)
    is_open = False
    for a in range(tries.size):
        if barrier[a] == 0.0 and tries[a] < min(state.start.enough[a], most):
            is_open = True
            if restricted and state.allowed[a] == 0:
                continue
            if (
                chosen == NO_ARM
                or tries[a] < tries[chosen]
                or (tries[a] == tries[chosen] and _tried_here(state, context, a) < _tried_here(state, context, chosen))
            ):
                chosen = a
    if not is_open and state.prior.scale[MEAN_SQUARE] > 0.0:
        state.start.is_open[0] = 0.0
    return chosen


@kernel
def _affordable_tries(state: State) -> float:
    """Of every arm in play, from the share of the budget."""
    total = 0.0
    for a in range(state.start.tries.size):
        if state.barrier[state.contexts.size, a] == 0.0:
            total += _usual_cost(state, a)
    return math.floor(state.rules.start_share * state.now[0].budget / total) if total > 0.0 else 0.0


@kernel
def _usual_cost(state: State, arm: int) -> float:
    """Over contexts."""
    total, n_rows = 0.0, state.hulls.costs.shape[0]
    for row in range(n_rows):
        total += state.hulls.costs[row, arm]
    return total / n_rows


@kernel
def _tried_here(state: State, context: int, arm: int) -> float:
    """Open decisions included."""
    return state.ridge.weight[state.ridge.weight.shape[0] - state.contexts.size + context, arm]


@rare
def plan_first_tries(state: State) -> None:
    """How many tries are enough, in the light of the answers so far."""
    if state.start.is_open[0] == 0.0 or not state.prior.scale[MEAN_SQUARE] > 0.0:
        return
    brought, paid = 0.0, 0.0
    for j in range(state.tally.shape[1]):
        for a in range(state.start.tries.size):
            brought += state.tally[REWARD, j, a]
            paid += state.tally[COUNT, j, a] * cost_of(state.hulls, j, a)
    per_cost = abs(brought) / paid if paid > 0.0 else 0.0
    for a in range(state.start.tries.size):
        worth = per_cost * _usual_cost(state, a)
        enough = 4.0 * state.prior.scale[DOUBT] / (worth * worth) if worth > 0.0 else math.inf
        state.start.enough[a] = max(enough, state.rules.start_tries)


# --- exploration for the log ------------------------------------------------------------------------------------------

# With probability `explore` an arrival gets one of its n options (any arm that can be paid, or none) at random, so that
# the log shows what else would have brought. The probability of what was done is then
#
#     (1 - explore) * (probability that the policy does it)  +  explore / n
#
# whichever of the two chose it: at least explore / n for every option. Where exploring that often would spend more than
# the rate of the policy itself, it is as often as that rate allows. What cannot be paid is no option. The loss is
# counted as it happens, with costs at the shadow price, or at what the policy gets for a unit on average.


@kernel
def explore(state: State, context: int, restricted: bool, choice: Choice) -> Choice:
    """Return what is done in the end, where some arrivals get a random option."""
    n_options, cost = 1, 0.0
    for a in range(state.allowed.size):
        if _is_option(state, a, restricted):
            n_options += 1
            cost += cost_of(state.hulls, context, a)
    share = min(state.rules.explore, max(0.0, rate(state)) * n_options / cost if cost > 0.0 else 1.0)
    which, option, _, _ = philox(
        state.coin.seed,
        state.coin.run,
        np.uint64(state.now[0].round),
        np.uint64(COIN_PURPOSE),
        np.uint64(_EXPLORE_LANE),
    )
    if to_uniform(which) < share:
        return _explored(state, context, restricted, choice, share, n_options, int(to_uniform(option) * n_options))
    if choice.arm != NO_ARM:
        state.explored[0].worth += _net_worth(state, context, choice.arm, 0.0)
        state.explored[0].cost += cost_of(state.hulls, context, choice.arm)
    probability = (1.0 - share) * choice.probability + share / n_options
    return Choice(choice.arm, probability, choice.value, choice.price, choice.reason)


@kernel
def _is_option(state: State, arm: int, restricted: bool) -> bool:
    """Whether the arm can be had, also if it has lost the race; not if it is retired, or stands for doing nothing."""
    if restricted and state.allowed[arm] == 0:
        return False
    if state.rules.has_race:  # the barrier is also that of its losers; who is retired is not available either
        return arm != state.rules.control
    return state.barrier[state.contexts.size, arm] == 0.0


@rare
def _explored(
    state: State, context: int, restricted: bool, choice: Choice, share: float, n_options: int, option: int
) -> Choice:
    """The option of this number: arms in their order, then none."""
    arm = NO_ARM
    for a in range(state.allowed.size):
        if _is_option(state, a, restricted):
            if option == 0:
                arm = a
            option -= 1
    price = _price(state, choice)
    state.explored[0].arrivals += 1
    state.explored[0].loss += _net_worth(state, context, choice.arm, price) - _net_worth(state, context, arm, price)
    probability = (1.0 - share) * odds_of(state, arm) + share / n_options
    if arm == NO_ARM:
        return Choice(NO_ARM, probability, choice.value, choice.price, SKIPPED_EXPLORING)
    reason = PLAYED_RACING if state.now[0].racing != 0 else PLAYED_EXPLORING
    return Choice(arm, probability, _net_worth(state, context, arm, 0.0), choice.price, reason)


@kernel
def _price(state: State, choice: Choice) -> float:
    """What a unit of budget is worth; who plans a first try does not ask for it."""
    explored = state.explored[0]
    is_first = choice.price == 0.0 and choice.value == 0.0 and choice.reason != SKIPPED_WORTHLESS
    if state.rules.pacing == LP and state.now[0].racing == 0 and not is_first:
        return choice.price
    return max(0.0, explored.worth / explored.cost) if explored.cost > 0.0 else 0.0


@kernel
def _net_worth(state: State, context: int, arm: int, price: float) -> float:
    """What an arm is thought to bring after its cost, beyond doing nothing; nothing for none."""
    if arm == NO_ARM:
        return 0.0
    worth = state.contexts[context].weight * state.tau[context, arm] * state.ridge.estimate[context, arm]
    return worth - baseline(state, context) - price * cost_of(state.hulls, context, arm)
