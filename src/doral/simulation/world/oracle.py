"""The oracle: the largest expected reward of a policy that knows the true means and delays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._elementary import weighted_sum
from doral.pacing import Pacer, solve
from doral.problem import Problem, reserve_depths
from doral.simulation.scenario.people import Drawn
from doral.simulation.scenario.scenario import Scenario

MOST_STEPS = 200  # of the search for a price: it ends sooner, unless the price is 0


def clairvoyant_worth(
    scenario: Scenario, counted: Floats, rounds: int, paid: Floats | None = None, shares: Floats | None = None
) -> float:
    """U*: what it expects to earn over so many rounds, from the expected worth (phases, J, A) of what returns in time.

    `paid` is the share of the list price that is paid on average, (phases, J, A); None where that is all of it.
    Where the end is a date, the clairvoyant knows how many will have come by then; and where a calendar says who comes,
    how often each context does in this run: `shares` (J,).
    """
    problem = scenario.problem
    values = counted.reshape(-1, problem.n_arms)  # phases are just more contexts to somebody who knows them all
    bought = scenario.once(bought_arms)
    shares = scenario.once(_phase_shares) if shares is None else shares
    if scenario.availability is None and paid is None:
        pacer = scenario.once(_pacer) if problem.until is None else _pacer_at(scenario, problem.budget / rounds, shares)
        return pacer.solve(values[:, bought]).value * rounds
    rate = clairvoyant_rate(
        values=values[:, bought],
        costs=_costs(scenario) * (1.0 if paid is None else paid.reshape(values.shape)[:, bought]),
        shares=shares,
        rate=problem.budget / rounds,
        available=None if scenario.availability is None else np.array(scenario.availability)[bought],
        floor=problem.return_at_least,
    )
    return rate * rounds


def bought_arms(scenario: Scenario) -> Ints:
    """The arms that the budget is for: all but the one that those get who are skipped."""
    return np.array([arm for arm in range(scenario.problem.n_arms) if arm != scenario.problem.control], dtype=np.int64)


def _costs(scenario: Scenario) -> Floats:
    """(1 or phases * J, arms that are bought) what one use costs."""
    costs = scenario.problem.costs_by_context[:, scenario.once(bought_arms)]
    return costs if len(costs) == 1 else np.tile(costs, (scenario.phases, 1))


def _phase_shares(scenario: Scenario) -> Floats:
    return np.tile(scenario.true_shares / scenario.phases, scenario.phases)


def clairvoyant_rate(
    *, values: Floats, costs: Floats, shares: Floats, rate: float, available: Floats | None, floor: float = 0.0
) -> float:
    """The value of LP_m per round with true values; with random availability, the same LP over available sets.

    A unit of budget must bring `floor`, or it is kept. With each arm independently available, the LP has a term per set
    of arms. Its dual does not: it is the minimum over one price of a convex function, where a context's best available
    arm at that price is found by sorting.
    """
    if available is None:
        return solve(values=values, costs=costs, shares=shares, rate=rate, floor=floor).value

    def terms(price: float, of: Floats) -> Floats:
        worth = values - price * costs
        best_first = np.argsort(-worth, axis=1)
        worth, chance = np.take_along_axis(worth, best_first, axis=1), available[best_first]
        missing = np.ones_like(worth)  # probability that every better arm is missing
        np.cumprod(1.0 - chance[:, :-1], axis=1, out=missing[:, 1:])
        of = np.take_along_axis(np.broadcast_to(of, values.shape), best_first, axis=1)
        return np.where(worth > 0.0, shares[:, None] * missing * chance * of, 0.0)

    def dual(price: float) -> float:
        worth = terms(price, values - price * costs)
        return float(np.cumsum(np.append(price * rate, worth))[-1])  # term by term, context by context

    if floor > 0.0 and terms(floor, costs).sum() <= rate:  # there is budget for all that brings the floor
        return float(terms(floor, values).sum())
    per_cost = np.divide(values, costs, out=np.zeros(values.shape), where=costs > 0.0)
    low, high = 0.0, float(max(0.0, per_cost.max()))
    for _ in range(MOST_STEPS):  # ternary search on a convex function, to the last bit
        third = (high - low) / 3.0
        if low + third == low and high - third == high:
            break
        if dual(low + third) <= dual(high - third):
            high -= third
        else:
            low += third
    return min(dual(0.0), dual(low), dual(high))


def _pacer(scenario: Scenario) -> Pacer:
    return _pacer_at(scenario, scenario.problem.rate, scenario.once(_phase_shares))


def _pacer_at(scenario: Scenario, rate: float, shares: Floats) -> Pacer:
    problem = scenario.problem
    depths = np.tile(reserve_depths(problem), scenario.phases)
    caps = reserve_caps(problem, _costs(scenario), shares, depths, rate)
    return Pacer(
        costs=_costs(scenario),
        shares=shares,
        rate=rate,
        caps=caps,
        depths=depths,
        floor=problem.return_at_least,
    )


def reserve_caps(problem: Problem, costs: Floats, shares: Floats, depths: Ints, rate: float) -> Floats:
    """What may be spent per round: lower tiers cannot take what is reserved for higher ones, as far as those use it."""
    caps, kept = [rate], 0.0
    for d, (_, share) in enumerate(reversed(problem.reserves), start=1):
        kept += share * rate
        above = depths < d
        dearest = costs.max() if len(costs) == 1 else costs.max(axis=1)[above]
        usable = float(shares[above].sum() * dearest) if len(costs) == 1 else weighted_sum(shares[above], dearest)
        caps.append(min(caps[-1], rate - min(kept, usable)))
    return np.array(caps)


PARTS = 20  # that a sample is worked out without, in turn, where reserves make several prices
_STEPS = 100  # of the search for a price
_TIGHT = 1e-9


class Worth(NamedTuple):
    value: float
    error: float  # its standard error; 0 where people are given


class _Lp(NamedTuple):
    """LP_m over people in all phases, one after the other: rows are phases * people."""

    values: Floats
    costs: Floats  # (1 or rows, arms)
    shares: Floats
    depths: Ints
    rate: float


def worth_of_people(scenario: Scenario, people: Drawn, counted: Floats, rounds: int, paid: Floats | None) -> Worth:
    """What it expects to earn over so many rounds, from the expected worth (phases, N, A) of what returns in time."""
    problem, (phases, n, n_arms) = scenario.problem, counted.shape
    bought = scenario.once(bought_arms)
    costs = problem.costs_by_context[:, bought]
    if len(costs) > 1:
        costs = np.tile(costs[people.classes], (phases, 1))
    if paid is not None:
        costs = costs * np.broadcast_to(paid, counted.shape).reshape(-1, n_arms)[:, bought]
    shares = people.shares / phases if len(people.shares) else np.full((phases, n), 1.0 / (phases * n))
    lp = _Lp(
        values=np.ascontiguousarray(counted.reshape(-1, n_arms)[:, bought]),
        costs=costs,
        shares=shares.ravel(),
        depths=np.tile(reserve_depths(problem)[people.classes], phases),
        rate=problem.budget / rounds,
    )
    if scenario.availability is None:
        value, terms = _solved(scenario, lp)
    else:
        value, terms = _with_missing_arms(lp, np.array(scenario.availability)[bought], problem.return_at_least)
    error = 0.0
    if people.is_sample:
        error = _error_by_parts(scenario, lp, phases) if problem.reserves else _error(terms, shares)
    return Worth(value * rounds, error * rounds)


def _solved(scenario: Scenario, lp: _Lp) -> tuple[float, Floats]:
    """The value of LP_m, and what each person adds to it beyond the price of the budget."""
    problem = scenario.problem
    caps = reserve_caps(problem, lp.costs, lp.shares, lp.depths, lp.rate)
    found = solve(
        values=lp.values,
        costs=lp.costs,
        shares=lp.shares,
        rate=lp.rate,
        caps=caps,
        depths=lp.depths,
        floor=problem.return_at_least,
    )
    spend = weighted_sum(lp.shares, (found.play * lp.costs).sum(axis=1))
    price = found.price if spend >= lp.rate * (1.0 - _TIGHT) else 0.0
    terms: Floats = (found.play * (lp.values - price * lp.costs)).sum(axis=1)
    return found.value, terms


def _with_missing_arms(lp: _Lp, available: Floats, floor: float) -> tuple[float, Floats]:
    """The same over the sets of arms that are there: at a price, everybody gets the best of those, if any is worth it.

    What is spent falls as the price rises; that at which it is the rate makes the least of the dual.
    """

    def taken(price: float, of: Floats) -> Floats:
        worth = lp.values - price * lp.costs
        best_first = np.argsort(-worth, axis=1)
        worth, chance = np.take_along_axis(worth, best_first, axis=1), available[best_first]
        missing = np.ones_like(worth)  # probability that every better arm is missing
        np.cumprod(1.0 - chance[:, :-1], axis=1, out=missing[:, 1:])
        of = np.take_along_axis(np.broadcast_to(of, worth.shape), best_first, axis=1)
        total: Floats = np.where(worth > 0.0, missing * chance * of, 0.0).sum(axis=1)
        return total

    def spend(price: float) -> float:
        return weighted_sum(lp.shares, taken(price, lp.costs))

    if spend(floor) <= lp.rate:
        terms = taken(floor, lp.values)
        return weighted_sum(lp.shares, terms), terms
    per_cost = np.divide(lp.values, lp.costs, out=np.zeros(lp.values.shape), where=lp.costs > 0.0)
    low, high = floor, float(per_cost.max())
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if spend(middle) > lp.rate:
            low = middle
        else:
            high = middle
    terms = taken(high, lp.values - high * lp.costs)
    return high * lp.rate + weighted_sum(lp.shares, terms), terms


def _error(terms: Floats, shares: Floats) -> float:
    """Of a weighted mean over people, each of whom may come in every phase."""
    phases, n = shares.shape
    weights, by_phase = shares * phases, terms.reshape(phases, n)
    per_person = weights * (by_phase - (weights * by_phase).sum(axis=1, keepdims=True))
    return math.sqrt(float((per_person.mean(axis=0) ** 2).sum()))


def _error_by_parts(scenario: Scenario, lp: _Lp, phases: int) -> float:
    """What the sample is worth without one part after the other (the jackknife of groups)."""
    n = lp.shares.size // phases
    parts = min(PARTS, n)
    values = []
    for part in range(parts):
        rows = np.flatnonzero(np.arange(n) % parts != part)
        chosen = (np.arange(phases)[:, None] * n + rows).ravel()
        shares = lp.shares[chosen]
        costs = lp.costs if len(lp.costs) == 1 else lp.costs[chosen]
        own = lp._replace(values=lp.values[chosen], costs=costs, shares=shares / shares.sum(), depths=lp.depths[chosen])
        values.append(_solved(scenario, own)[0])
    return float(np.std(values) * math.sqrt(parts - 1.0))
