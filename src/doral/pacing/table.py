"""LP_m for a whole table of values, with the kernels that policies use: what an oracle would do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.compiled import Block, Entry, Program, Template, kernel
from doral.pacing.lp import Demand, Hulls, fill, new_demand, new_hulls, place, set_hull


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
