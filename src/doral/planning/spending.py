"""What a budget buys: value against budget, its knee, and the curve of gain against cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.planning.budget_curve import Curve, Order, curve_of, order_of
from doral.planning.cost_gain import BUDGETS, SPAN, CostGain, cost_gain, spread
from doral.planning.fact import Fact, number

HALF = 0.5  # of what a unit of money brought so far on average: below it, the knee is passed


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
        gains = np.array([one.at(base + amount) - one.at(base) for one in _curves(self._truths)])
        gain, low, high = spread(gains)
        return More(
            amount=amount,
            gain=float(gain),
            low=float(low),
            high=float(high),
            sentence=_more_words(amount, float(gain), float(low), float(high)),
        )


def spending(
    values: Floats,
    costs: Floats,
    shares: Floats,
    arrivals: float,
    budget: float | None = None,
    *,
    floor: float = 0.0,
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
    """Of the mean of the draws, and the interval over the draws, each with the order that is best for it."""
    mean = curve_of(
        _plan(truths),
        truths.values.mean(axis=0),
        truths.costs.mean(axis=0),
        truths.arrivals * truths.shares.mean(axis=0),
    )
    knee = _knee(mean)
    drawn = [
        _knee(curve_of(order_of(values, costs, truths.floor), values, costs, truths.arrivals * shares))
        for values, costs, shares in zip(truths.values, truths.costs, truths.shares, strict=True)
    ]
    low, high = np.quantile(drawn, SPAN)
    return knee, float(min(low, knee)), float(max(high, knee))


def _knee(curve: Curve) -> float:
    """Where the last step ends whose unit brings at least half of what all units up to there bring on average."""
    if curve.spent.size < 2:
        return 0.0
    slopes = np.diff(curve.value) / np.diff(curve.spent)
    average = (curve.value[1:] - curve.value[0]) / curve.spent[1:]
    worth_it = np.flatnonzero(slopes >= HALF * average)
    return float(curve.spent[1:][worth_it[-1]]) if worth_it.size else 0.0


def _more_words(amount: float, gain: float, low: float, high: float) -> str:
    what = f"{number(amount)} more buy" if amount >= 0.0 else f"{number(-amount)} less cost"
    gain, low, high = (gain, low, high) if amount >= 0.0 else (-gain, -high, -low)
    return f"{what} {number(gain)} +- {number(0.5 * (high - low))}."


def _sentence(told: Spending) -> str:
    if told.knee is None:
        return "No budget brings anything: no arm that costs money is worth it, as far as the log says."
    words = (
        f"Up to about {number(told.knee)} [{number(told.knee_low or 0.0)}, {number(told.knee_high or 0.0)}] every unit "
        "of budget brings at least half of what the ones before it brought"
    )
    if told.budgets[-1] > 0.0:
        words += f"; {number(told.budgets[-1])} serves everybody whom it helps"
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
