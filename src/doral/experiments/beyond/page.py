"""The page of the comparison and its tables; the whole experiment as `doral experiment compare` conducts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from doral.experiments.beyond.analysis import SIGNS, BeyondFindings, analyse, depth_of_share, worth_depth
from doral.experiments.beyond.cells import INGREDIENTS, REFERENCE, BeyondExtent, Sweep, cells, changed_words, short_name
from doral.experiments.beyond.figures import FIGURE_NAMES, SCENARIO, dark_pictures, figure_name, figures, shown_policies
from doral.experiments.kit.claim import MARGIN_PERCENT, Claim, ends_note, held, none_words
from doral.experiments.kit.conduct import Experiment
from doral.experiments.kit.drawing import VERDICTS_NOTE, quick_banner, verdict_mark, verdicts_table
from doral.pages.images import PNG_DOTS_PER_INCH, as_data
from doral.pages.markup import Datum, Row, table, text
from doral.pages.numbers import count, number, spread
from doral.pages.shell import Page, Section, asset
from doral.simulation.results.differences import FEWEST_RUNS

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


CSS_DOTS_PER_INCH = 96
_COURSE_WORDS = "Cut-off m and number of arms in play of doral-otf, over time"
_REGRET_WORDS = "Regret of every policy on the paper's scenarios, on a log scale"


def page(found: BeyondFindings, extent: BeyondExtent, images: Mapping[str, bytes]) -> Page:
    """The whole page; `images` are the figures as files."""
    return Page(
        headline=_headline(found),
        kicker="Every policy on every scenario, all on the same draws",
        banner=quick_banner(extent, divided="budgets and horizons", subject="the policies"),
        answer=f"<p>{_answer(found, extent)}</p>{_missed(found.claims)}",
        sections=list(_sections(found, extent, images, dark_pictures(found, extent))),
        settings=_settings(extent),
        scripts=f"<script>\n{asset('sorting.js')}\n</script>",
    )


def _headline(found: BeyondFindings) -> str:
    if not found.claims:
        return f"{len(found.policies)} policies on {len(found.scenarios)} scenarios"
    return f"{REFERENCE}: {held(found.claims)} of {len(found.claims)} targets are reached"


def _answer(found: BeyondFindings, extent: BeyondExtent) -> str:
    said = (
        f"{count(len(found.policies), 'policy', 'policies')} played "
        f"{count(len(found.scenarios), 'scenario', 'scenarios')}, {count(extent.runs, 'run', 'runs')} each. "
    )
    return said + escape(where_not_ahead(found))


def _missed(claims: list[Claim]) -> str:
    """List the targets that are not reached, at the top of the page."""
    items = "".join(
        f"<li>{verdict_mark(claim.verdict)}<span>{escape(claim.statement)} "
        f"<small>({escape(claim.scenario)}: {number(claim.estimate, 2)}, {spread(claim.low, claim.high, 2)})</small>"
        "</span></li>"
        for claim in claims
        if not claim.holds
    )
    return f'<ul class="answer">{items}</ul>' if items else ""


def where_not_ahead(found: BeyondFindings) -> str:
    """One or two sentences that say first where `doral-otf` is not ahead."""
    if REFERENCE not in found.policies or len(found.policies) == 1:
        return ""
    rows = found.shares.filter(policy=REFERENCE)
    few = none_words(rows["runs"][0])
    if few:
        return f"{few[0].upper()}{few[1:]}, which needs {FEWEST_RUNS}: nothing can be said about who is ahead."
    behind, tied, ahead, open_ = (rows.filter(standing=word) for word in ("behind", "tied", "ahead", "unknown"))
    said = f"{REFERENCE} is behind on {_list_of(behind)}" if behind.height else f"{REFERENCE} is behind on none of them"
    said += (
        f" and tied with the best other policy (at most {MARGIN_PERCENT:g} point behind) on {_list_of(tied)}"
        if tied.height
        else ", and tied on none"
    )
    said += f". The runs do not tell on {_list_of(open_)}" if open_.height else ""
    return f"{said}. It is ahead, by an interval that excludes 0, on {ahead.height} of {rows.height}."


def _list_of(rows: pl.DataFrame) -> str:
    words = [
        f"{row['scenario']} ({number(row['difference_points'], 2, signed=True)} points to {row['best_other']})"
        for row in rows.iter_rows(named=True)
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _sections(
    found: BeyondFindings, extent: BeyondExtent, images: Mapping[str, bytes], dark: Mapping[str, bytes]
) -> Iterable[Section]:
    pictures = "".join(
        _picture(name, words, images, dark)
        for name, words in (("reward", _reward_words(found)), ("regret", _REGRET_WORDS))
        if f"{name}.png" in images
    )
    html = f'{shares_table(found)}\n<div class="grid">{pictures}</div>'
    yield Section(id="shares", title="The share of the oracle's reward", menu="Shares", html=html)
    if found.claims:
        yield Section(id="claims", title="The targets", menu="Targets", html=claims_table(found.claims))
    if found.ingredients is not None:
        runs = count(extent.side_runs, "run", "runs")
        html = (
            f"<p><code>{REFERENCE}</code> with one word changed at a time, {runs} each, paired.</p>\n"
            f"{ingredients_table(found.ingredients, found.scenarios)}"
        )
        yield Section(id="ingredients", title="What each ingredient is worth", menu="Ingredients", html=html)
    if found.courses is not None:
        note = (
            "The cut-off m follows the return curves, and arms that cannot enter the LP's solution are out, with a "
            "certificate, until further notice."
        )
        html = f"<p>{note}</p>\n{_picture('course', _COURSE_WORDS, images, dark)}"
        yield Section(id="course", title="The course over time", menu="Course", html=html)
    if found.sweeps is not None:
        shown = [_sweep(sweep, found.sweeps.filter(choice=sweep.name), images, dark) for sweep in extent.sweeps]
        note = (
            "Why the defaults are what they are. "
            + ends_note(extent.side_runs, otherwise="Bands and bars are 95% intervals of the mean.")
            + " Policies share the draws of a run, so that their differences on one scenario are sharper than "
            "intervals of the means suggest."
        )
        html = f'<p>{note}</p>\n<div class="grid">{"".join(shown)}</div>'
        yield Section(id="choices", title="The choices", menu="Choices", html=html)


def _reward_words(found: BeyondFindings) -> str:
    ends = [f"{name} {number(found.row(SCENARIO, name)['share_percent'], 1)}%" for name in shown_policies(found)]
    return f"Reward over time under diverse Pareto delays, in % of all that the oracle earns: {', '.join(ends)}"


def _sweep(sweep: Sweep, frame: pl.DataFrame, images: Mapping[str, bytes], dark: Mapping[str, bytes]) -> str:
    words = f"{sweep.question} % of the oracle's reward by: {sweep.x_label}"
    return (
        f"<div><h3>{escape(sweep.question)}</h3>\n{_picture(figure_name(sweep), words, images, dark)}\n"
        f"<details><summary>The numbers</summary>{sweep_table(sweep, frame)}</details></div>\n"
    )


def _picture(name: str, words: str, images: Mapping[str, bytes], dark: Mapping[str, bytes]) -> str:
    light = images[f"{name}.png"]
    width = round(_width(light) * CSS_DOTS_PER_INCH / PNG_DOTS_PER_INCH)
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{as_data(dark[name])}">'
        f'<img alt="{escape(words)}" width="{width}" src="{as_data(light)}"></picture></figure>'
    )


def _width(png: bytes) -> int:
    """In dots: the first number of the header that every PNG begins with."""
    return int.from_bytes(png[16:20], "big")


def _settings(extent: BeyondExtent) -> list[tuple[str, str]]:
    return [
        ("Policies", ", ".join(one.name for one in extent.policies)),
        ("Scenarios", ", ".join(one.name for one in extent.scenarios)),
        ("Runs", f"{extent.runs}; ingredients and choices {extent.side_runs if extent.with_sides else 'not run'}"),
        *([("Budgets and horizons", f"divided by {extent.shrink}")] if extent.is_quick else []),
    ]


EXPERIMENT: Experiment[BeyondExtent, BeyondFindings] = Experiment(
    cells=cells, analyse=analyse, figures=figures, figure_names=FIGURE_NAMES, page=page
)
