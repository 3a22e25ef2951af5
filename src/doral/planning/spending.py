"""What a budget buys: value against budget, its knee, and the curve of gain against cost."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.fact import Fact


@dataclass(frozen=True, kw_only=True)
class More(Fact):
    """What a change of the budget brings."""

    amount: float
    gain: float
    low: float  # 95%
    high: float


@dataclass(frozen=True, kw_only=True)
class CostGain(Fact):
    """Gain against cost, as uplift libraries draw it: those are served first who bring most per unit of cost.

    `gain` is cumulative, `at_random` is what the same money brings if it is given to anybody alike, `area` is the area
    between 0 and the curve when both axes go from 0 to 1: 0.5 is the line, 1 is all of the gain at once.
    """

    spent: tuple[float, ...]  # share of what serves all who bring anything, 0 to 1
    gain: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    at_random: tuple[float, ...]
    area: float | None  # None where nothing brings anything
    area_low: float | None
    area_high: float | None


@dataclass(frozen=True, kw_only=True)
class Spending(Fact):
    """Value against budget, over draws of the truth: the median, and what 95% of the draws lie between.

    The knee is the largest budget at which one more unit still brings at least half of what the units before it
    brought on average: beyond it, money is better spent elsewhere unless it is worth less there.
    """

    arrivals: float
    budget: float | None  # the one that is planned
    budgets: tuple[float, ...]  # from 0 to what serves everybody who brings anything
    value: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    marginal: tuple[float, ...]  # what one more unit brings at each budget
    marginal_low: tuple[float, ...]
    marginal_high: tuple[float, ...]
    knee: float | None
    knee_low: float | None
    knee_high: float | None
    draws: int
    cost_gain: CostGain
