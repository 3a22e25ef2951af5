"""Information-directed: the arm of a context is the one that pays least for what it teaches (Russo and Van Roy 2018;
with confidence bounds in place of a posterior, Kirschner and Krause 2018).

    ratio_a = Delta_a^2 / g_a

Delta_a is what may be lost by playing a: the largest upper bound of any arm, less what a is thought to bring, both
after their costs at the price that a unit of budget has. g_a is what it teaches about theta_j:
tau_a / 2 * log(1 + ||f_a||^2) in the norm of V^-1, for an answer that never comes teaches nothing. That arm is valued,
with its upper bound, and those that cost less, for LP_m to fall back on where it cannot be paid for everybody.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral._kernel import kernel
from doral.engine.hooks import baseline, norm_row
from doral.engine.pieces.index import doubtful
from doral.engine.state import TIER_PRICE, State
from doral.errors import InvalidValue
from doral.pacing import NO_ARM, cost_of

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions

upper_bounds = doubtful.score


def check(options: PolicyOptions) -> None:
    if options.sampling == "directed" and options.choice == "unweighted":
        raise InvalidValue("choice", options.choice, "sampling='directed' chooses the arm: needs choice='weighted'")


@kernel
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = its upper bound for the arm with the smallest ratio and for cheaper ones, -inf for all others."""
    upper_bounds(state, context, restricted, is_here)
    values = state.values
    chosen = _cheapest_lesson(state, context)
    for a in range(state.allowed.size):
        is_cheaper = chosen != NO_ARM and cost_of(state.hulls, context, a) < cost_of(state.hulls, context, chosen)
        if a != chosen and not is_cheaper:
            values[a] = -math.inf


@kernel
def _cheapest_lesson(state: State, context: int) -> int:
    """Of the arms that may be worth something, or if none is, of those in play; the first on ties."""
    estimate, tau, norm = state.ridge.estimate[context], state.tau[context], state.ridge.norm[norm_row(state, context)]
    price, values = state.tiers[TIER_PRICE, state.demand.depth[context]], state.values
    highest, most = -math.inf, -math.inf
    for a in range(state.allowed.size):
        most = max(most, values[a])
        highest = max(highest, values[a] - price * cost_of(state.hulls, context, a))
    floor = 0.0 if most > 0.0 else -math.inf
    chosen, least, weight, nothing = NO_ARM, math.inf, state.contexts[context].weight, baseline(state, context)
    for a in range(state.allowed.size):
        if values[a] > floor:
            loss = (highest + nothing) - (weight * tau[a] * estimate[a] - price * cost_of(state.hulls, context, a))
            gain = 0.5 * tau[a] * math.log(1.0 + norm[a] * norm[a])
            ratio = loss * loss / gain if gain > 0.0 else math.inf
            if chosen == NO_ARM or ratio < least:
                chosen, least = a, ratio
    return chosen
