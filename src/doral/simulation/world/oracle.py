"""The oracle: the largest expected reward of a policy that knows the true means and delays. Regret is measured to it.

It is the value of LP_m with the true values. Where arms are missing at random, LP_m has a term for every set of arms;
its dual has one price, and at a price the best available arm of a context is found by sorting. Where people are a
sample of a law, the value is an estimate: by the dual it is the price times the rate plus a mean over people, so its
standard error is that of this mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.numerics.elementary import weighted_sum
from doral.pacing import Pacer, solve
from doral.problem import Problem, reserve_depths
from doral.simulation.scenario.people import Drawn
from doral.simulation.scenario.scenario import Scenario

JACKKNIFE_GROUPS = 20  # for the standard error where reserves make several prices
_STEPS = 100  # of the search for a price
_TIGHT = 1e-9


class Oracle(NamedTuple):
    """The expected reward over a run, and its standard error."""

    reward: float
    error: float = 0.0  # 0 where people are given, or contexts alone


class _Lp(NamedTuple):
    """LP_m. Rows are contexts or people, phase after phase; columns are the arms that the budget is for."""

    values: Floats
    costs: Floats  # (1 or rows, arms)
    shares: Floats
    depths: Ints
    rate: float


def oracle_of_contexts(
    scenario: Scenario, counted: Floats, rounds: int, paid: Floats | None = None, shares: Floats | None = None
) -> Oracle:
    """Return the oracle's reward over `rounds`, from expected rewards in time (phases, J, A).

    Args:
        scenario: Where contexts arrive.
        counted: Expected worth of what returns within the deadline.
        rounds: How many arrive. Where the end is a date, the oracle knows this number.
        paid: (phases, J, A) expected share of the list price; None: all of it.
        shares: (J,) how often each context arrives in this run, where a calendar says so.
    """
    problem = scenario.problem
    values = counted.reshape(-1, problem.n_arms)  # the oracle knows all phases: they are more contexts
    bought = scenario.once(bought_arms)
    shares = scenario.once(_phase_shares) if shares is None else shares
    if scenario.availability is None and paid is None:
        pacer = scenario.once(_pacer) if problem.until is None else _pacer_at(scenario, problem.budget / rounds, shares)
        return Oracle(pacer.solve(values[:, bought]).value * rounds)
    lp = _Lp(
        values=values[:, bought],
        costs=_costs(scenario) * (1.0 if paid is None else paid.reshape(values.shape)[:, bought]),
        shares=shares,
        depths=np.tile(reserve_depths(problem), scenario.phases),
        rate=problem.budget / rounds,
    )
    return Oracle(_solved(scenario, lp)[0] * rounds)


def oracle_of_people(scenario: Scenario, people: Drawn, counted: Floats, rounds: int, paid: Floats | None) -> Oracle:
    """Return the oracle's reward over `rounds`, from expected rewards in time (phases, N, A) by person."""
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
    value, terms = _solved(scenario, lp)
    error = 0.0
    if people.is_sample:
        error = _jackknife_error(scenario, lp, phases) if problem.reserves else _error(terms, shares)
    return Oracle(value * rounds, error * rounds)


def bought_arms(scenario: Scenario) -> Ints:
    """Return the numbers of the arms that the budget is for: all but the control."""
    return np.array([arm for arm in range(scenario.problem.n_arms) if arm != scenario.problem.control], dtype=np.int64)


def reserve_caps(problem: Problem, costs: Floats, shares: Floats, depths: Ints, rate: float) -> Floats:
    """Return the spend per round that each tier and those below may reach.

    Lower tiers cannot take what is reserved for higher ones, as far as those can use it.
    """
    caps, kept = [rate], 0.0
    for d, (_, share) in enumerate(reversed(problem.reserves), start=1):
        kept += share * rate
        above = depths < d
        dearest = costs.max() if len(costs) == 1 else costs.max(axis=1)[above]
        usable = float(shares[above].sum() * dearest) if len(costs) == 1 else weighted_sum(shares[above], dearest)
        caps.append(min(caps[-1], rate - min(kept, usable)))
    return np.array(caps)


def _costs(scenario: Scenario) -> Floats:
    """Return the list prices (1 or phases * J, arms that are bought)."""
    costs = scenario.problem.costs_by_context[:, scenario.once(bought_arms)]
    return costs if len(costs) == 1 else np.tile(costs, (scenario.phases, 1))


def _phase_shares(scenario: Scenario) -> Floats:
    return np.tile(scenario.true_shares / scenario.phases, scenario.phases)


def _pacer(scenario: Scenario) -> Pacer:
    return _pacer_at(scenario, scenario.problem.rate, scenario.once(_phase_shares))


def _pacer_at(scenario: Scenario, rate: float, shares: Floats) -> Pacer:
    problem, costs = scenario.problem, _costs(scenario)
    depths = np.tile(reserve_depths(problem), scenario.phases)
    caps = reserve_caps(problem, costs, shares, depths, rate)
    return Pacer(costs=costs, shares=shares, rate=rate, caps=caps, depths=depths, floor=problem.return_at_least)


def _solved(scenario: Scenario, lp: _Lp) -> tuple[float, Floats]:
    """Return the value of LP_m per round, and by row what it adds beyond the shadow price."""
    problem = scenario.problem
    if scenario.availability is not None:
        available = np.array(scenario.availability)[scenario.once(bought_arms)]
        return availability_dual(lp.values, lp.costs, lp.shares, lp.rate, available, problem.return_at_least)
    found = solve(
        values=lp.values,
        costs=lp.costs,
        shares=lp.shares,
        rate=lp.rate,
        caps=reserve_caps(problem, lp.costs, lp.shares, lp.depths, lp.rate),
        depths=lp.depths,
        floor=problem.return_at_least,
    )
    spend = weighted_sum(lp.shares, (found.play * lp.costs).sum(axis=1))
    price = found.price if spend >= lp.rate * (1.0 - _TIGHT) else 0.0
    terms: Floats = (found.play * (lp.values - price * lp.costs)).sum(axis=1)
    return found.value, terms


def availability_dual(
    values: Floats, costs: Floats, shares: Floats, rate: float, available: Floats, floor: float = 0.0
) -> tuple[float, Floats]:
    """Return the value per round of LP_m over random sets of arms, and its terms by row beyond the shadow price.

    Spend falls as the price rises; the price at which it equals the rate minimises the dual. A unit of budget that
    brings less than `floor` is not spent.

    Args:
        values: (rows, arms) expected worth of a use.
        costs: (1 or rows, arms).
        shares: (rows,) of arrivals.
        rate: Budget per round.
        available: (arms,) probability that an arm can be had.
        floor: Least return of a unit of budget.
    """

    def taken(price: float, of: Floats) -> Floats:
        worth = values - price * costs
        best_first = np.argsort(-worth, axis=1)
        worth, chance = np.take_along_axis(worth, best_first, axis=1), available[best_first]
        missing = np.ones_like(worth)  # probability that every better arm is missing
        np.cumprod(1.0 - chance[:, :-1], axis=1, out=missing[:, 1:])
        of = np.take_along_axis(np.broadcast_to(of, worth.shape), best_first, axis=1)
        total: Floats = np.where(worth > 0.0, missing * chance * of, 0.0).sum(axis=1)
        return total

    def spend(price: float) -> float:
        return weighted_sum(shares, taken(price, costs))

    if spend(floor) <= rate:
        terms = taken(floor, values)
        return weighted_sum(shares, terms), terms
    per_cost = np.divide(values, costs, out=np.zeros(values.shape), where=costs > 0.0)
    low, high = floor, float(per_cost.max())
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if spend(middle) > rate:
            low = middle
        else:
            high = middle
    terms = taken(high, values - high * costs)
    return high * rate + weighted_sum(shares, terms), terms


def _error(terms: Floats, shares: Floats) -> float:
    """Return the standard error of a weighted mean over people, each of which may arrive in every phase."""
    phases, n = shares.shape
    weights, by_phase = shares * phases, terms.reshape(phases, n)
    per_person = weights * (by_phase - (weights * by_phase).sum(axis=1, keepdims=True))
    return math.sqrt(float((per_person.mean(axis=0) ** 2).sum()))


def _jackknife_error(scenario: Scenario, lp: _Lp, phases: int) -> float:
    """Return the standard error by the grouped jackknife."""
    n = lp.shares.size // phases
    groups = min(JACKKNIFE_GROUPS, n)
    values = []
    for group in range(groups):
        rows = np.flatnonzero(np.arange(n) % groups != group)
        chosen = (np.arange(phases)[:, None] * n + rows).ravel()
        shares = lp.shares[chosen]
        costs = lp.costs if len(lp.costs) == 1 else lp.costs[chosen]
        own = lp._replace(values=lp.values[chosen], costs=costs, shares=shares / shares.sum(), depths=lp.depths[chosen])
        values.append(_solved(scenario, own)[0])
    return float(np.std(values) * math.sqrt(groups - 1.0))
