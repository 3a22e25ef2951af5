"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

from doral.experiments.beyond.analysis import BeyondFindings
from doral.experiments.beyond.heat import SIGNS, depth_of_share, worth_depth
from doral.experiments.beyond.names import changed_words, short_name
from doral.experiments.beyond.sweeps import Sweep
from doral.experiments.beyond.variants import INGREDIENTS
from doral.experiments.kit.claim import MARGIN_PERCENT, Claim
from doral.experiments.kit.intervals import ends_note, none_words
from doral.experiments.kit.verdicts_table import VERDICTS_NOTE, verdicts_table
from doral.pages.markup import Datum, Row, table, text
from doral.pages.numbers import number, spread

_MARKS = {
    "best": "the best here",
    "tied": f"at most {MARGIN_PERCENT:g} point behind the best",
    "": "surely behind the best",
    "open": "may be behind the best or not: the runs do not tell",
    "unknown": "too few runs to tell",
}


def shares_table(found: BeyondFindings) -> str:
    """Every policy on every scenario, heat-mapped."""
    rows = [
        Row(
            data=[
                text(scenario, look="short", is_head=True),
                *(_share(found.row(scenario, policy)) for policy in found.policies),
            ]
        )
        for scenario in found.scenarios
    ]
    caption = (
        "Reward within the deadline in % of the oracle's. The deeper the colour, the less is lost (log scale). "
        f"Framed: the best of its row (thick, *), and those that are at most {MARGIN_PERCENT:g} point behind it by the "
        "95% interval of the paired difference (thin, =); a question mark: the runs do not tell. "
        + ends_note(
            found.row(found.scenarios[0], found.policies[0])["runs"],
            otherwise="Pointing at a number shows its 95% interval; <code>shares.csv</code> has them all.",
        )
    )
    return table(name="shares-table", caption=caption, heads=["scenario", *found.policies], rows=rows, is_sortable=True)


def _share(row: dict[str, Any]) -> Datum:
    share = row["share_percent"]
    bounds = spread(row["share_percent_low"], row["share_percent_high"], 2)
    title = f"{row['policy']} on {row['scenario']}: {number(share, 2)}% {bounds}, {_MARKS[row['mark']]}"
    sign = SIGNS[row["mark"]]
    return Datum(
        html=f'<span style="--share:{depth_of_share(share):.2f}">{number(share, 1)}{sign}</span>',
        sort=share,
        look=f"number heat {row['mark'] if sign else ''}".strip(),
        title=title,
    )


def ingredients_table(frame: pl.DataFrame, scenarios: Sequence[str]) -> str:
    """What is lost without each ingredient."""
    found = {(row["without"], row["scenario"]): row for row in frame.iter_rows(named=True)}
    rows = []
    for position, variant in enumerate(INGREDIENTS):
        words = changed_words(variant.policy.name)
        name = Datum(
            html=f"<code>{escape(words)}</code><br><small>{escape(variant.says)}</small>", sort=position, is_head=True
        )
        rows.append(Row(data=[name, *(_worth(found[words, scenario]) for scenario in scenarios)]))
    caption = (
        "Points that <code>doral-otf</code> loses with this one thing changed, in % of the oracle's reward: "
        "what the ingredient is worth. Blue: it helps; orange, with a minus: it hurts; without colour: the 95% "
        "interval of the paired difference contains 0, or there is none. "
        + ends_note(frame["runs"][0], otherwise="Pointing at a number shows the interval.")
    )
    heads = ["changed", *(short_name(name) for name in scenarios)]
    return table(name="ingredients-table", caption=caption, heads=heads, rows=rows, is_sortable=True)


def _worth(row: dict[str, Any]) -> Datum:
    points = row["worth_points"]
    bounds = spread(row["worth_points_low"], row["worth_points_high"], 2, signed=True)
    depth = worth_depth(row)
    look = "loss" if depth < 0 else "unclear" if depth == 0 else ""
    return Datum(
        html=f'<span style="--share:{abs(depth):.2f}">{number(points, 1, signed=True)}</span>',
        sort=points,
        look=f"number heat {look}".strip(),
        title=f"{row['says']}, {row['scenario']}: {number(points, 2, signed=True)} points {bounds}",
    )


def sweep_table(sweep: Sweep, frame: pl.DataFrame) -> str:
    """The numbers behind the figure of a sweep."""
    shown = {(row["panel"], row["line"], row["x"]): row for row in frame.iter_rows(named=True)}
    places = list(dict.fromkeys((point.panel, point.x) for point in sweep.points))
    lines = list(dict.fromkeys(point.line for point in sweep.points))
    rows = []
    for panel, x in places:
        cells = [shown.get((panel, line, x)) for line in lines]
        rows.append(Row(data=[text(x, look="short", is_head=True), *(_point(cell) for cell in cells)]))
    few = none_words(frame["runs"][0])
    caption = f"% of the oracle's reward, {few or 'with its 95% interval'}."
    heads = [sweep.x_label.partition(":")[0], *lines]
    return table(name=f"choice-{sweep.name}-table", caption=caption, heads=heads, rows=rows)


def _point(row: dict[str, Any] | None) -> Datum:
    if row is None:
        return Datum(html="", look="number")
    bounds = f" <small>{spread(row['share_percent_low'], row['share_percent_high'], 2)}</small>"
    html = f"{number(row['share_percent'], 2)}{'' if none_words(row['runs']) else bounds}"
    return Datum(html=html, sort=row["share_percent"], look="number")


def claims_table(claims: list[Claim]) -> str:
    """What `doral-otf` is meant to reach, and whether it does."""
    caption = (
        "What <code>doral-otf</code> is meant to reach, decided by 95% intervals: of the mean share, of the ratio of "
        "mean regrets (bootstrap over runs), of paired differences. " + VERDICTS_NOTE
    )
    places = {"paper/*": "the paper's scenarios", "stress/*": "all stress scenarios"}
    return verdicts_table(claims, caption=caption, places=places, is_signed=False)
