"""All edges of all hulls in order: sorted blocks with sums, repaired where they change.

Many edges lie in blocks of about the square root of their number, each with what it needs in sum: a change moves edges
inside a block. Few contexts make one block, and nobody asks for sums.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, allocate
from doral.compiled import kernel, position, rare
from doral.pacing.demand import FEW_CONTEXTS, Demand

_SMALLEST_ROOM = 32


class Edges(NamedTuple):
    """All edges of the hulls of J contexts, steepest first, ties by context, in blocks that have room for R each.

    Two neighbours together are more than half full, so that there are never more than B blocks. `need` is summed anew
    after R changes: rounding cannot add up. Where B is 1, nobody asks for sums.
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


def new_edges(n_contexts: int, most: int, n_depths: int, room: int) -> Edges:
    """Return no edges, with room for `most` of each context."""
    sizes = edge_sizes(n_contexts, most, room)
    edges: Edges = allocate(Edges, {"rows": n_contexts, "H": most, "D": n_depths, **sizes})
    start_edges(edges)
    return edges


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
