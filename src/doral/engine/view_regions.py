"""Certificates where people have features: for whom an arm is worse than others for certain, told by region.

Nobody is kept from an arm by them: who is offered what follows from the lines, and by these an arm of which this is
certain is never the best. They are what can be said to people about arms.

For each of those who came lately, an arm is out if even the most that it may bring falls short of the least that some
rival brings which costs no more: so it is at every price of budget. The bounds are as wide as a normal posterior needs
to hold for all of them, and all arms, at once with probability 1 - delta. A region is certified if everybody in it is:
all who came lately, those of one context, or those in whom a number is at most, or above, what it is in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats
from doral.engine.pieces.people import CAME, numbers_of
from doral.engine.state import FEWEST_ANSWERS, State
from doral.engine.view import Certificate
from doral.problem import Problem

FEWEST_PEOPLE = 20  # in a region: fewer do not stand for those who will come

Mask = NDArray[np.bool_]


def region_certificates(state: State, problem: Problem) -> tuple[Certificate, ...]:
    """What is certain by now; the largest regions first, and none inside of another for the same arm."""
    people, n_contexts = state.people, problem.n_contexts
    n_here = min(int(people.counts[CAME]), people.context.size - n_contexts)
    if int(state.now["learned"][0]) < FEWEST_ANSWERS or n_here < FEWEST_PEOPLE or not hasattr(state, "prior"):
        return ()
    rows = np.arange(n_contexts, n_contexts + n_here)
    low, high = _bounds(state, rows, problem.n_arms)
    found: list[Certificate] = []
    certified: dict[int, list[Mask]] = {}
    margin = _margins(state, rows, low, high)
    for name, inside in _regions(state, problem, rows):
        if inside.sum() < FEWEST_PEOPLE:
            continue
        for arm in range(problem.n_arms):
            is_told = any((inside <= before).all() for before in certified.get(arm, []))
            if is_told or not (margin[0][inside, arm] > 0.0).all():
                continue
            certified.setdefault(arm, []).append(inside)
            closest = int(np.flatnonzero(inside)[margin[0][inside, arm].argmin()])
            rival = int(margin[1][closest, arm])
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


def _bounds(state: State, rows: NDArray[np.int64], n_arms: int) -> tuple[Floats, Floats]:
    """(people, arms) what an arm brings at worst and at best: errors of reward and return add in squares."""
    certain = math.sqrt(2.0 * math.log(rows.size * n_arms / state.confidence.delta))
    weight = state.contexts["weight"][rows][:, None]
    tau, error = state.tau[rows, :n_arms], state.tau_error[rows, :n_arms]
    estimate, norm = state.ridge.estimate[rows, :n_arms], state.ridge.norm[rows, :n_arms]
    of_reward = certain * state.prior.sigma[rows][:, None] * tau * norm
    width = weight * np.sqrt(of_reward**2 + (certain * error * estimate) ** 2)
    middle = weight * tau * estimate
    return middle - width, middle + width


def _margins(state: State, rows: NDArray[np.int64], low: Floats, high: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """(people, arms) by how much the best rival of no larger cost is better for certain, and who it is."""
    n_people, n_arms = low.shape
    margin, rivals = np.full((n_people, n_arms), -np.inf), np.zeros((n_people, n_arms), dtype=np.int64)
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
