"""The clairvoyant: the best that a policy could do which knows the truth, and what regret is measured against."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints
from doral.pacing import Pacer, solve
from doral.problem import Problem, reserve_depths
from doral.simulation.scenario import Scenario

MOST_STEPS = 200  # of the search for a price: it ends sooner, unless the price is 0


def clairvoyant_worth(scenario: Scenario, counted: Floats) -> float:
    """U*: what it expects to earn over the horizon, from the expected worth (phases, J, A) of what returns in time."""
    problem = scenario.problem
    values = counted.reshape(-1, problem.n_arms)  # phases are just more contexts to somebody who knows them all
    bought = scenario.once(_bought)
    if scenario.availability is None:
        return scenario.once(_pacer).solve(values[:, bought]).value * problem.horizon
    available, shares = np.array(scenario.availability)[bought], scenario.once(_phase_shares)
    costs = problem.costs[bought]
    rate = clairvoyant_rate(
        values=values[:, bought], costs=costs, shares=shares, rate=problem.rate, available=available
    )
    return rate * problem.horizon


def _bought(scenario: Scenario) -> Ints:
    """The arms that the budget is for: all but the one that those get who are skipped."""
    return np.array([arm for arm in range(scenario.problem.n_arms) if arm != scenario.problem.control], dtype=np.int64)


def _phase_shares(scenario: Scenario) -> Floats:
    return np.tile(scenario.true_shares / scenario.phases, scenario.phases)


def clairvoyant_rate(*, values: Floats, costs: Floats, shares: Floats, rate: float, available: Floats | None) -> float:
    """The value of LP_m per round with true values; with random availability, the same LP over available sets.

    With each arm independently available, the LP has a term per set of arms. Its dual does not: it is the minimum over
    one price of a convex function, where a context's best available arm at that price is found by sorting.
    """
    if available is None:
        return solve(values=values, costs=costs, shares=shares, rate=rate).value

    def dual(price: float) -> float:
        worth = values - price * costs
        best_first = np.argsort(-worth, axis=1)
        worth, chance = np.take_along_axis(worth, best_first, axis=1), available[best_first]
        missing = np.ones_like(worth)  # probability that every better arm is missing
        np.cumprod(1.0 - chance[:, :-1], axis=1, out=missing[:, 1:])
        terms = np.where(worth > 0.0, shares[:, None] * missing * chance * worth, 0.0)
        return float(np.cumsum(np.append(price * rate, terms))[-1])  # term by term, context by context

    low, high = 0.0, float(max(0.0, (values / costs).max()))
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
    problem, shares = scenario.problem, scenario.once(_phase_shares)
    depths = np.tile(reserve_depths(problem), scenario.phases)
    caps = reserve_caps(problem, shares, depths, problem.rate)
    return Pacer(
        costs=problem.costs[scenario.once(_bought)], shares=shares, rate=problem.rate, caps=caps, depths=depths
    )


def reserve_caps(problem: Problem, shares: Floats, depths: Ints, rate: float) -> Floats:
    """What may be spent per round: lower tiers cannot take what is reserved for higher ones, as far as those use it."""
    caps, kept = [rate], 0.0
    for d, (_, share) in enumerate(reversed(problem.reserves), start=1):
        kept += share * rate
        usable = float(shares[depths < d].sum() * problem.costs.max())
        caps.append(min(caps[-1], rate - min(kept, usable)))
    return np.array(caps)
