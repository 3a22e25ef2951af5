"""The clairvoyant where people have features: LP_m over all who may come, by what is true of each.

Where they are a sample of a law, what it earns is an estimate of what it would earn with all people of that law. By the
dual of LP_m that is the price times the rate and a mean over people, of what each is worth beyond the price; so its
standard error is that of this mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.pacing import solve
from doral.problem import reserve_depths
from doral.simulation.scenario.people import Drawn
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.sums import weighted_sum
from doral.simulation.world.oracle import bought_arms, reserve_caps

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
