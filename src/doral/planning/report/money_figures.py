"""Figures of money: what each policy earns, what a budget buys, and gain against cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from doral.pages.names import printable, short
from doral.planning.earnings import Earning, Earnings
from doral.planning.facts import between, money, named, number
from doral.planning.plan import Plan
from doral.planning.report.drawing import MARK, PLAIN, Drawing, colour, finish, ink, label, literal, mark, sheet
from doral.planning.report.tables import leading

MOST_POLICIES = 16
ORACLE = "oracle"  # knows each truth: no policy can be had that does


def earnings_drawing(plan: Plan) -> Drawing | None:
    """What each policy would earn, the best first, and the status quo as a line."""
    earnings = plan.earnings
    if earnings is None or not earnings.policies:
        return None
    shown = leading(plan, MOST_POLICIES)
    rest = len(earnings.policies) - len(shown)
    unit = literal(printable(earnings.unit))
    some = f" (the {len(shown)} best of {len(earnings.policies)})" if rest else ""
    figure = sheet(1.5 + 0.32 * len(shown), f"Earnings of each policy, with 95% intervals{some}")
    axes = figure.subplots()
    for place, one in enumerate(shown):
        _dot(axes, one, place, is_advised=one.policy == plan.recommendation.policy)
    now = next((one for one in earnings.policies if one.policy == earnings.status_quo), None)
    if now is not None:
        right = sum(one.worth.value > now.worth.value for one in shown) > len(shown) / 2
        mark(axes, now.worth.value, f"today, {number(now.worth.value)}", is_left=not right, style="--")
    axes.set_yticks(range(len(shown)), [label(one.policy, 24) for one in shown])
    for tick, one in zip(axes.get_yticklabels(), shown, strict=True):
        tick.set_fontweight("bold" if one.policy == plan.recommendation.policy else "normal")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    budget = literal(money(earnings.budget, plan.log.currency))
    axes.set_xlabel(f"{unit} over {number(earnings.arrivals)} arrivals, with a budget of {budget}")
    axes.xaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    finish(axes)
    has_oracle = any(one.policy == ORACLE for one in shown)
    ceiling = " The oracle knows each truth, as nobody does: it is a ceiling." if has_oracle else ""
    words = tuple(f"{one.policy} {number(one.worth.value)} {between(one.worth)}" for one in shown)
    return Drawing(
        name="earnings",
        title="What each policy would earn",
        sees=(
            f"{printable(earnings.sentence)} Bars are 95% intervals over truths that the log leaves possible; policies "
            f"share these, so that their differences, in the table below, are surer than the bars suggest.{ceiling}"
        ),
        alt=f"Earnings with intervals: {printable(named(words, at_most=len(words)))}",
        figure=figure,
    )


def _dot(axes: Axes, one: Earning, place: int, *, is_advised: bool) -> None:
    paint = ink() if one.policy == ORACLE else colour(1 if is_advised else 0)
    reach = np.array([[max(one.worth.value - one.worth.low, 0.0)], [max(one.worth.high - one.worth.value, 0.0)]])
    axes.errorbar(
        one.worth.value,
        place,
        xerr=reach,
        fmt="D" if is_advised else "o",
        markersize=7 if is_advised else 5.5,
        markerfacecolor="none" if one.policy == ORACLE else paint,
        color=paint,
        capsize=3,
        linewidth=2.0 if is_advised else 1.4,
        zorder=3,
    )


def budget_drawing(plan: Plan) -> Drawing | None:
    """Value against budget, with today and what is recommended."""
    spending, earnings = plan.spending, plan.earnings
    if spending is None or len(spending.budgets) < 2:
        return None
    unit = earnings.unit if earnings is not None else "reward"
    figure = sheet(3.7, "")
    axes = figure.subplots()
    _band(axes, spending.budgets, spending.value, spending.low, spending.high, colour(0))
    end = max(spending.budgets[-1], spending.budget or 0.0)
    shown = [] if earnings is None else _marked(earnings, plan.recommendation.policy)
    end = max([end, *(one.spend for one, _, _ in shown)])
    for one, what, place in shown:
        _mark_policy(axes, one, what, colour(place), is_left=one.spend > 0.72 * end)
    axes.set_xlim(0.0, 1.04 * end if end > 0.0 else 1.0)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    half = 2 * len(spending.budgets) // 3
    _beside(axes, spending.budgets[half], spending.value[half], "best plan that the log supports", is_above=True)
    axes.set_xlabel(literal(printable(f"budget, {plan.log.currency}" if plan.log.currency else "budget")))
    axes.set_ylabel(literal(printable(unit)))
    _plain_axes(axes)
    words = [
        f"{name}: {number(one.worth.value)} {between(one.worth)} for {number(one.spend)}" for one, name, _ in shown
    ]
    sees = (
        "The line is what the best plan that the log supports is worth at each budget, with its 95% band. "
        f"{'Dots are what policies earn, with 95% intervals.' if shown else ''}"
    )
    return Drawing(
        name="budget",
        title=f"What a budget buys, in {unit}",
        sees=f"{sees.strip()} {printable(spending.sentence)}",
        alt=f"Value against budget with its 95% band. {printable('; '.join(words))}. {printable(spending.sentence)}",
        figure=figure,
    )


def _marked(earnings: Earnings, recommended: str | None) -> list[tuple[Earning, str, int]]:
    """What is marked in the chart: a policy, its words, and its colour."""
    found = [(earnings.today, "today", 1)]
    if recommended is not None:
        found.append((earnings.of(recommended), f"recommended: {short(recommended, 20)}", 2))
    return found


def _mark_policy(axes: Axes, one: Earning, words: str, paint: str, *, is_left: bool) -> None:
    worth = one.worth
    reach = np.array([[max(worth.value - worth.low, 0.0)], [max(worth.high - worth.value, 0.0)]])
    axes.errorbar(one.spend, worth.value, yerr=reach, fmt="o", markersize=7, color=paint, capsize=4, zorder=5)
    axes.annotate(
        literal(printable(f"{words}, {number(worth.value)}")),
        xy=(one.spend, worth.value),
        xytext=(-9 if is_left else 9, 0),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="center",
        fontsize="small",
        fontweight="bold",
        zorder=6,
    )


def cost_gain_drawing(plan: Plan) -> Drawing | None:
    """Gain against cost, as uplift libraries draw it."""
    if plan.spending is None or len(plan.spending.cost_gain.spent) < 2:
        return None
    found = plan.spending.cost_gain
    unit = plan.earnings.unit if plan.earnings is not None else "reward"
    figure = sheet(3.6, "Gain against cost, with its 95% band")
    axes = figure.subplots()
    _band(axes, found.spent, found.gain, found.low, found.high, colour(0))
    axes.plot(found.spent, found.at_random, color=colour(1), linewidth=1.5, linestyle=(0, (5, 1.5)))
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("spent, of what serves all who bring anything")
    axes.set_ylabel(f"{literal(printable(unit))} gained")
    _plain_axes(axes)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    half = len(found.spent) // 2
    _beside(axes, found.spent[half], found.gain[half], "best value first", is_above=True)
    _beside(axes, found.spent[half], found.at_random[half], "to anybody alike", is_above=False)
    return Drawing(
        name="cost_gain",
        title="Who brings most per unit of cost",
        sees=f"{printable(found.sentence)} Dashed: the same money, to anybody alike.",
        alt=f"Cost-gain curve with its 95% band: {printable(found.sentence)}",
        figure=figure,
    )


def _band(
    axes: Axes, x: Sequence[float], y: Sequence[float], low: Sequence[float], high: Sequence[float], paint: str
) -> None:
    axes.plot(x, y, color=paint, linewidth=1.8, zorder=3)
    axes.fill_between(x, low, high, color=paint, alpha=0.18, linewidth=0)


def _beside(axes: Axes, x: float, y: float, words: str, *, is_above: bool) -> None:
    axes.annotate(
        words,
        xy=(x, y),
        xytext=(-8, 14) if is_above else (8, -14),
        textcoords="offset points",
        ha="right" if is_above else "left",
        va="bottom" if is_above else "top",
        fontsize="small",
        arrowprops={"arrowstyle": "-", "color": MARK, "linewidth": 0.8},
    )


def _plain_axes(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(PLAIN)
    axes.yaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    finish(axes)
