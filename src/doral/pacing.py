"""LP_m: how much of each context to serve, and with which arm, so that the budget lasts.

    max  sum_j pi_j sum_a p_ja eta_ja    s.t.  sum_j pi_j sum_a p_ja c_a <= rho,  sum_a p_ja <= 1,  p >= 0

This is the linear relaxation of a multiple-choice knapsack (Sinha and Zoltners 1979) and needs no solver: each context
keeps the upper hull of its (cost, value) points, starting at "skip" = (0, 0); the edges of all hulls, in order of value
gained per unit of cost, are bought until rho is used. The edge that is bought in part is the one that is randomised,
and its slope is the shadow price of a unit of budget. With unit costs a hull has one edge and this is the paper's fill
of the contexts in order of eta_j. Edges stay sorted between rounds; only a changed context is re-inserted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._jit import jit, jit_inner

NO_ARM = -1
_WHOLE = 1.0 - 1e-12  # a share of an edge above this is the whole edge: rounding must not toss a coin


class Hulls(NamedTuple):
    """Hulls of J contexts, and one spare row for a context whose arms are restricted in this round only."""

    costs: Floats  # (A,)
    by_cost: Ints  # (A,) arms in ascending order of cost
    length: Ints  # (J + 1,) vertices of each hull, "skip" not counted
    arm: Ints  # (J + 1, H)
    cost: Floats  # (J + 1, H)
    value: Floats  # (J + 1, H)
    edge_slope: Floats  # (J * H,) all edges of rows 0..J-1, steepest first; ties by context
    edge_cost: Floats  # (J * H,)
    edge_context: Ints  # (J * H,)
    n_edges: Ints  # (1,)


class Share(NamedTuple):
    """What LP_m says for one context: `upper` with `probability`, else `lower`; an arm of -1 is to skip."""

    lower: int  # vertex of the hull, -1 for skip
    upper: int
    probability: float
    price: float  # of a unit of budget


def new_hulls(costs: Floats, n_contexts: int) -> Hulls:
    """Empty hulls: every context is skipped."""
    most = max(1, np.unique(costs).size)
    return Hulls(
        costs=np.array(costs, dtype=np.float64),
        by_cost=np.argsort(costs, kind="stable").astype(np.int64),
        length=np.zeros(n_contexts + 1, dtype=np.int64),
        arm=np.zeros((n_contexts + 1, most), dtype=np.int64),
        cost=np.zeros((n_contexts + 1, most)),
        value=np.zeros((n_contexts + 1, most)),
        edge_slope=np.zeros(n_contexts * most + 1),
        edge_cost=np.zeros(n_contexts * most + 1),
        edge_context=np.zeros(n_contexts * most + 1, dtype=np.int64),
        n_edges=np.zeros(1, dtype=np.int64),
    )


@jit
def first_best(values: Floats) -> int:
    """The position of the largest value, the first of them on ties."""
    best = 0
    for a in range(1, values.size):
        if values[a] > values[best]:
            best = a
    return best


@jit
def set_hull(hulls: Hulls, row: int, values: Floats) -> None:
    """The upper hull over all arms with a positive value (NaN or values <= 0 leave an arm out)."""
    arms, costs, heights = hulls.arm[row], hulls.cost[row], hulls.value[row]
    if arms.size == 1:  # one cost for all: the hull is the best arm
        best = first_best(values)
        arms[0], costs[0], heights[0] = best, hulls.costs[best], values[best]
        hulls.length[row] = values[best] > 0.0
        return
    n = 0
    for position in range(hulls.by_cost.size):
        arm = hulls.by_cost[position]
        value = values[arm]
        top = heights[n - 1] if n > 0 else 0.0
        if not value > top:
            continue  # dominated: costs no less and brings no more
        cost = hulls.costs[arm]
        while n > 0:  # drop vertices that fall below the new line
            before_value = heights[n - 2] if n > 1 else 0.0
            before_cost = costs[n - 2] if n > 1 else 0.0
            rise = heights[n - 1] - before_value
            run = costs[n - 1] - before_cost
            if rise * (cost - costs[n - 1]) > (value - heights[n - 1]) * run:
                break
            n -= 1
        arms[n], costs[n], heights[n] = arm, cost, value
        n += 1
    hulls.length[row] = n


@jit
def place(hulls: Hulls, context: int) -> None:
    """Put the edges of a changed context back into their order."""
    slopes, costs, owners = hulls.edge_slope, hulls.edge_cost, hulls.edge_context
    kept = 0
    for i in range(hulls.n_edges[0]):
        if owners[i] != context:
            if kept != i:
                slopes[kept], costs[kept], owners[kept] = slopes[i], costs[i], owners[i]
            kept += 1
    before_cost, before_value = 0.0, 0.0
    for vertex in range(hulls.length[context]):
        cost = hulls.cost[context, vertex] - before_cost
        slope = (hulls.value[context, vertex] - before_value) / cost
        before_cost, before_value = hulls.cost[context, vertex], hulls.value[context, vertex]
        i = kept
        while i > 0 and (slopes[i - 1] < slope or (slopes[i - 1] == slope and owners[i - 1] > context)):
            slopes[i], costs[i], owners[i] = slopes[i - 1], costs[i - 1], owners[i - 1]
            i -= 1
        slopes[i], costs[i], owners[i] = slope, cost, context
        kept += 1
    hulls.n_edges[0] = kept


@jit_inner
def _open(slack: Floats, depth: int) -> float:
    """What the tiers of this depth may still spend."""
    least = slack[0]
    for d in range(1, depth + 1):
        least = min(least, slack[d])
    return least


@jit
def fill(hulls: Hulls, shares: Floats, caps: Floats, depths: Ints, slack: Floats, context: int, row: int) -> Share:
    """Buy edges until the caps are used, with `row` as the hull of `context`; what that means for this context.

    `caps[0]` is rho. Where budget is reserved for urgent tiers, `caps[d]` bounds what all contexts of depth d and more
    spend together: the deeper, the less urgent. These sets are nested, so taking edges in order stays optimal. `slack`
    is scratch.
    """
    n_edges = hulls.n_edges[0]
    length = hulls.length[row]
    own_depth = depths[context]
    for d in range(caps.size):
        slack[d] = caps[d]
    level = 0  # own edges bought
    own_slope, own_cost = 0.0, 0.0
    if length > 0:
        own_cost = hulls.cost[row, 0]
        own_slope = hulls.value[row, 0] / own_cost
    i = 0
    while True:
        while i < n_edges and hulls.edge_context[i] == context:
            i += 1
        other = -1.0
        if i < n_edges:
            other = hulls.edge_slope[i]
        if other > own_slope or (other == own_slope and level < length and hulls.edge_context[i] < context):
            depth = depths[hulls.edge_context[i]]
            needed = shares[hulls.edge_context[i]] * hulls.edge_cost[i]
            bought = min(needed, _open(slack, depth))
            for d in range(depth + 1):
                slack[d] -= bought
            if bought > 0.0 and _open(slack, own_depth) <= 0.0:
                return Share(level - 1, level - 1, 1.0, other)
            i += 1
        elif level < length:
            needed = shares[context] * own_cost
            left = _open(slack, own_depth)
            if needed >= left:
                part = max(left / needed, 0.0)
                if part > _WHOLE:
                    part = 1.0
                return Share(level - 1, level, part, own_slope)
            for d in range(own_depth + 1):
                slack[d] -= needed
            level += 1
            if level < length:
                own_cost = hulls.cost[row, level] - hulls.cost[row, level - 1]
                own_slope = (hulls.value[row, level] - hulls.value[row, level - 1]) / own_cost
            else:
                own_slope = 0.0
        else:
            return Share(level - 1, level - 1, 1.0, 0.0)


class Allocation(NamedTuple):
    """The solution of LP_m."""

    value: float
    price: float  # of a unit of budget, to the most urgent tier
    play: Floats  # (J, A) probability of each arm in each context


def solve(
    *,
    values: Floats,
    costs: Floats,
    shares: Floats,
    rate: float,
    caps: Floats | None = None,
    depths: Ints | None = None,
) -> Allocation:
    """LP_m for a whole table of values (J, A), with the kernels that the policies use.

    With reserves, `caps` (the first of them the rate) and the `depths` of the contexts say who may spend what.
    """
    n_contexts, n_arms = values.shape
    # writable copies: one compiled version whatever comes in
    shares = np.array(shares, dtype=np.float64)
    caps = np.array([rate] if caps is None else caps, dtype=np.float64)
    depths = np.array(np.zeros(n_contexts) if depths is None else depths, dtype=np.int64)
    hulls = new_hulls(costs, n_contexts)
    for context in range(n_contexts):
        set_hull(hulls, context, np.ascontiguousarray(values[context], dtype=np.float64))
        place(hulls, context)
    play = np.zeros((n_contexts, n_arms))
    price = 0.0
    for context in range(n_contexts):
        share = fill(hulls, shares, caps, depths, np.zeros(caps.size), context, context)
        if depths[context] == 0:
            price = share.price
        if share.upper >= 0:
            play[context, hulls.arm[context, share.upper]] += share.probability
        if share.lower >= 0 and share.upper != share.lower:
            play[context, hulls.arm[context, share.lower]] += 1.0 - share.probability
    value = float((shares[:, None] * play * np.where(play > 0.0, values, 0.0)).sum())
    return Allocation(value=value, price=price, play=play)
