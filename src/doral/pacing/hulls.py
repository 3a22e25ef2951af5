"""The upper hull of (cost, value) of every context, starting at "skip" = (0, 0)."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, allocate
from doral.compiled import kernel, rare
from doral.pacing.demand import Demand
from doral.pacing.edges import (
    Edges,
    edge_sizes,
    find_block,
    is_sum_due,
    is_summed,
    put_in,
    start_edges,
    sum_up,
    take_out,
)

NO_ARM = -1


class Hulls(NamedTuple):
    """Hulls of J contexts, and one spare row for a context whose arms are restricted in this round only."""

    costs: Annotated[Floats, Array("Rh A")]  # of one row for all contexts, or of one row per context
    by_cost: Annotated[Ints, Array("Rh A", index="A")]  # arms in ascending order of cost
    floor: Annotated[Floats, Array("1")]  # what a unit of cost must bring at least
    length: Annotated[Ints, Array("rows+1", index="H+1")]  # vertices of each hull, "skip" not counted
    arm: Annotated[Ints, Array("rows+1 H", index="A")]
    cost: Annotated[Floats, Array("rows+1 H")]
    value: Annotated[Floats, Array("rows+1 H")]
    edges: Edges  # of rows 0..J-1


def new_hulls(
    costs: Floats, n_contexts: int, n_depths: int = 1, *, room: int = 0, floor: float = 0.0, is_learned: bool = False
) -> Hulls:
    """Empty hulls: every context is skipped. `costs` are (A,), or (J, A) where they differ by context, or will once
    they are learned. `room` is that of a block, 0 for the best.
    """
    rows = np.array(costs, dtype=np.float64, order="C").reshape(-1, costs.shape[-1])
    sizes = {"rows": n_contexts, "A": rows.shape[1], "D": n_depths, **hull_sizes(rows, n_contexts, is_learned)}
    sizes |= edge_sizes(n_contexts, sizes["H"], room)
    hulls: Hulls = allocate(Hulls, sizes)
    start_hulls(hulls, rows, floor)
    return hulls


def hull_sizes(costs: Floats, n_contexts: int, is_learned: bool) -> dict[str, int]:
    """Return the rows of costs, one for all or one per context, and the most vertices of a hull: distinct costs."""
    if is_learned:
        return {"Rh": n_contexts, "H": costs.shape[1]}
    return {"Rh": len(costs), "H": max(np.unique(row).size for row in costs)}


def start_hulls(hulls: Hulls, costs: Floats, floor: float) -> None:
    """Set the costs, their order, and what a unit of cost must bring."""
    hulls.costs[:] = costs
    hulls.by_cost[:] = np.argsort(hulls.costs, axis=1, kind="stable")
    hulls.floor[0] = floor
    start_edges(hulls.edges)


@kernel
def first_best(values: Floats) -> int:
    """The position of the largest value, the first of them on ties."""
    best, most = 0, values[0]
    for a in range(1, values.size):
        if values[a] > most:
            best, most = a, values[a]
    return best


@kernel
def cost_of(hulls: Hulls, context: int, arm: int) -> float:
    """What one use of an arm costs in this context, as far as plans go."""
    return hulls.costs[min(context, hulls.costs.shape[0] - 1), arm]


@kernel
def dearest_of(hulls: Hulls, context: int) -> float:
    """What the dearest arm costs in this context."""
    row = min(context, hulls.costs.shape[0] - 1)
    return hulls.costs[row, hulls.by_cost[row, hulls.costs.shape[1] - 1]]


@kernel
def sort_costs(hulls: Hulls, row: int) -> None:
    """The costs of a row have changed."""
    costs, by_cost = hulls.costs[row], hulls.by_cost[row]
    for rank in range(1, by_cost.size):
        arm, to = by_cost[rank], rank
        while to > 0 and (
            costs[by_cost[to - 1]] > costs[arm] or (costs[by_cost[to - 1]] == costs[arm] and by_cost[to - 1] > arm)
        ):
            by_cost[to] = by_cost[to - 1]
            to -= 1
        by_cost[to] = arm


@kernel
def set_hull(hulls: Hulls, row: int, context: int, values: Floats) -> None:
    """The upper hull over all arms with a positive value, at the costs of this context; others, and those with -inf,
    are left out, and so are edges that bring less than the floor. What costs nothing is a step straight up.
    """
    arms, costs, heights = hulls.arm[row], hulls.cost[row], hulls.value[row]
    costs_row = min(context, hulls.costs.shape[0] - 1)
    own_costs, by_cost = hulls.costs[costs_row], hulls.by_cost[costs_row]
    if arms.size == 1:  # one cost for all: the hull is the best arm
        best = first_best(values)
        arms[0], costs[0], heights[0] = best, own_costs[best], values[best]
        hulls.length[row] = (values[best] > 0.0) & (values[best] >= hulls.floor[0] * own_costs[best])
        return
    n = 0
    for rank in range(by_cost.size):
        arm = by_cost[rank]
        value = values[arm]
        top = heights[n - 1] if n > 0 else 0.0
        if not value > top:
            continue  # dominated: costs no less and brings no more
        cost = own_costs[arm]
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
    if hulls.floor[0] > 0.0:
        while hulls.length[row] > 0 and edge_of(hulls, row, hulls.length[row] - 1)[0] < hulls.floor[0]:
            hulls.length[row] -= 1


@kernel
def edge_of(hulls: Hulls, row: int, vertex: int) -> tuple[float, float]:
    """Slope and cost of the edge that ends in this vertex; none after the last."""
    if vertex >= hulls.length[row]:
        return 0.0, 0.0
    cost, value = hulls.cost[row, vertex], hulls.value[row, vertex]
    if vertex > 0:
        cost -= hulls.cost[row, vertex - 1]
        value -= hulls.value[row, vertex - 1]
    return value / cost if cost > 0.0 else math.inf, cost


@kernel
def place(hulls: Hulls, demand: Demand, context: int) -> None:
    """Put the edges of a changed context back into their order."""
    edges = hulls.edges
    vertex, left = 0, edges.n_placed[context]
    while left > 0:
        left -= take_out(edges, demand, find_block(edges, edges.placed[context, vertex], context), context)
        vertex += 1
    for vertex in range(hulls.length[context]):  # never steeper than the one before: rounding keeps order
        slope, cost = edge_of(hulls, context, vertex)
        edges.placed[context, vertex] = slope
        put_in(edges, demand, slope, cost, context)
    edges.n_placed[context] = hulls.length[context]


@kernel
def reweigh(hulls: Hulls, demand: Demand, context: int, weight: float) -> None:
    """A context comes more or less often than thought, and so do all; its hull is the one that was placed."""
    change = weight - demand.weight[context]
    demand.weight[context] = weight
    demand.total[0] += change
    demand.of_depth[demand.depth[context]] += change
    for j in range(demand.share.size):
        demand.share[j] = demand.weight[j] / demand.total[0]
    if is_summed(hulls.edges):
        _reweigh_edges(hulls, demand, context, change)


@rare
def _reweigh_edges(hulls: Hulls, demand: Demand, context: int, change: float) -> None:
    edges = hulls.edges
    for vertex in range(edges.n_placed[context]):
        k = find_block(edges, edges.placed[context, vertex], context)
        edges.need[k, demand.depth[context]] += change * edge_of(hulls, context, vertex)[1]
        edges.changes[k] += 1
    for vertex in range(edges.n_placed[context]):  # once all its edges have their new weight
        k = find_block(edges, edges.placed[context, vertex], context)
        is_twin = vertex > 0 and edges.placed[context, vertex] == edges.placed[context, vertex - 1]
        if is_sum_due(edges, k) or is_twin:
            sum_up(edges, demand, k)
        if is_twin and k + 1 < edges.n_blocks[0]:  # edges that are equally steep may lie on both sides of a border
            sum_up(edges, demand, k + 1)
