"""What a budget buys: value against budget, its knee, and the curve of gain against cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral.errors import InvalidValue
from doral.inference.intervals import Estimate, limits_of_draws
from doral.planning.facts import Fact, between, money, number

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

    @property
    def area(self) -> float:
        """Under the curve, both axes from 0 to 1: 0.5 is a straight line, 1 is all of the gain at once."""
        if self.value[-1] <= 0.0:
            return 0.5
        if self.spent[-1] == 0.0:
            return 1.0
        middles = 0.5 * (self.value[1:] + self.value[:-1])
        return float((middles * np.diff(self.spent)).sum() / (self.spent[-1] * self.value[-1]))

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


BUDGETS = 30  # points of a curve


@dataclass(frozen=True, kw_only=True)
class CostGain(Fact):
    """Gain against cost, as uplift libraries draw it: those are served first who bring most per unit of cost.

    `gain` is cumulative, `at_random` is what the same money brings if it is given to anybody alike, `area` is the area
    under the curve when both axes go from 0 to 1: 0.5 is the line, 1 is all of the gain at once.
    """

    spent: tuple[float, ...]  # share of what serves all who bring anything, 0 to 1
    gain: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    at_random: tuple[float, ...]
    area: float | None  # None where nothing brings anything
    area_low: float | None
    area_high: float | None


def spread(drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean over the draws, for which everything is planned, and what 95% of them lie between."""
    low, high = limits_of_draws(drawn)
    return np.asarray(drawn.mean(axis=0)), low, high


def cost_gain(curves: list[Curve]) -> CostGain:
    """Of the curves of all draws: the more evenly money helps, the closer to the line."""
    spent = np.linspace(0.0, 1.0, BUDGETS)
    gains = np.array([np.interp(spent * one.spent[-1], one.spent, one.value) for one in curves])
    gain, low, high = spread(gains)
    whole = gains[:, -1]
    # Draws in which nothing is gained count as spent evenly: to leave them out would be to look at the lucky ones only.
    areas = np.array([one.area for one in curves])
    area, area_low, area_high = spread(areas) if (whole > 0.0).any() else (None, None, None)
    if area is None:
        words = "Nothing that costs money brings anything: there is no gain to draw."
    else:
        words = (
            f"Serving first whom a unit of money helps most has an area of {float(area):.2f} under its curve "
            "(0.5 if anybody is served alike)."
        )
    return CostGain(
        spent=tuple(spent.tolist()),
        gain=tuple(gain.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        at_random=tuple((spent * gain[-1]).tolist()),
        area=None if area is None else float(area),
        area_low=None if area_low is None else float(area_low),
        area_high=None if area_high is None else float(area_high),
        sentence=words,
    )


HALF = 0.5  # of what a unit of money brought so far on average: below it, the knee is passed
_ROUNDING = 1e-9  # of a value: a smaller difference is none


@dataclass(frozen=True, kw_only=True)
class More(Fact):
    """What a change of the budget brings."""

    amount: float
    gain: float
    low: float  # 95%
    high: float


class Truths(NamedTuple):
    """Draws of what is true: what arms bring and cost in each context, and how often contexts come."""

    values: Floats  # (B, J, A)
    costs: Floats  # (B, J, A)
    shares: Floats  # (B, J)
    arrivals: float
    floor: float


@dataclass(frozen=True, kw_only=True)
class Spending(Fact):
    """Value against budget, over draws of the truth: the mean, and what 95% of the draws lie between.

    The knee is the largest budget at which one more unit still brings at least half of what the units before it
    brought on average: beyond it, money is better spent elsewhere unless it is worth less there.
    """

    arrivals: float
    budget: float | None  # the one that is planned
    unit: str  # of the value, in words, such as "bookings"
    currency: str | None  # of the budget, such as "EUR"
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
    _truths: Truths = field(repr=False, compare=False)

    def more(self, amount: float, *, at: float | None = None) -> More:
        """What `amount` more (or, below 0, less) brings, on top of the planned budget or of the one `at` which."""
        base = self.budget if at is None else at
        if base is None:
            raise InvalidValue("at", at, "must be a budget: none is planned here")
        base = _check.finite_number("at", base, at_least=0)
        amount = _check.finite_number("amount", amount, at_least=-base)
        pairs = np.array([(one.at(base), one.at(base + amount)) for one in _curves(self._truths)])
        gains = pairs[:, 1] - pairs[:, 0]
        gains[np.abs(gains) <= _ROUNDING * np.abs(pairs).max(axis=1)] = 0.0  # "1.9e-15 more" is nothing more
        gain, low, high = spread(gains)
        return More(
            amount=amount,
            gain=float(gain),
            low=float(low),
            high=float(high),
            sentence=_more_words(self, amount, Estimate(float(gain), float(low), float(high))),
        )

    def in_truth(self, values: Floats, costs: Floats, shares: Floats) -> Curve:
        """Return what the plan for the mean of the draws comes to with (J, A) values and costs and (J,) shares."""
        return curve_of(_plan(self._truths), values, costs, self.arrivals * shares)


def spending(
    values: Floats,
    costs: Floats,
    shares: Floats,
    arrivals: float,
    budget: float | None = None,
    *,
    floor: float = 0.0,
    unit: str = "reward",
    currency: str | None = None,
) -> Spending:
    """What budgets bring over so many arrivals, for (B, J, A) values and costs and (B, J) shares: draws of the truth.

    Who is served with what is planned as LP_m plans it for the mean of the draws, and then valued in every draw:
    nobody can plan for a draw, and the best of each would look better than anything that can be had. A unit of budget
    must bring `floor`, or it is kept.
    """
    truths = _checked(values, costs, shares, arrivals, floor)
    planned = None if budget is None else _check.finite_number("budget", budget, at_least=0)
    curves = _curves(truths)
    most = float(np.median([one.spent[-1] for one in curves]))
    budgets = np.linspace(0.0, max(most, planned or 0.0), BUDGETS)
    value, low, high = spread(np.array([np.interp(budgets, one.spent, one.value) for one in curves]))
    marginal, marginal_low, marginal_high = spread(np.array([one.slope_after(budgets) for one in curves]))
    knee, knee_low, knee_high = _knees(truths) if most > 0.0 else (None, None, None)
    result = Spending(
        arrivals=truths.arrivals,
        budget=planned,
        unit=unit,
        currency=currency,
        budgets=tuple(budgets.tolist()),
        value=tuple(value.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        marginal=tuple(marginal.tolist()),
        marginal_low=tuple(marginal_low.tolist()),
        marginal_high=tuple(marginal_high.tolist()),
        knee=knee,
        knee_low=knee_low,
        knee_high=knee_high,
        draws=truths.values.shape[0],
        cost_gain=cost_gain(curves),
        sentence="",
        _truths=truths,
    )
    return replace(result, sentence=_sentence(result))


def _plan(truths: Truths) -> Order:
    return order_of(truths.values.mean(axis=0), truths.costs.mean(axis=0), truths.floor)


def _curves(truths: Truths) -> list[Curve]:
    """The plan in every draw."""
    plan = _plan(truths)
    return [
        curve_of(plan, values, costs, truths.arrivals * shares)
        for values, costs, shares in zip(truths.values, truths.costs, truths.shares, strict=True)
    ]


def _knees(truths: Truths) -> tuple[float, float, float]:
    """Return the median over the draws, each with the order that is best for it, and what 95% of them lie between."""
    drawn = np.array(
        [
            _knee(curve_of(order_of(values, costs, truths.floor), values, costs, truths.arrivals * shares))
            for values, costs, shares in zip(truths.values, truths.costs, truths.shares, strict=True)
        ]
    )
    return float(np.median(drawn)), *limits_of_draws(drawn)


def _knee(curve: Curve) -> float:
    """Where the last step ends whose unit brings at least half of what all units up to there bring on average."""
    if curve.spent.size < 2:
        return 0.0
    slopes = np.diff(curve.value) / np.diff(curve.spent)
    average = (curve.value[1:] - curve.value[0]) / curve.spent[1:]
    worth_it = np.flatnonzero(slopes >= HALF * average)
    return float(curve.spent[1:][worth_it[-1]]) if worth_it.size else 0.0


def _more_words(told: Spending, amount: float, gain: Estimate) -> str:
    is_less = amount < 0.0
    if gain.low == gain.high == 0.0:
        return f"{money(abs(amount), told.currency)} {'less' if is_less else 'more'} would change nothing."
    way = "less would bring about" if is_less else "more would bring about"
    size = f"{number(abs(gain.value))} {'fewer' if is_less else 'more'} {told.unit} {between(gain, is_turned=is_less)}"
    return f"{money(abs(amount), told.currency)} {way} {size}."


def _sentence(told: Spending) -> str:
    if told.knee is None:
        return "No budget brings anything: no arm that costs money is worth it, as far as the log says."
    knee = Estimate(told.knee, told.knee_low or 0.0, told.knee_high or 0.0)
    words = (
        f"Up to about {money(told.knee, told.currency)} {between(knee)}, one more unit brings at least half of what "
        "the units before it brought on average"
    )
    if told.budgets[-1] > 0.0:
        words += f"; {money(told.budgets[-1], told.currency)} is all that can be spent usefully"
    return words + "."


def _checked(values: Floats, costs: Floats, shares: Floats, arrivals: float, floor: float) -> Truths:
    """With as many costs and shares as values; what has no finite value or cost cannot be bought."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 3 or values.size == 0:
        raise InvalidValue("values", values.shape, "must be draws of (contexts, arms): an array (B, J, A)")
    costs = np.asarray(costs, dtype=np.float64)
    shares = np.asarray(shares, dtype=np.float64)
    if costs.shape != values.shape:
        raise InvalidValue("costs", costs.shape, f"must have the shape of values, {values.shape}")
    if shares.shape != values.shape[:2]:
        raise InvalidValue("shares", shares.shape, f"must be (B, J), {values.shape[:2]}")
    if not (np.isfinite(costs).all() and (costs >= 0.0).all()):
        raise InvalidValue("costs", float(costs.min()), "must be finite and 0 or more")
    if not (np.isfinite(values).all() and np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise InvalidValue("values, shares", "not finite", "must be finite, and shares 0 or more")
    arrivals = _check.finite_number("arrivals", arrivals, above=0)
    return Truths(values, costs, shares, arrivals, _check.finite_number("floor", floor, at_least=0))
