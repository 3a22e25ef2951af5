"""LP_m: how much of each context to serve, and with which arm, so that the budget lasts.

    max  sum_j pi_j sum_a p_ja eta_ja    s.t.  sum_j pi_j sum_a p_ja c_ja <= rho,  sum_a p_ja <= 1,  p >= 0

This is the linear relaxation of a multiple-choice knapsack (Sinha and Zoltners 1979) and needs no solver: each context
keeps the upper hull of its (cost, value) points, starting at "skip" = (0, 0); the edges of all hulls, in order of value
gained per unit of cost, are bought until rho is used. The edge that is bought in part is the one that is randomised,
and its slope is the shadow price of a unit of budget. With unit costs a hull has one edge and this is the paper's fill
of the contexts in order of eta_j.

Edges stay sorted between rounds; only a changed context is re-inserted. Many edges lie in blocks of about the square
root of their number, each with what it needs in sum: a change moves edges inside a block, and a block in which nothing
is bought in part is bought as a whole. Few contexts make one block, which is bought edge by edge.
"""

from __future__ import annotations

from doral.pacing.lp import (
    NO_ARM,
    Demand,
    Hulls,
    Share,
    cost_of,
    dearest_of,
    edge_sizes,
    fill,
    first_best,
    hull_sizes,
    keeps_shares,
    new_demand,
    new_hulls,
    place,
    reweigh,
    set_hull,
    share_above,
    share_of,
    sort_costs,
    start_demand,
    start_hulls,
)
from doral.pacing.table import PACING, Allocation, Pacer, solve

__all__ = [
    "NO_ARM",
    "PACING",
    "Allocation",
    "Demand",
    "Hulls",
    "Pacer",
    "Share",
    "cost_of",
    "dearest_of",
    "edge_sizes",
    "fill",
    "first_best",
    "hull_sizes",
    "keeps_shares",
    "new_demand",
    "new_hulls",
    "place",
    "reweigh",
    "set_hull",
    "share_above",
    "share_of",
    "solve",
    "sort_costs",
    "start_demand",
    "start_hulls",
]
