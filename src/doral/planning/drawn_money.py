"""Figures of money: what each policy earns, what a budget buys, and gain against cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from doral.pages.names import printable
from doral.planning.drawn import MARK, PLAIN, Drawing, colour, finish, ink, label, literal, mark, sheet
from doral.planning.earnings import Earning
from doral.planning.fact import named, number
from doral.planning.leading import leading
from doral.planning.plan import Plan

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
        right = sum(one.worth > now.worth for one in shown) > len(shown) / 2
        mark(axes, now.worth, f"as now, {number(now.worth)}", is_left=not right, style="--")
    axes.set_yticks(range(len(shown)), [label(one.policy, 24) for one in shown])
    for tick, one in zip(axes.get_yticklabels(), shown, strict=True):
        tick.set_fontweight("bold" if one.policy == plan.recommendation.policy else "normal")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel(f"{unit} over {number(earnings.arrivals)} arrivals, with a budget of {number(earnings.budget)}")
    axes.xaxis.set_major_formatter(PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    finish(axes)
    has_oracle = any(one.policy == ORACLE for one in shown)
    ceiling = " The oracle knows each truth, as nobody does: it is a ceiling." if has_oracle else ""
    words = tuple(f"{one.policy} {number(one.worth)} [{number(one.low)}, {number(one.high)}]" for one in shown)
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
    reach = np.array([[max(one.worth - one.low, 0.0)], [max(one.high - one.worth, 0.0)]])
    axes.errorbar(
        one.worth,
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
    """Value against budget."""
    spending = plan.spending
    if spending is None or len(spending.budgets) < 2:
        return None
    unit = plan.earnings.unit if plan.earnings is not None else "reward"
    figure = sheet(3.6, "Value against budget, with its 95% band")
    axes = figure.subplots()
    _band(axes, spending.budgets, spending.value, spending.low, spending.high, colour(0))
    end = max(spending.budgets[-1], spending.budget or 0.0)
    axes.set_xlim(0.0, 1.02 * end if end > 0.0 else 1.0)
    if spending.knee is not None:
        if spending.knee_low is not None and spending.knee_high is not None:
            axes.axvspan(spending.knee_low, min(spending.knee_high, end), color=MARK, alpha=0.15, linewidth=0)
        is_left = spending.budget is not None and spending.knee < spending.budget
        mark(axes, spending.knee, f"knee, {number(spending.knee)}", is_left=is_left, style="-")
    if spending.budget is not None:
        is_left = spending.knee is not None and spending.knee >= spending.budget
        mark(axes, spending.budget, f"planned, {number(spending.budget)}", is_left=is_left)
        worth = float(np.interp(spending.budget, spending.budgets, spending.value))
        axes.plot([spending.budget], [worth], marker="o", color=colour(1), zorder=4)
    axes.set_xlabel("budget")
    axes.set_ylabel(literal(printable(unit)))
    _plain_axes(axes)
    return Drawing(
        name="budget",
        title="What a budget buys",
        sees=printable(spending.sentence),
        alt=f"Value against budget with its 95% band: {printable(spending.sentence)}",
        figure=figure,
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
