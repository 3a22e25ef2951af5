"""Who comes, how often, and how urgent they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._kernel import kernel

FEW_CONTEXTS = 64  # up to here, sums over contexts are taken one by one


class Demand(NamedTuple):
    """Who comes, how often, and how urgent they are: J contexts, D depths."""

    weight: Floats  # (J,) pi_j = weight / total
    total: Floats  # (1,)
    share: Floats  # (J,) pi_j, where it is kept; empty where many weights change
    depth: Ints  # (J,) how many reserves are closed to the context
    of_depth: Floats  # (D,) the sum of their weights


def new_demand(*, weights: Floats, total: float, depths: Ints, n_depths: int = 1, is_learned: bool = False) -> Demand:
    """Contexts of which each has the share weight / total; `is_learned`: weights will change (`reweigh`)."""
    share = np.asarray(weights, dtype=np.float64) / total
    return Demand(
        weight=np.array(weights, dtype=np.float64),
        total=np.array([total], dtype=np.float64),
        share=np.zeros(0) if is_learned and share.size > FEW_CONTEXTS else share,
        depth=np.array(depths, dtype=np.int64),
        of_depth=np.bincount(depths, weights=weights, minlength=n_depths).astype(np.float64),
    )


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
