"""Arms that are ruled out, each with a certificate, and let in again when it no longer holds.

By duality, LP_m at price lambda serves context j, if at all, with the arm that brings most after its cost. So arm a
cannot enter the solution if even the most that it may be worth falls short of the least that some rival is worth:

    U_ja - lambda c_a  <  L_jb - lambda c_b

U and L are as wide as a normal posterior needs to hold for all contexts and arms at once with probability 1 - delta,
and never narrower than the bonus. Nor is the price known: it follows from the values of all contexts, which are only
known within U and L, from shares that may be learned, and from a rate that moves. So one rival must be better at every
price that is possible (`pacing/price_range.py`); between two prices the difference is linear, and their ends suffice.
Where all arms cost the same, the price plays no part. Every reading of the return curves examines all arms anew.
Not serving a context at all is no rival: a price may fall at once, and then somebody has to be there to take the money.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral._arrays import Ints, Record
from doral._kernel import kernel, rare
from doral.engine.hooks import baseline, bonus, stretch, watched
from doral.engine.state import CAP, FEWEST_ANSWERS, RESERVED, TIER_PRICE, State, clock_left
from doral.errors import InvalidValue
from doral.pacing import (
    LEAST,
    MOST,
    NO_ARM,
    PriceRange,
    cost_of,
    dearest_of,
    find_prices,
    new_price_range,
    share_above,
    share_of,
)

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

ROUNDING = 1e-9  # relative: arms that are alike up to rounding do not rule each other out

# Why an arm is out in a context.
CERTIFICATE = np.dtype(
    [
        ("round", np.int64),  # since when; 0: it is in play
        ("rival", np.int64),  # the arm that is better for certain
        ("at_most", np.float64),  # what the arm could bring at best, less what its cost is worth
        ("at_least", np.float64),  # what the rival brings at worst, less what its cost is worth
        ("price", np.float64),  # of a unit of budget, on that day
        ("price_low", np.float64),  # the rival is better at every price from here
        ("price_high", np.float64),  # to here
    ],
    align=True,
)


class DropMemory(NamedTuple):
    certificates: Record  # (J, A) of CERTIFICATE
    known: PriceRange  # the bounds, and between which prices they put that of a unit of budget
    rivals: Ints  # (A,) scratch


@dataclass(frozen=True, kw_only=True)
class DropOptions:
    """Whether arms are ruled out."""

    dropping: Literal["never", "certified"] = "never"


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Where people have features, what is certain is told by region, and nobody is kept from an arm by it."""
    return options.dropping == "certified" and not problem.person


def check(options: PolicyOptions) -> None:
    if options.dropping == "certified" and options.prior == "fixed":
        raise InvalidValue("dropping", options.dropping, "rests on measured noise: needs prior='noise' or 'shared'")
    if options.dropping == "certified" and options.choice == "unweighted":
        raise InvalidValue("dropping", options.dropping, "is by what arms are worth: needs choice='weighted'")


def memory(blueprint: Blueprint) -> DropMemory:
    n_contexts, n_arms = blueprint.problem.n_contexts, blueprint.problem.n_arms
    return DropMemory(
        certificates=np.zeros((n_contexts, n_arms), dtype=CERTIFICATE),
        known=new_price_range(n_contexts, n_arms, len(blueprint.problem.reserves) + 1),
        rivals=np.zeros(n_arms, dtype=np.int64),
    )


@kernel
def on_corrected(state: State) -> None:
    """What was certain by the wrong reward is examined with the next arrival; in a large problem, when it is due."""
    if state.now[0].learned >= FEWEST_ANSWERS and state.limits.stock_rounds == 0 and state.now[0].racing == 0:
        state.now[0].must_read = 1


@rare
def examine(state: State) -> None:
    """Drop what cannot enter the LP's solution, and let in again what could."""
    if state.now[0].learned < FEWEST_ANSWERS or watched(state) < FEWEST_ANSWERS:
        return
    n_contexts, n_arms = state.drop.certificates.shape
    if _is_end_in_view(state):
        for j in range(n_contexts):
            for a in range(n_arms):
                state.barrier[j, a] = state.barrier[n_contexts, a]
        return
    _set_prices(state)
    for j in range(n_contexts):
        _examine_context(state, j)


@kernel
def _is_end_in_view(state: State) -> bool:
    """Whether answers may come too late for the end: then arms that answer sooner are right, for the last few rounds.

    All arms are in play again, and the certificates stay what they were before.
    """
    now, limits = state.now[0], state.limits
    if not limits.until_end or now.round == 0 or math.isinf(limits.longest_deadline):
        return False
    return clock_left(state) < limits.longest_deadline


@kernel
def _set_bounds(state: State, context: int) -> None:
    """values[a] = what an arm is thought to bring, gamma[a] = how far from that it may be.

    The errors of reward and return are independent: they add in squares. What doing nothing brings is taken off from
    all, and its error with it: it is the same for an arm and its rival.
    """
    weight, pulls = state.contexts[context].weight, state.contexts[context].pulls
    certain = math.sqrt(2.0 * math.log(state.drop.certificates.size / state.confidence.delta))
    of_reward, scale = certain * state.prior.sigma[context], bonus(state, context)
    of_return = max(certain, state.confidence.return_optimism * math.sqrt(math.log(math.e + pulls)))
    nothing = baseline(state, context)
    for a in range(state.allowed.size):
        tau, estimate = state.tau[context, a], state.ridge.estimate[context, a]
        norm = state.ridge.norm[context, a]
        reward_error = max(of_reward, scale * stretch(state, context, norm)) * tau * norm
        return_error = of_return * state.tau_error[context, a] * estimate
        state.values[a] = weight * tau * estimate - nothing
        state.gamma[a] = weight * math.sqrt(reward_error * reward_error + return_error * return_error)


@kernel
def _set_prices(state: State) -> None:
    """Between which prices that of a unit of budget lies; where it plays no part, it is what it is today."""
    known, today = state.drop.known, state.tiers[TIER_PRICE]
    for d in range(today.size):
        known.prices[LEAST, d] = known.prices[MOST, d] = today[d]
    if state.chosen.pace_lp and state.hulls.arm.shape[1] > 1:
        for j in range(known.share.size):
            _set_bounds(state, j)
            for a in range(state.allowed.size):
                known.lower[j, a] = state.values[a] - state.gamma[a]
                known.upper[j, a] = state.values[a] + state.gamma[a]
        n_arrivals = _set_shares(state)
        _set_caps(state, n_arrivals)
        find_prices(known, state.hulls.costs, state.barrier[state.contexts.size], state.demand.depth)
        for d in range(today.size):
            known.prices[LEAST, d] = min(known.prices[LEAST, d], today[d])
            known.prices[MOST, d] = max(known.prices[MOST, d], today[d])


@kernel
def _set_shares(state: State) -> float:
    """Of contexts: as given, or of those who have come so far; how many those are."""
    share, n_arrivals = state.drop.known.share, 0.0
    for j in range(share.size):
        n_arrivals += state.contexts[j].arrivals
    for j in range(share.size):
        share[j] = share_of(state.demand, j)
        if state.limits.learns_shares and n_arrivals > 0.0:
            share[j] = state.contexts[j].arrivals / n_arrivals
    return n_arrivals


@kernel
def _set_caps(state: State, n_arrivals: float) -> None:
    """Between what tiers may spend per round: over the whole campaign, today, and until arms are examined again.

    Until then the rate moves with what chance spends. And where shares are those of who has come so far, what contexts
    spend together is off by chance, too: as if the rate were.
    """
    now, caps, dearest = state.now[0], state.drop.known.caps, 0.0
    n_depths = caps.shape[1]
    for j in range(state.hulls.costs.shape[0]):
        dearest = max(dearest, dearest_of(state.hulls, j))
    certain = math.log(2.0 * state.drop.certificates.size / state.confidence.delta)
    rate = state.tiers[CAP, 0]
    rounds_left = now.budget_left / rate if rate > 0.0 else 0.0
    rounds = float(now.read_at - now.round)
    whole = now.budget / now.horizon
    for d in range(n_depths):
        if d > 0:
            kept = min(state.tiers[RESERVED, d] / now.horizon, share_above(state.demand, d) * dearest)
            whole = min(whole, now.budget / now.horizon - kept)
        today, moved = state.tiers[CAP, d], math.inf
        if rounds_left > rounds:
            moved = _by_chance(rounds, today, dearest, certain) / (rounds_left - rounds)
        caps[LEAST, d] = max(0.0, min(today - moved, whole))
        caps[MOST, d] = max(today + moved, whole)
    off = 0.0
    for back in range(1, n_depths + 1):  # what deeper tiers spend counts in those above
        d = n_depths - back
        if state.limits.learns_shares:
            off += _by_chance(n_arrivals, caps[MOST, d], dearest, certain) / max(1.0, n_arrivals)
        caps[LEAST, d] = max(0.0, caps[LEAST, d] - off)
        caps[MOST, d] += off


@kernel
def _by_chance(n: float, mean: float, most: float, certain: float) -> float:
    """How far the sum of n costs between 0 and `most` may be from n times their mean (Bernstein)."""
    half = min(mean, 0.5 * most)
    variance, jump = half * (most - half), most * certain / 3.0
    return jump + math.sqrt(jump * jump + 2.0 * n * variance * certain)


@kernel
def _examine_context(state: State, context: int) -> None:
    n_contexts, n_arms = state.drop.certificates.shape
    depth, known = state.demand.depth[context], state.drop.known
    low, high = known.prices[LEAST, depth], known.prices[MOST, depth]
    _set_bounds(state, context)
    n_rivals = _set_rivals(state, context, low, high)
    for a in range(n_arms):
        if state.barrier[n_contexts, a] != 0.0:
            continue
        certificate = state.drop.certificates[context, a]
        rival = _better_arm(state, context, a, n_rivals, low, high)
        if rival != NO_ARM:
            price = state.tiers[TIER_PRICE, depth]
            if certificate.round == 0:
                certificate.round = max(1, state.now[0].round)
            certificate.rival, certificate.price = rival, price
            certificate.at_most = _at_most(state, context, a, price)
            certificate.at_least = _at_least(state, context, rival, price)
            certificate.price_low, certificate.price_high = low, high
            state.barrier[context, a] = -math.inf
        else:
            certificate.round = 0
            state.barrier[context, a] = 0.0


@kernel
def _at_most(state: State, context: int, arm: int, price: float) -> float:
    """What an arm brings at best after its cost."""
    return (state.values[arm] - price * cost_of(state.hulls, context, arm)) + state.gamma[arm]


@kernel
def _at_least(state: State, context: int, arm: int, price: float) -> float:
    """And at worst."""
    return (state.values[arm] - price * cost_of(state.hulls, context, arm)) - state.gamma[arm]


@kernel
def _set_rivals(state: State, context: int, low: float, high: float) -> int:
    """Arms of which none is at worst better than another one at every price; how many.

    In the order of cost: a dearer one must be better at the lowest price, a cheaper one at the highest.
    """
    rivals, whatever_certified = state.drop.rivals, state.barrier[state.contexts.size]
    by_cost = state.hulls.by_cost[min(context, state.hulls.by_cost.shape[0] - 1)]
    n, best = 0, -math.inf
    for rank in range(rivals.size):
        b = by_cost[rank]
        if whatever_certified[b] == 0.0 and _at_least(state, context, b, low) > best:
            best = _at_least(state, context, b, low)
            while n > 0 and _at_least(state, context, rivals[n - 1], high) <= _at_least(state, context, b, high):
                n -= 1
            rivals[n] = b
            n += 1
    return n


@kernel
def _better_arm(state: State, context: int, arm: int, n_rivals: int, low: float, high: float) -> int:
    """The rival that is better by most at the price where it is by least; NO_ARM if none is better at all of them."""
    rival, widest = NO_ARM, 0.0
    for i in range(n_rivals):
        b = state.drop.rivals[i]
        lead = min(_lead(state, context, arm, b, low), _lead(state, context, arm, b, high))
        if lead > widest:
            rival, widest = b, lead
    return rival


@kernel
def _lead(state: State, context: int, arm: int, rival: int, price: float) -> float:
    """By how much a rival is better for certain at this price, beyond rounding."""
    at_most, at_least = _at_most(state, context, arm, price), _at_least(state, context, rival, price)
    return at_least - at_most - ROUNDING * (abs(at_most) + abs(at_least))
