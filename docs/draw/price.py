"""The price of a unit of budget: hulls of what arms bring for what they cost, filled from the steepest edge down."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sheet import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SOFT, Sheet

RATE = 1.0  # budget per arrival
SHARES = {"elderly": 0.3, "adult": 0.5, "young": 0.2}
COSTS = {"letter": 1.0, "call": 2.0, "visit": 4.0}
# What an arm brings on average, by the deadline: mean reward times return probability.
WORTH = {
    "elderly": {"letter": 0.10, "call": 0.40, "visit": 0.62},
    "adult": {"letter": 0.16, "call": 0.24, "visit": 0.30},
    "young": {"letter": 0.05, "call": 0.06, "visit": 0.10},
}
COLOURS = {"elderly": BLUE, "adult": GREEN, "young": PURPLE}


@dataclass(frozen=True)
class Edge:
    """A step up a hull: from one arm (or none) of a context to the next."""

    context: str
    before: str | None
    arm: str
    cost: float
    worth: float

    @property
    def slope(self) -> float:
        return self.worth / self.cost

    @property
    def width(self) -> float:
        """What it takes of the budget per arrival."""
        return self.cost * SHARES[self.context]


def hull(context: str) -> list[tuple[str | None, float, float]]:
    """Arms of the upper hull with cost and worth, from doing nothing on."""
    corners: list[tuple[str | None, float, float]] = [(None, 0.0, 0.0)]
    for arm, cost in sorted(COSTS.items(), key=lambda item: item[1]):
        point = (arm, cost, WORTH[context][arm])
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) <= _slope(corners[-1], point):
            corners.pop()
        if point[2] > corners[-1][2]:
            corners.append(point)
    return corners


def _slope(a: tuple[str | None, float, float], b: tuple[str | None, float, float]) -> float:
    return (b[2] - a[2]) / (b[1] - a[1])


def edges() -> list[Edge]:
    """All edges of all hulls, the steepest first."""
    found = []
    for context in SHARES:
        corners = hull(context)
        for a, b in pairwise(corners):
            assert b[0] is not None
            found.append(Edge(context, a[0], b[0], b[1] - a[1], b[2] - a[2]))
    return sorted(found, key=lambda edge: -edge.slope)


def price(rate: float = RATE) -> float:
    """The slope of the edge at which the budget ends."""
    used = 0.0
    for edge in edges():
        used += edge.width
        if used > rate:
            return edge.slope
    return 0.0


def hulls() -> Sheet:
    """Each context's arms by cost and worth, with the hull; a line with the slope of the price finds the arm."""
    sheet = Sheet(860, 360, "What arms bring for what they cost, by context, with the upper hull and the price")
    lam = price()
    for i, context in enumerate(SHARES):
        x0, y0, wide, high = 50 + 275 * i, 290.0, 200.0, 215.0

        def at(
            cost: float, worth: float, x0: float = x0, y0: float = y0, wide: float = wide, high: float = high
        ) -> tuple[float, float]:
            return x0 + wide * cost / 4.4, y0 - high * worth / 0.7

        sheet.text(
            x0 - 15,
            36,
            f"{context}, {SHARES[context]:.0%} of arrivals",
            size=16,
            at="start",
            bold=True,
            colour=COLOURS[context],
        )
        sheet.line(*at(0, 0), *at(4.4, 0), SOFT, width=1)
        sheet.line(*at(0, 0), *at(0, 0.7), SOFT, width=1)
        for cost in (1, 2, 4):
            sheet.text(at(cost, 0)[0], y0 + 17, str(cost), size=12, colour=SOFT)
        for worth in (0.2, 0.4, 0.6):
            sheet.text(x0 - 6, at(0, worth)[1] + 4, f"{worth:.1f}", size=12, colour=SOFT, at="end")
        sheet.text(x0 + wide / 2, y0 + 36, "cost", size=12.5, colour=SOFT)
        corners = hull(context)
        sheet.curve([at(c, w) for _, c, w in corners], COLOURS[context])
        best = max(corners, key=lambda corner: corner[2] - lam * corner[1])
        top = best[2] - lam * best[1]
        sheet.line(*at(0, max(top, 0.0)), *at(4.4, max(top, 0.0) + lam * 4.4), RED, width=1.5, dash="6 4")
        on_hull = {corner[0] for corner in corners}
        for arm, cost in COSTS.items():
            x, y = at(cost, WORTH[context][arm])
            sheet.dot(x, y, 5, COLOURS[context] if arm in on_hull else "#ffffff", COLOURS[context])
            below = arm not in on_hull or context == "adult"
            sheet.text(x + 4, y + (19 if below else -10), arm, size=13, at="middle")
    sheet.line(50, 346, 76, 346, RED, dash="6 4")
    said = f"the price, {lam:.2f} per unit of cost: the point highest above this slope is given, below it nothing"
    sheet.text(
        84,
        351,
        said,
        size=13,
        at="start",
    )
    return sheet


def staircase() -> Sheet:
    """Edges as steps, as wide as the budget that they take: the budget ends in one of them, and that is the price."""
    sheet = Sheet(860, 404, "Edges of all hulls, the steepest first; the budget ends in one, whose slope is the price")
    x0, y0, high = 60.0, 320.0, 250.0
    total = sum(edge.width for edge in edges())
    unit = 770 / total
    sheet.text(30, 36, "What a unit of budget brings, best use first", size=17, at="start", bold=True)
    for worth in (0.0, 0.05, 0.10, 0.15, 0.20):
        y = y0 - high * worth / 0.22
        sheet.line(x0, y, x0 + 770, y, FAINT, width=1)
        sheet.text(x0 - 8, y + 4, f"{worth:.2f}", size=12, colour=SOFT, at="end")
    used = 0.0
    for edge in edges():
        x, width, tall = x0 + unit * used, unit * edge.width, high * edge.slope / 0.22
        is_bought = used + edge.width <= RATE + 1e-9
        sheet.box(
            x,
            y0 - tall,
            width,
            tall,
            fill=COLOURS[edge.context] if is_bought else "#e9edf1",
            edge="#ffffff",
            round_=2,
            thick=1.5,
        )
        if not is_bought and used < RATE:
            part = unit * (RATE - used)
            sheet.box(x, y0 - tall, part, tall, fill=COLOURS[edge.context], edge="#ffffff", round_=2, thick=1.5)
        step = edge.arm if edge.before is None else f"{edge.before} to {edge.arm}"
        middle = x + width / 2
        sheet.text(middle, y0 - tall - 22, edge.context, size=12.5, colour=COLOURS[edge.context], bold=True)
        sheet.text(middle, y0 - tall - 7, step, size=12.5)
        used += edge.width
    end = x0 + unit * RATE
    sheet.line(end, 66, end, y0 + 8, INK, width=2)
    sheet.text(end + 10, 78, "here the budget ends: 1 per arrival", size=13.5, at="start", bold=True)
    y = y0 - high * price() / 0.22
    sheet.line(x0, y, x0 + 770, y, RED, width=2, dash="6 4")
    sheet.text(x0 + 768, y - 7, f"the price: {price():.2f}", size=14, colour=RED, at="end", bold=True)
    for tick in (0.0, 0.5, 1.0, 1.5, 2.0):
        sheet.text(x0 + unit * tick, y0 + 20, f"{tick:g}", size=12, colour=SOFT)
    sheet.text(x0 + 385, y0 + 40, "budget per arrival", size=12.5, colour=SOFT)
    sheet.text(60, 390, "Coloured: bought. Grey: what more budget would buy next.", size=13, colour=ORANGE, at="start")
    return sheet
