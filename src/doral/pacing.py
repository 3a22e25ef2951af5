"""LP_m: how much of each context to serve, and with which arm, so that the budget lasts.

    max  sum_j pi_j sum_a p_ja eta_ja    s.t.  sum_j pi_j sum_a p_ja c_ja <= rho,  sum_a p_ja <= 1,  p >= 0

This is the linear relaxation of a multiple-choice knapsack (Sinha and Zoltners 1979) and needs no solver: each context
keeps the upper hull of its (cost, value) points, starting at "skip" = (0, 0); the edges of all hulls, in order of value
gained per unit of cost, are bought until rho is used. The edge that is bought in part is the one that is randomised,
and its slope is the shadow price of a unit of budget. With unit costs a hull has one edge and this is the paper's fill
of the contexts in order of eta_j.

Edges stay sorted between rounds; only a changed context is re-inserted. Many edges lie in blocks of about the square
root of their number, each with what it needs in sum: a change moves edges inside a block, and a block in which nothing
is bought in part is bought as a whole. Few contexts make one block, which is bought edge by edge, and nothing asks for
its sums.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, allocate
from doral.compiled import Block, Entry, Program, Template, kernel, position, rare, shared

FEW_CONTEXTS = 64  # up to here, sums over contexts are taken one by one
_SMALLEST_ROOM = 32
NO_ARM = -1
_WHOLE = 1.0 - 1e-12  # a share of an edge above this is the whole edge: rounding must not toss a coin

# --- arrivals by context ---------------------------------------------------------------------------------------------


class Demand(NamedTuple):
    """Who comes, how often, and how urgent they are: J contexts, D depths."""

    weight: Annotated[Floats, Array("rows")]  # pi_j = weight / total
    total: Annotated[Floats, Array("1")]
    share: Annotated[Floats, Array("rows", when="shares")]  # pi_j; empty where many weights change
    depth: Annotated[Ints, Array("rows", index="D")]  # how many reserves are closed to the context
    of_depth: Annotated[Floats, Array("D")]  # the sum of their weights


def new_demand(*, weights: Floats, total: float, depths: Ints, n_depths: int = 1, is_learned: bool = False) -> Demand:
    """Contexts of which each has the share weight / total; `is_learned`: weights will change (`reweigh`)."""
    n_contexts = len(weights)
    sizes = {"rows": n_contexts, "D": n_depths, "shares": keeps_shares(n_contexts, is_learned=is_learned)}
    demand: Demand = allocate(Demand, sizes)
    start_demand(demand, weights, total, depths)
    return demand


def keeps_shares(n_contexts: int, *, is_learned: bool) -> bool:
    """Return whether shares are kept beside weights: not where many of them change."""
    return not (is_learned and n_contexts > FEW_CONTEXTS)


def start_demand(demand: Demand, weights: Floats, total: float, depths: Ints) -> None:
    """Set who comes, how often, and how urgent they are."""
    demand.weight[:], demand.total[0], demand.depth[:] = weights, total, depths
    demand.share[:] = (demand.weight / total)[: demand.share.size]
    demand.of_depth[:] = np.bincount(depths, weights=weights, minlength=demand.of_depth.size)


@kernel
def share_of(demand: Demand, context: int) -> float:
    """pi_j."""
    if demand.share.size > 0:
        return demand.share[context]
    return demand.weight[context] / demand.total[0]


@kernel
def share_above(demand: Demand, depth: int) -> float:
    """The share of the contexts that are more urgent than those of this depth."""
    share = 0.0
    if demand.weight.size <= FEW_CONTEXTS:
        for j in range(demand.weight.size):
            if demand.depth[j] < depth:
                share += share_of(demand, j)
        return share
    for d in range(depth):
        share += demand.of_depth[d] / demand.total[0]
    return share


# --- all edges of all hulls in order ---------------------------------------------------------------------------------


class Edges(NamedTuple):
    """All edges of the hulls of J contexts, steepest first, ties by context, in blocks that have room for R each.

    Two neighbours together are more than half full, so that there are never more than B blocks. `need` is summed anew
    after R changes: rounding cannot add up. Where B is 1, no sums are needed.
    """

    slope: Annotated[Floats, Array("E")]
    cost: Annotated[Floats, Array("E")]
    context: Annotated[Ints, Array("E", index="rows")]
    room: Annotated[Ints, Array("1")]  # R
    n_blocks: Annotated[Ints, Array("1", fill=1, index="Bk+1")]
    start: Annotated[Ints, Array("Bk", index="E")]  # where the block begins; after those of the blocks, free places
    size: Annotated[Ints, Array("Bk", index="E+1")]  # edges of the block
    last_slope: Annotated[Floats, Array("Bk")]  # its last edge
    last_context: Annotated[Ints, Array("Bk", index="rows")]
    need: Annotated[Floats, Array("Bk D")]  # sum of weight * cost of its edges, by depth of their context
    changes: Annotated[Ints, Array("Bk")]  # of `need`, since it was summed
    n_placed: Annotated[Ints, Array("rows", index="H+1")]  # edges of a context
    placed: Annotated[Floats, Array("rows H")]  # their slopes


def edge_sizes(n_contexts: int, most: int, room: int = 0) -> dict[str, int]:
    """Return the number of blocks and the room for edges; `room` is that of a block, 0 for the best."""
    capacity = n_contexts * most
    most_blocks = 1
    if room == 0 and n_contexts > FEW_CONTEXTS:
        room = max(_SMALLEST_ROOM, 2 * math.isqrt(n_contexts))  # most hulls have few edges
    if room == 0:
        room = capacity + 1
    else:
        most_blocks = 4 * capacity // room + 2
    return {"Bk": most_blocks, "E": most_blocks * room}


def start_edges(edges: Edges) -> None:
    """Set the places of the blocks."""
    n_blocks = edges.start.size
    edges.room[0] = edges.slope.size // n_blocks
    edges.start[:] = np.arange(n_blocks) * edges.room[0]


@kernel
def slope_as_placed(edges: Edges, context: int, vertex: int) -> float:
    """The slope of an edge as it was placed; 0 after the last."""
    return edges.placed[context, vertex] if vertex < edges.n_placed[context] else 0.0


@kernel
def is_summed(edges: Edges) -> bool:
    """Whether blocks have sums: only where there may be more than one."""
    return edges.size.size > 1


@kernel
def find_block(edges: Edges, slope: float, context: int) -> int:
    """The first block that does not end before such an edge."""
    low, high = 0, edges.n_blocks[0] - 1
    while low < high:
        middle = (low + high) // 2
        last = edges.last_slope[middle]
        if last > slope or (last == slope and edges.last_context[middle] < context):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def is_within(edges: Edges, k: int, slope: float, context: int) -> bool:
    """Whether such an edge comes before the end of a block."""
    last = edges.last_slope[k]
    return slope > last or (slope == last and context <= edges.last_context[k])


@rare
def sum_up(edges: Edges, demand: Demand, k: int) -> None:
    """What a block needs, and where it ends."""
    for d in range(edges.need.shape[1]):
        edges.need[k, d] = 0.0
    for i in range(edges.start[k], edges.start[k] + edges.size[k]):
        j = edges.context[i]
        edges.need[k, demand.depth[j]] += demand.weight[j] * edges.cost[i]
    edges.changes[k] = 0
    _mark_end(edges, k)


@kernel
def _mark_end(edges: Edges, k: int) -> None:
    if edges.size[k] > 0:
        last = edges.start[k] + edges.size[k] - 1
        edges.last_slope[k], edges.last_context[k] = edges.slope[last], edges.context[last]


@kernel
def is_sum_due(edges: Edges, k: int) -> bool:
    return edges.changes[k] > edges.room[0]


@kernel
def _change_need(edges: Edges, demand: Demand, k: int, context: int, change: float) -> None:
    """The edges of this context in block k need more or less than before."""
    _mark_end(edges, k)
    edges.need[k, demand.depth[context]] += change
    edges.changes[k] += 1
    if is_sum_due(edges, k):
        sum_up(edges, demand, k)


@kernel
def _move_block(edges: Edges, k: int, to: int) -> None:
    """Another place in the order of blocks."""
    edges.start[to], edges.size[to], edges.changes[to] = edges.start[k], edges.size[k], edges.changes[k]
    edges.last_slope[to], edges.last_context[to] = edges.last_slope[k], edges.last_context[k]
    for d in range(edges.need.shape[1]):
        edges.need[to, d] = edges.need[k, d]


@kernel
def _append(edges: Edges, k: int, source: int, n_before: int) -> None:
    """Copy the edges of another block, all but the first `n_before`, to the end of block k."""
    to = edges.start[k] + edges.size[k]
    for i in range(edges.start[source] + n_before, edges.start[source] + edges.size[source]):
        edges.slope[to], edges.cost[to], edges.context[to] = edges.slope[i], edges.cost[i], edges.context[i]
        to += 1
    edges.size[k] = to - edges.start[k]


@rare
def _split(edges: Edges, demand: Demand, k: int) -> None:
    """The latter half of a full block becomes the next one."""
    n_blocks = edges.n_blocks[0]
    free = edges.start[n_blocks]
    for other in range(n_blocks, k + 1, -1):
        _move_block(edges, other - 1, other)
    half = edges.size[k] // 2
    edges.start[k + 1], edges.size[k + 1] = free, 0
    _append(edges, k + 1, k, half)
    edges.size[k] = half
    edges.n_blocks[0] = n_blocks + 1
    sum_up(edges, demand, k)
    sum_up(edges, demand, k + 1)


@rare
def _join(edges: Edges, demand: Demand, k: int) -> None:
    """The block after block k becomes a part of it."""
    n_blocks = edges.n_blocks[0] - 1
    free = edges.start[k + 1]
    _append(edges, k, k + 1, 0)
    for other in range(k + 1, n_blocks):
        _move_block(edges, other + 1, other)
    edges.start[n_blocks] = free
    edges.n_blocks[0] = n_blocks
    sum_up(edges, demand, k)


@kernel
def _join_small(edges: Edges, demand: Demand, k: int) -> None:
    """Where a block has become small, it goes into a neighbour that is small too; an empty one in any case."""
    last, most = edges.n_blocks[0] - 1, edges.room[0] // 2
    if k < last and (edges.size[k] == 0 or edges.size[k] + edges.size[k + 1] <= most):
        _join(edges, demand, k)
    elif k > 0 and (edges.size[k] == 0 or edges.size[k - 1] + edges.size[k] <= most):
        _join(edges, demand, k - 1)


@kernel
def take_out(edges: Edges, demand: Demand, k: int, context: int) -> int:
    """Take all edges of a context out of a block; how many there were."""
    slopes, costs, owners = edges.slope, edges.cost, edges.context
    start, end = edges.start[k], edges.start[k] + edges.size[k]
    i, freed = position(start), 0.0
    while i < end and owners[i] != context:
        i = position(i + 1)
    kept = i
    while i < end:
        if owners[i] != context:
            slopes[kept], costs[kept], owners[kept] = slopes[i], costs[i], owners[i]
            kept = position(kept + 1)
        else:
            freed += costs[i]
        i = position(i + 1)
    edges.size[k] = kept - start
    if is_summed(edges):
        _change_need(edges, demand, k, context, -demand.weight[context] * freed)
        _join_small(edges, demand, k)
    return end - kept


@kernel
def put_in(edges: Edges, demand: Demand, slope: float, cost: float, context: int) -> None:
    """Put an edge into its place."""
    k = find_block(edges, slope, context)
    if is_summed(edges) and edges.size[k] == edges.room[0]:
        _split(edges, demand, k)
        k = find_block(edges, slope, context)
    slopes, costs, owners = edges.slope, edges.cost, edges.context
    start = edges.start[k]
    i = position(start + edges.size[k])
    while i > start:
        before = position(i - 1)
        if slopes[before] > slope or (slopes[before] == slope and owners[before] <= context):
            break
        slopes[i], costs[i], owners[i] = slopes[before], costs[before], owners[before]
        i = before
    slopes[i], costs[i], owners[i] = slope, cost, context
    edges.size[k] += 1
    if is_summed(edges):
        _change_need(edges, demand, k, context, demand.weight[context] * cost)


# --- the upper hull of every context ---------------------------------------------------------------------------------


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


# --- LP_m for one context --------------------------------------------------------------------------------------------


class Share(NamedTuple):
    """What LP_m says for one context: `upper` with `probability`, else `lower`; -1 is to skip."""

    lower: int  # vertex of the hull, -1 for skip
    upper: int
    probability: float
    price: float  # of a unit of budget; never below the floor: at that, it is kept


@kernel
def _open(slack: Floats, depth: int) -> float:
    """What the tiers of this depth may still spend."""
    least = slack[0]
    for d in range(1, depth + 1):
        least = min(least, slack[d])
    return least


class _Mark(NamedTuple):
    """How far `fill` has come."""

    block: int
    level: int  # own edges bought
    passed: int  # edges of the context as it was placed


@kernel
def _n_open(slack: Floats) -> int:
    """How many depths have money left: those below one that has none have none either."""
    n = 0
    while n < slack.size and slack[n] > 0.0:
        n += 1
    return n


@kernel
def _buy_block(edges: Edges, slack: Floats, n_open: int, k: int, own: float, own_depth: int) -> bool:
    """Buy a whole block, with `own` in addition, if no tier is used up by it; those that are get nothing of it."""
    needed = 0.0
    for back in range(1, n_open + 1):
        d = n_open - back
        needed += edges.need[k, d]
        if d == own_depth:
            needed += own
        if needed >= slack[d]:
            return False
    if own_depth >= n_open and needed > 0.0:
        return False  # the first edge that is bought tells a tier without money what money is worth
    needed = 0.0
    for back in range(1, n_open + 1):
        d = n_open - back
        needed += edges.need[k, d]
        if d == own_depth:
            needed += own
        slack[d] -= needed
    return True


@shared
def _buy_blocks(hulls: Hulls, demand: Demand, slack: Floats, context: int, row: int, mark: _Mark) -> _Mark:
    """Buy block after block until something happens in one: a tier is used up, or this context is served in part."""
    edges = hulls.edges
    own_depth, n_open = demand.depth[context], _n_open(slack)
    for d in range(slack.size):
        slack[d] *= demand.total[0]  # as blocks count
    k, level, passed = mark.block, mark.level, mark.passed
    own_slope, own_cost = edge_of(hulls, row, level)
    placed_slope = slope_as_placed(edges, context, passed)
    while k < edges.n_blocks[0]:
        next_level, next_passed, extra = level, passed, 0.0  # this context's own edges come in for those as placed
        while own_slope > 0.0 and is_within(edges, k, own_slope, context):
            extra += own_cost
            next_level += 1
            own_slope, own_cost = edge_of(hulls, row, next_level)
        while placed_slope > 0.0 and is_within(edges, k, placed_slope, context):
            extra -= edge_of(hulls, context, next_passed)[1]
            next_passed += 1
            placed_slope = slope_as_placed(edges, context, next_passed)
        if next_level > level and own_depth >= n_open:
            break
        if not _buy_block(edges, slack, n_open, k, demand.weight[context] * extra, own_depth):
            break
        k, level, passed = k + 1, next_level, next_passed
    for d in range(slack.size):
        slack[d] /= demand.total[0]
    return _Mark(k, level, passed)


@kernel
def fill(hulls: Hulls, demand: Demand, caps: Floats, slack: Floats, context: int, row: int) -> Share:
    """Buy edges until the caps are used, with `row` as the hull of `context`; what that means for this context.

    `caps[0]` is rho. Where budget is reserved for urgent tiers, `caps[d]` bounds what all contexts of depth d and more
    spend together: the deeper, the less urgent. These sets are nested, so taking edges in order stays optimal. `slack`
    is scratch.
    """
    edges = hulls.edges
    length = hulls.length[row]
    own_depth = demand.depth[context]
    for d in range(caps.size):
        slack[d] = caps[d]
    own_slope, own_cost = edge_of(hulls, row, 0)
    level, passed = 0, 0  # own edges bought; those as placed
    k, i, end = 0, 0, 0  # block k is the next; edge i is, unless it is the end of the block
    while True:
        if i == end and k < edges.n_blocks[0]:
            if is_summed(edges):
                k, level, passed = _buy_blocks(hulls, demand, slack, context, row, _Mark(k, level, passed))
                own_slope, own_cost = edge_of(hulls, row, level)
            if k < edges.n_blocks[0]:
                i, end = edges.start[k], edges.start[k] + edges.size[k]
                k += 1
        i = position(i)
        other, owner = -1.0, -1
        if i < end:
            other, owner = edges.slope[i], edges.context[i]
        if owner == context:
            i += 1
            passed += 1
        elif other > own_slope or (other == own_slope and level < length and owner < context):
            depth = demand.depth[position(owner)]
            needed = share_of(demand, position(owner)) * edges.cost[i]
            bought = min(needed, _open(slack, depth))
            for d in range(depth + 1):
                slack[d] -= bought
            if bought > 0.0 and _open(slack, own_depth) <= 0.0:
                return Share(level - 1, level - 1, 1.0, other)
            i += 1
        elif level < length:
            needed = share_of(demand, context) * own_cost
            left = _open(slack, own_depth)
            if needed >= left and needed > 0.0:  # what costs nothing is always had
                part = max(left / needed, 0.0)
                if part > _WHOLE:
                    part = 1.0
                return Share(level - 1, level, part, own_slope)
            for d in range(own_depth + 1):
                slack[d] -= needed
            level += 1
            own_slope, own_cost = edge_of(hulls, row, level)
        else:
            return Share(level - 1, level - 1, 1.0, hulls.floor[0])


# --- a whole table of values: what an oracle would do ----------------------------------------------------------------


class Allocation(NamedTuple):
    """The solution of LP_m."""

    value: float
    price: float  # of a unit of budget, to the most urgent tier
    play: Floats  # (J, A) probability of each arm in each context


class Table(NamedTuple):
    """LP_m for a whole table of values, and room for its solution."""

    values: Floats  # (J, A)
    caps: Floats  # (D,)
    slack: Floats  # (D,) scratch
    play: Floats  # (J, A) all zeros


@kernel
def solve_table(hulls: Hulls, demand: Demand, table: Table) -> float:
    """Fill `play`; returns the price of a unit of budget to the most urgent tier."""
    n_contexts = table.values.shape[0]
    for context in range(n_contexts):
        set_hull(hulls, context, context, table.values[context])
        place(hulls, demand, context)
    price = 0.0
    for context in range(n_contexts):
        share = fill(hulls, demand, table.caps, table.slack, context, context)
        if demand.depth[context] == 0:
            price = share.price
        if share.upper >= 0:
            table.play[context, hulls.arm[context, share.upper]] += share.probability
        if share.lower >= 0 and share.upper != share.lower:
            table.play[context, hulls.arm[context, share.lower]] += 1.0 - share.probability
    return price


def _entries() -> dict[str, Entry]:
    one, whole, grid = np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros((1, 1))
    demand = new_demand(weights=one, total=1.0, depths=whole)
    return {"solve_table": Entry(solve_table, (new_hulls(one, 1), demand, Table(grid, one, one, grid)), float)}


PACING = Program(name="pacing", entries=_entries)


class Pacer:
    """LP_m for tables of values (J, A) that have all else in common, with the kernels that the policies use.

    With reserves, `caps` (the first of them the rate) and the `depths` of the contexts say who may spend what. `costs`
    are (A,) or (J, A); a unit of budget must bring `floor`, or it is kept.
    """

    def __init__(
        self,
        *,
        costs: Floats,
        shares: Floats,
        rate: float,
        caps: Floats | None = None,
        depths: Ints | None = None,
        floor: float = 0.0,
    ) -> None:
        # writable copies: one compiled version whatever comes in
        self._caps = np.array([rate] if caps is None else caps, dtype=np.float64)
        depths = np.array(np.zeros(shares.size) if depths is None else depths, dtype=np.int64)
        demand = new_demand(weights=shares, total=1.0, depths=depths, n_depths=self._caps.size)
        self._weights, self._demand = demand.weight[:, None], Block(demand)
        self._hulls = Template(new_hulls(costs, shares.size, self._caps.size, floor=floor))

    def solve(self, values: Floats) -> Allocation:
        play = np.zeros(values.shape)
        table = Table(np.array(values, dtype=np.float64, order="C"), self._caps, np.zeros(self._caps.size), play)
        price = PACING["solve_table"](self._hulls.block(), self._demand, Block(table))
        value = float((self._weights * play * np.where(play > 0.0, values, 0.0)).sum())
        return Allocation(value=value, price=price, play=play)


def solve(
    *,
    values: Floats,
    costs: Floats,
    shares: Floats,
    rate: float,
    caps: Floats | None = None,
    depths: Ints | None = None,
    floor: float = 0.0,
) -> Allocation:
    """LP_m for a single table."""
    return Pacer(costs=costs, shares=shares, rate=rate, caps=caps, depths=depths, floor=floor).solve(values)
