"""LP_m for the one who is here: edges are bought, steepest first, until the budget of a round is used."""

from __future__ import annotations

from typing import NamedTuple

from doral._arrays import Floats
from doral.compiled import kernel, position, shared
from doral.pacing.demand import Demand, share_of
from doral.pacing.edges import Edges, is_summed, is_within, slope_as_placed
from doral.pacing.hulls import Hulls, edge_of

_WHOLE = 1.0 - 1e-12  # a share of an edge above this is the whole edge: rounding must not toss a coin


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
