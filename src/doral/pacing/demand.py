"""Who comes, how often, and how urgent they are."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, allocate
from doral.compiled import kernel

FEW_CONTEXTS = 64  # up to here, sums over contexts are taken one by one


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
