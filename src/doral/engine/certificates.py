"""Certificates: why an arm is out of a context, computed when they are asked for. They change no decision.

By duality, LP_m at price lambda serves context j, if at all, with the arm that brings most after its cost. So arm a
cannot enter the solution if even the most that it may be worth falls short of the least that some rival is worth:

    U_ja - lambda c_a  <  L_jb - lambda c_b

U and L are as wide as a normal posterior needs to hold for all contexts and arms at once with probability 1 - delta,
and no narrower than the bonus. Nor is the price known: it follows from the values of all contexts, which are only
known within U and L, from shares that may be learned, and from a rate that moves. So one rival must be better at every
price that is possible; between two prices the difference is linear, and their ends suffice. Where all arms cost the
same, the price plays no part. Not serving a context at all is no rival: a price may fall at once.

Where arrivals have features, a certificate is for a region: all recent arrivals, those of one context, or those in whom
a number is at most, or above, its median. An arm is out if for each of them a rival that costs no more is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats, Ints
from doral.engine.people import CAME
from doral.engine.setup import numbers_of
from doral.engine.state import (
    BY_DEADLINE,
    CALIBRATED,
    CAP,
    ESTIMATED,
    FEWEST_ANSWERS,
    FIXED,
    LP,
    PRINTED,
    RESERVED,
    TIER_PRICE,
    State,
)
from doral.estimators.shrinkage import DOUBT, NOISE
from doral.problem import Problem

ROUNDING = 1e-9  # relative: arms that are alike up to rounding do not rule each other out
FEWEST_PEOPLE = 20  # in a region: fewer do not stand for arrivals to come
PRICE_STEPS = 12  # halvings of [0, the highest slope]: ends are that exact, and outside
TIES = 1e-9  # relative: sums of shares that are alike up to rounding meet the rate, and the range is the wider one

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Why an arm is out of a context: at this price of budget, its rival is better by their bounds."""

    context: str
    arm: str
    round: int
    """As of which round."""
    at_most: float
    """Upper bound of value minus price x cost of the arm."""
    rival: str
    at_least: float
    """Lower bound of value minus price x cost of the rival."""
    price: float
    """Shadow price of a unit of budget in that round."""
    price_low: float
    """The rival is better at every price from here ..."""
    price_high: float
    """... to here: the price is only known within this range."""

    def __str__(self) -> str:
        if math.isinf(self.price_high):  # of a region: it holds at every price
            return (
                f"{self.arm} is ruled out for {self.context}: it brings at most {self.at_most:.3g} where {self.rival}, "
                f"which costs no more, brings at least {self.at_least:.3g}, and that is the closest case"
            )
        known = "" if self.price_low == self.price_high else f", known as {self.price_low:.3g} to {self.price_high:.3g}"
        return (
            f"{self.arm} is ruled out for {self.context} as of round {self.round:,}: after its cost it brings at most "
            f"{self.at_most:.3g}, {self.rival} at least {self.at_least:.3g} (a unit of budget is worth "
            f"{self.price:.3g}{known})"
        )


class Bounds(NamedTuple):
    """What arms bring beyond skipping by estimate, and how far from that it may be."""

    value: Floats  # (J, A)
    width: Floats  # (J, A)


def certificates(state: State, problem: Problem) -> tuple[Certificate, ...]:
    """Return why arms are out, as far as that is certain by now; nothing before noise and delays are measured."""
    if state.rules.prior == FIXED or int(state.now["learned"][0]) < FEWEST_ANSWERS:
        return ()
    if problem.person:
        return _of_regions(state, problem)
    if _n_watched(state) < FEWEST_ANSWERS or _is_end_in_view(state):
        return ()
    bounds = _bounds(state, problem)
    low, high = _price_range(state, problem, bounds)
    depth, today = state.demand.depth, state.tiers[TIER_PRICE]
    is_open = state.barrier[-1, : problem.n_arms] == 0.0
    found = []
    for j in np.flatnonzero(_may_be_out(bounds, state.hulls.costs, is_open, (low[depth], high[depth]))).tolist():
        context = problem.context_names[j]
        costs = state.hulls.costs[min(j, state.hulls.costs.shape[0] - 1)]
        ends = float(low[depth[j]]), float(high[depth[j]])
        rivals = _better_arms(bounds.value[j], bounds.width[j], costs, is_open, ends)
        for arm in np.flatnonzero(rivals >= 0).tolist():
            rival, price = int(rivals[arm]), float(today[depth[j]])
            found.append(
                Certificate(
                    context=context,
                    arm=problem.arm_names[arm],
                    round=max(1, int(state.now["round"][0])),
                    at_most=float(bounds.value[j, arm] - price * costs[arm] + bounds.width[j, arm]),
                    rival=problem.arm_names[rival],
                    at_least=float(bounds.value[j, rival] - price * costs[rival] - bounds.width[j, rival]),
                    price=price,
                    price_low=ends[0],
                    price_high=ends[1],
                )
            )
    return tuple(found)


def _n_watched(state: State) -> float:
    """Return how many decisions have been watched for as long as an answer may take."""
    if state.rules.returns not in (ESTIMATED, BY_DEADLINE):
        return math.inf
    ages = state.curves.ages
    g = int(np.searchsorted(ages, state.limits.longest_deadline))
    return float(state.curves.cursor[min(g, ages.size - 1)])


def _is_end_in_view(state: State) -> bool:
    """Return whether answers may come too late for the end: then arms that answer sooner are right, for a while."""
    now, limits = state.now[0], state.limits
    if not limits.until_end or now["round"] == 0 or math.isinf(limits.longest_deadline):
        return False
    left = float(now["until"] - now["clock"])
    if math.isinf(left):
        left = float((now["horizon"] - now["round"]) * ((now["clock"] - now["opened"]) / now["round"]))
    return max(0.0, left) < limits.longest_deadline


def _bounds(state: State, problem: Problem) -> Bounds:
    """Return values with bounds that hold for all contexts and arms at once.

    The errors of reward and return are independent: they add in squares. What skipping brings is subtracted from all
    arms, and its error with it: it is the same for an arm and its rival.
    """
    n_contexts, n_arms = problem.n_contexts, problem.n_arms
    certain = math.sqrt(2.0 * math.log(n_contexts * n_arms / state.confidence.delta))
    weight = state.contexts["weight"][:, None]
    tau, error = state.tau[:n_contexts, :n_arms], state.tau_error[:n_contexts, :n_arms]
    norm = state.ridge.norm[:n_contexts, :n_arms]
    estimate = np.clip(state.ridge.estimate[:n_contexts, :n_arms], state.limits.least_reward, state.limits.most_reward)
    reward_error = np.maximum(certain * state.prior.sigma[:, None], _bonus(state, norm)) * tau * norm
    width = weight * np.sqrt(reward_error**2 + (certain * error * estimate) ** 2)
    return Bounds(weight * tau * estimate - _baseline(state, problem)[:, None], width)


def _bonus(state: State, norm: Floats) -> Floats:
    """Return what the index multiplies norms with, as `bonus.py` has it."""
    rules, confidence, pulls = state.rules, state.confidence, state.contexts["pulls"][:, None]
    sigma = confidence.exploration * state.prior.sigma[:, None]
    if rules.stretches:
        share = (state.demand.weight / state.demand.total[0])[:, None]
        kin = share * state.now["horizon"][0] * norm**2 * (state.prior.scale[NOISE] / state.prior.scale[DOUBT])
        return np.asarray(sigma * np.sqrt(np.log1p(kin / 2.3)))
    if rules.bonus == CALIBRATED:
        return np.asarray(sigma * np.sqrt(np.log(math.e + pulls)))
    n_features = max(1, state.ridge.features.shape[1])
    printed = rules.bonus == PRINTED
    n = float(state.now["round"][0]) if printed else pulls
    certainty = confidence.printed_certainty if printed else confidence.certainty
    scaled = n_features * confidence.penalty
    f_t = math.sqrt(confidence.penalty) + np.sqrt(
        np.maximum(0.0, certainty + n_features * np.log((scaled + n) / scaled))
    )
    bias = (state.window * norm).sum(axis=1)[:, None] if rules.has_window else 0.0
    return np.asarray(confidence.exploration * (2.0 * f_t + bias))


def _baseline(state: State, problem: Problem) -> Floats:
    """Return what skipping is worth by context."""
    weight, n_contexts = state.contexts["weight"], problem.n_contexts
    if problem.baseline is None:
        return np.zeros(n_contexts)
    if problem.control is None:
        return np.where(state.ridge.is_touched[:n_contexts] != 0, weight * state.baseline, 0.0)
    control = problem.control
    return np.asarray(weight * state.tau[:n_contexts, control] * state.ridge.estimate[:n_contexts, control])


def _may_be_out(bounds: Bounds, costs: Floats, is_open: Mask, ends: tuple[Floats, Floats]) -> Mask:
    """Return the contexts (J,) where at both prices some arm is better than another: only these are worth a look."""
    found = np.ones(bounds.value.shape[0], dtype=bool)
    for price in ends:
        net = (bounds.value - price[:, None] * costs)[:, is_open]
        width = bounds.width[:, is_open]
        found &= (net - width).max(axis=1, initial=-np.inf) > (net + width).min(axis=1, initial=np.inf)
    return found


def _better_arms(
    value: Floats, width: Floats, costs: Floats, is_open: Mask, ends: tuple[float, float]
) -> NDArray[np.int64]:
    """Return for each arm the rival that is better by most at the price where it is by least; -1 where none is."""
    leads = []
    for price in ends:
        at_most, at_least = value - price * costs + width, value - price * costs - width
        slack = ROUNDING * (np.abs(at_most)[:, None] + np.abs(at_least)[None, :])
        leads.append(at_least[None, :] - at_most[:, None] - slack)
    lead = np.minimum(*leads)  # (arm, rival)
    lead[:, ~is_open] = -np.inf
    np.fill_diagonal(lead, -np.inf)
    best = lead.argmax(axis=1)
    is_out = (lead[np.arange(value.size), best] > 0.0) & is_open
    return np.where(is_out, best, -1)


# --- the range of prices ---------------------------------------------------------------------------------------------


class PriceBounds(NamedTuple):
    """What is known of J contexts and A arms with D depths of urgency."""

    lower: Floats  # (J, A) the least that an arm may be worth
    upper: Floats  # (J, A) the most
    costs: Floats  # (1 or J, A)
    share: Floats  # (J,)
    depth: Ints  # (J,)
    least: Floats  # (D,) what contexts of this depth and more may spend per round, at least
    most: Floats  # (D,) and at most


def _price_range(state: State, problem: Problem, bounds: Bounds) -> tuple[Floats, Floats]:
    """Return the lowest and the highest price by depth; where it plays no part, it is what it is today."""
    today = state.tiers[TIER_PRICE]
    if state.rules.pacing != LP or state.hulls.arm.shape[1] <= 1:
        return today, today
    is_open = state.barrier[-1, : problem.n_arms] == 0.0
    arrivals = state.contexts["arrivals"]
    n_arrivals, share = float(arrivals.sum()), state.demand.weight / state.demand.total[0]
    if state.limits.learns_shares and n_arrivals > 0.0:
        share = arrivals / n_arrivals
    least, most = _spending_range(state, problem, n_arrivals)
    known = PriceBounds(
        lower=(bounds.value - bounds.width)[:, is_open],
        upper=(bounds.value + bounds.width)[:, is_open],
        costs=state.hulls.costs[:, is_open],
        share=share,
        depth=state.demand.depth,
        least=least,
        most=most,
    )
    low, high = find_prices(known)
    return np.minimum(low, today), np.maximum(high, today)


def _spending_range(state: State, problem: Problem, n_arrivals: float) -> tuple[Floats, Floats]:
    """Return what tiers may spend per round, at least and at most: over the whole campaign, today, and until soon.

    The rate moves with what chance spends. And where shares are those of arrivals so far, what contexts spend together
    is off by chance, too: as if the rate were.
    """
    now, n_depths = state.now[0], state.tiers.shape[1]
    dearest = float(state.hulls.costs.max())
    certain = math.log(2.0 * problem.n_contexts * problem.n_arms / state.confidence.delta)
    rate = float(state.tiers[CAP, 0])
    rounds_left = float(now["budget_left"]) / rate if rate > 0.0 else 0.0
    rounds = max(0.0, float(now["read_at"] - now["round"]))  # 0 where a refresh is due
    mean = float(now["budget"] / now["horizon"])
    whole, least, most = mean, np.zeros(n_depths), np.zeros(n_depths)
    share_above = np.cumsum(state.demand.of_depth) / state.demand.total[0]
    for d in range(n_depths):
        if d > 0:
            kept = min(float(state.tiers[RESERVED, d] / now["horizon"]), float(share_above[d - 1]) * dearest)
            whole = min(whole, mean - kept)
        today, moved = float(state.tiers[CAP, d]), math.inf
        if rounds_left > rounds:
            moved = _by_chance(rounds, today, dearest, certain) / (rounds_left - rounds)
        least[d], most[d] = max(0.0, min(today - moved, whole)), max(today + moved, whole)
    off = 0.0
    for d in reversed(range(n_depths)):  # what deeper tiers spend counts in those above
        if state.limits.learns_shares:
            off += _by_chance(n_arrivals, float(most[d]), dearest, certain) / max(1.0, n_arrivals)
        least[d], most[d] = max(0.0, least[d] - off), most[d] + off
    return least, most


def _by_chance(n: float, mean: float, most: float, certain: float) -> float:
    """Return how far the sum of n costs between 0 and `most` may be from n times their mean (Bernstein)."""
    half = min(mean, 0.5 * most)
    variance, jump = half * (most - half), most * certain / 3.0
    return jump + math.sqrt(jump * jump + 2.0 * n * variance * certain)


def find_prices(known: PriceBounds) -> tuple[Floats, Floats]:
    """Return between which prices a unit of budget may lie, by depth.

    At price p, context j is served with the arm that brings most after its cost, or skipped. With each value anywhere
    between its bounds, that can be any arm a with U_ja - p c_a >= max(0, max_b L_jb - p c_b). So what context j spends
    lies between the smallest and the largest cost of those, contexts do not depend on each other, and both sums over
    contexts fall as the price rises. The price of LP_m is where spending meets the rate: no higher than where the most
    that may be spent falls below the least that the rate may be, and no lower than where the least that is spent falls
    to the most that it may be. Both are attained: no narrower range holds. With reserves, contexts of depth d pay the
    highest price of the tiers that bound them, and a deeper tier spends at most what it may.
    """
    costs = np.broadcast_to(known.costs, known.upper.shape)
    slopes = np.divide(known.upper, costs, out=np.zeros(costs.shape), where=costs > 0.0)
    highest = max(0.0, float(slopes.max(initial=0.0)))
    n_depths = known.least.size
    low, high = np.zeros(n_depths), np.zeros(n_depths)
    for d in range(n_depths):
        low[d] = _tier_price(known, costs, highest, d, is_lowest=True)
        high[d] = _tier_price(known, costs, highest, d, is_lowest=False)
    return np.maximum.accumulate(low), np.maximum.accumulate(high)


def _tier_price(known: PriceBounds, costs: Floats, highest: float, tier: int, *, is_lowest: bool) -> float:
    """Return the price at which spending meets what this tier and those below it may spend, to the outside."""
    low, high = 0.0, highest
    if not _is_spent(known, costs, 0.0, tier, is_lowest):
        return 0.0
    for _ in range(PRICE_STEPS):
        middle = 0.5 * (low + high)
        if _is_spent(known, costs, middle, tier, is_lowest):
            low = middle
        else:
            high = middle
    return low if is_lowest else high


def _is_spent(known: PriceBounds, costs: Floats, price: float, tier: int, is_lowest: bool) -> bool:
    """Return whether at this price all is spent that may be: for the lowest price, more than the most."""
    best = np.maximum(0.0, (known.lower - price * costs).max(axis=1, initial=0.0))
    can_win = known.upper - price * costs >= best[:, None]
    if is_lowest:
        cheapest = np.where(can_win, costs, np.inf).min(axis=1, initial=np.inf)
        spent = np.where(best == 0.0, 0.0, cheapest)
    else:
        spent = np.where(can_win, costs, 0.0).max(axis=1, initial=0.0)
    in_tier = known.depth >= tier
    own = np.bincount(known.depth[in_tier], (known.share * spent)[in_tier], known.least.size)
    below, caps = 0.0, known.least if not is_lowest else known.most
    own_caps = known.least if is_lowest else known.most
    for d in reversed(range(tier + 1, own.size)):
        below = min(float(own[d]) + below, float(own_caps[d]))
    spending = float(own[tier]) + below
    if is_lowest:
        return spending > float(caps[tier]) * (1.0 + TIES)
    return spending >= float(caps[tier]) * (1.0 - TIES)


# --- regions of arrivals with features -------------------------------------------------------------------------------


def _of_regions(state: State, problem: Problem) -> tuple[Certificate, ...]:
    """Return what is certain of regions; the largest first, and none inside of another for the same arm."""
    people, n_contexts = state.people, problem.n_contexts
    n_here = min(int(people.counts[CAME]), people.context.size - n_contexts)
    if n_here < FEWEST_PEOPLE:
        return ()
    rows = np.arange(n_contexts, n_contexts + n_here)
    low, high = _bounds_of_rows(state, rows, problem.n_arms)
    margin, rivals = _margins(state, rows, low, high)
    found: list[Certificate] = []
    certified: dict[int, list[Mask]] = {}
    for name, inside in _regions(state, problem, rows):
        if inside.sum() < FEWEST_PEOPLE:
            continue
        for arm in range(problem.n_arms):
            is_said = any((inside <= before).all() for before in certified.get(arm, []))
            if is_said or not (margin[inside, arm] > 0.0).all():
                continue
            certified.setdefault(arm, []).append(inside)
            closest = int(np.flatnonzero(inside)[margin[inside, arm].argmin()])
            rival = int(rivals[closest, arm])
            found.append(
                Certificate(
                    context=name,
                    arm=problem.arm_names[arm],
                    round=int(state.now["round"][0]),
                    at_most=float(high[closest, arm]),
                    rival=problem.arm_names[rival],
                    at_least=float(low[closest, rival]),
                    price=0.0,
                    price_low=0.0,
                    price_high=math.inf,
                )
            )
    return tuple(found)


def _bounds_of_rows(state: State, rows: NDArray[np.int64], n_arms: int) -> tuple[Floats, Floats]:
    """Return (rows, arms) bounds that hold for all at once: errors of reward and return add in squares."""
    certain = math.sqrt(2.0 * math.log(rows.size * n_arms / state.confidence.delta))
    weight = state.contexts["weight"][rows][:, None]
    tau, error = state.tau[rows, :n_arms], state.tau_error[rows, :n_arms]
    estimate, norm = state.ridge.estimate[rows, :n_arms], state.ridge.norm[rows, :n_arms]
    of_reward = certain * state.prior.sigma[rows][:, None] * tau * norm
    width = weight * np.sqrt(of_reward**2 + (certain * error * estimate) ** 2)
    middle = weight * tau * estimate
    return middle - width, middle + width


def _margins(state: State, rows: NDArray[np.int64], low: Floats, high: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return (rows, arms) by how much the best rival of no larger cost is better, and which one it is."""
    n_rows, n_arms = low.shape
    margin, rivals = np.full((n_rows, n_arms), -np.inf), np.zeros((n_rows, n_arms), dtype=np.int64)
    is_open = state.barrier[-1, :n_arms] == 0.0
    costs = state.list_costs[np.minimum(rows, state.list_costs.shape[0] - 1)]
    for arm in np.flatnonzero(is_open):
        for rival in np.flatnonzero(is_open):
            if rival != arm:
                lead = np.where(costs[:, rival] <= costs[:, arm], low[:, rival] - high[:, arm], -np.inf)
                better = lead > margin[:, arm]
                margin[better, arm], rivals[better, arm] = lead[better], rival
    return margin, rivals


def _regions(state: State, problem: Problem, rows: NDArray[np.int64]) -> Iterator[tuple[str, Mask]]:
    """Iterate over regions by name, the largest first."""
    yield "everyone", np.ones(rows.size, dtype=np.bool_)
    if problem.n_contexts > 1:
        for j, name in enumerate(problem.context_names):
            yield name, state.people.context[rows] == j
    for i in numbers_of(problem):
        values = state.people.traits[rows, i]
        known = ~np.isnan(values)
        if not known.any():
            continue
        middle = float(np.median(values[known]))
        yield f"{problem.person_names[i]} at most {middle:.4g}", known & (values <= middle)
        yield f"{problem.person_names[i]} above {middle:.4g}", known & (values > middle)
