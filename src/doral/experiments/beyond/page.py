"""The page of the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

import polars as pl

from doral.experiments.beyond import tables
from doral.experiments.beyond.analysis import BeyondFindings
from doral.experiments.beyond.cells import BeyondExtent
from doral.experiments.beyond.figures import dark_pictures, figure_name
from doral.experiments.beyond.names import REFERENCE
from doral.experiments.beyond.reward_figure import SCENARIO, shown_policies
from doral.experiments.beyond.sweeps import Sweep
from doral.experiments.kit.claim import MARGIN_PERCENT, Claim, held
from doral.experiments.kit.intervals import ends_note, none_words
from doral.experiments.kit.report import quick_banner
from doral.experiments.kit.verdicts_table import verdict_mark
from doral.pages.images import PNG_DOTS_PER_INCH, as_data
from doral.pages.numbers import count, number, spread
from doral.pages.shell import Page, Section, asset
from doral.simulation.results.intervals import FEWEST_RUNS

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
    """The targets that are not reached, where nobody can overlook them."""
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
    html = f'{tables.shares_table(found)}\n<div class="grid">{pictures}</div>'
    yield Section(id="shares", title="The share of the oracle's reward", menu="Shares", html=html)
    if found.claims:
        yield Section(id="claims", title="The targets", menu="Targets", html=tables.claims_table(found.claims))
    if found.ingredients is not None:
        runs = count(extent.side_runs, "run", "runs")
        html = (
            f"<p><code>{REFERENCE}</code> with one word changed at a time, {runs} each, paired.</p>\n"
            f"{tables.ingredients_table(found.ingredients, found.scenarios)}"
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
        f"<details><summary>The numbers</summary>{tables.sweep_table(sweep, frame)}</details></div>\n"
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
