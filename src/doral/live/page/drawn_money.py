"""Drawings of a campaign's money: what was spent against the plan, and what came back over time."""

from __future__ import annotations

from collections.abc import Sequence

from doral.live.page.facts import CampaignFacts, Change, Period
from doral.live.page.framed import Key, framed
from doral.live.page.time_axis import period_begins, period_name, time_axis
from doral.live.views.text import MONEY
from doral.pages.numbers import figure
from doral.pages.svg import Axis, Drawing, Mark, most_ticks, nice_axis

_HEIGHT = 300.0
_LOW_HEIGHT = 230.0


def spend(facts: CampaignFacts) -> str:
    """Spent and reserved so far, the even pace until the end, and the budget."""
    money = facts.spending
    unused = f"{figure(facts.left)} are left"
    return framed(
        name="spend",
        title="Budget against plan",
        sees="The plan spends the budget evenly until the end, and bends where the budget or the end was changed.",
        says=(
            f"Spent {figure(facts.spent)} and reserved {figure(facts.reserved)} of {figure(facts.total)} {MONEY}; "
            f"{figure(money.planned)} was planned by now; {unused}."
        ),
        keys=(
            Key("spent", "area spent"),
            Key("reserved for open decisions", "area reserved"),
            Key("plan", "line plan"),
            Key("budget", "line budget"),
        ),
        draw=lambda width: _draw_spend(facts, width),
        notes=[one.words for one in _told(money.changes)],
    )


def _draw_spend(facts: CampaignFacts, width: float) -> Drawing:
    money = facts.spending
    highest = max(
        facts.total, *(amount for _, amount in money.budget), *(one.spent + one.reserved for one in money.points)
    )
    y = nice_axis(0.0, highest, most=6, words=figure, name=f"{MONEY}, in all")
    inside = width - 80.0
    if money.axis == "time":
        x = time_axis(money.start, max(money.end, money.start + 1.0), width=inside)
    else:
        x = nice_axis(0.0, max(money.end, 1.0), most=most_ticks(inside), words=figure, name="arrivals")
        x = Axis(low=0.0, high=max(money.end, 1.0), ticks=x.ticks, name=x.name)
    marks = [Mark(one.at, str(place), "mark change") for place, one in enumerate(_told(money.changes), start=1)]
    if money.start < money.now < money.end:
        marks.append(Mark(money.now, "now", "mark now"))
    drawing = Drawing(width=width, height=_HEIGHT, x=x, y=y, marks=marks)
    spent = [(one.at, one.spent) for one in money.points]
    used = [(one.at, one.spent + one.reserved) for one in money.points]
    drawing.area(spent, [(money.start, 0.0), (money.now, 0.0)], "area spent")
    drawing.area(used, spent, "area reserved")
    drawing.line(_stairs(money.budget, money.end), "line budget")
    drawing.line(money.plan, "line plan")
    drawing.line(used, "line used")
    return drawing


_MOST_MARKS = 12


def _told(changes: Sequence[Change]) -> Sequence[Change]:
    """The newest ones, where there are many."""
    return changes[-_MOST_MARKS:]


def _stairs(steps: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for place, (at, amount) in enumerate(steps):
        upto = steps[place + 1][0] if place + 1 < len(steps) else end
        points += [(at, amount), (upto, amount)]
    return points


def rewards(facts: CampaignFacts) -> str:
    """What answers brought, by when they came."""
    what = period_name(facts.periods)
    best = max(facts.periods, key=lambda one: one.reward)
    return framed(
        name="rewards",
        title=f"Reward by {what}",
        sees=(
            f"{figure(facts.reward)} in all, by when answers came (UTC). The best {what} brought {figure(best.reward)}."
        ),
        says=f"A bar for each {what}; the highest, {period_begins(best)}, brought {figure(best.reward)}.",
        keys=(),
        draw=lambda width: _draw_rewards(facts.periods, width),
    )


def _draw_rewards(periods: Sequence[Period], width: float) -> Drawing:
    low, high = min(0.0, *(one.reward for one in periods)), max(0.0, *(one.reward for one in periods))
    y = nice_axis(low, high, most=5, words=figure, name="reward that counts")
    x = time_axis(periods[0].begins, periods[-1].ends, width=width - 80.0)
    drawing = Drawing(width=width, height=_LOW_HEIGHT, x=x, y=y)
    for one in periods:
        pad = 0.1 * (one.ends - one.begins)
        title = (
            f"{period_begins(one)}: reward {figure(one.reward)} of {one.answers:,} answers, {one.arrivals:,} arrivals"
        )
        drawing.bar(one.begins + pad, one.ends - pad, one.reward, "bar", title)
    return drawing
