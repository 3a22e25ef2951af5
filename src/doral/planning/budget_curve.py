"""Value against budget, exactly: who is served with what, in the order in which LP_m buys, and what it comes to."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints

_SKIP = -1


class Order(NamedTuple):
    """Steps in the order in which they are bought: a context moves from an arm (or none, -1) to a better one."""

    context: Ints
    before: Ints
    arm: Ints


class Curve(NamedTuple):
    """What is brought by each amount spent, from the first step to the last; straight in between."""

    spent: Floats  # ascending
    value: Floats

    def at(self, budget: float) -> float:
        return float(np.interp(budget, self.spent, self.value))

    def slope_after(self, budgets: Floats) -> Floats:
        """What one more unit of money brings at each budget; 0 where everybody is served."""
        slopes = np.append(np.diff(self.value) / np.diff(self.spent), 0.0)
        return np.asarray(slopes[np.searchsorted(self.spent, budgets, side="right") - 1], dtype=np.float64)


def order_of(values: Floats, costs: Floats, floor: float = 0.0) -> Order:
    """The order of LP_m for (J, A) values and costs: the steps of all hulls by what a unit of cost gains."""
    steps: list[tuple[float, int, int, int]] = []
    for context in range(values.shape[0]):
        hull = _hull(values[context].tolist(), costs[context].tolist())
        for (cost, value, before), (next_cost, next_value, arm) in pairwise(hull):
            slope = math.inf if next_cost == cost else (next_value - value) / (next_cost - cost)
            if slope >= floor:
                steps.append((-slope, context, before, arm))
    steps.sort(key=lambda step: step[0])  # stable: the steps of a hull stay in their order
    table = np.array([step[1:] for step in steps], dtype=np.int64).reshape(len(steps), 3)
    return Order(table[:, 0], table[:, 1], table[:, 2])


def _hull(values: list[float], costs: list[float]) -> list[tuple[float, float, int]]:
    """(cost, value, arm) on the upper hull from "skip" on; what is free and good comes first, at no cost."""
    hull = [(0.0, 0.0, _SKIP)]
    for cost, value, arm in sorted(
        zip(costs, values, range(len(values)), strict=True), key=lambda one: (one[0], -one[1])
    ):
        if value <= hull[-1][1]:
            continue
        while len(hull) > 1 and hull[-1][0] > 0.0:
            (cost_0, value_0, _), (cost_1, value_1, _) = hull[-2:]
            if (value - value_0) * (cost_1 - cost_0) < (value_1 - value_0) * (cost - cost_0):
                break
            hull.pop()
        hull.append((cost, value, arm))
    return hull


def curve_of(order: Order, values: Floats, costs: Floats, weights: Floats) -> Curve:
    """What these steps come to, for (J, A) values and costs that need not be those they were chosen by.

    `weights` are how many arrive of each context.
    """
    gained = _moved(order, values) * weights[order.context]
    needed = _moved(order, costs) * weights[order.context]
    # a step to an arm that is cheaper after all frees money: it is not given back here, for it was planned to be spent
    spent = np.concatenate([[0.0], np.cumsum(np.maximum(needed, 0.0))])
    value = np.concatenate([[0.0], np.cumsum(gained)])
    last = np.append(spent[1:] > spent[:-1], True)  # of several steps that cost nothing, what they bring together
    return Curve(spent[last], value[last])


def _moved(order: Order, table: Floats) -> Floats:
    before = np.where(order.before == _SKIP, 0.0, table[order.context, order.before])
    return np.asarray(table[order.context, order.arm] - before, dtype=np.float64)
