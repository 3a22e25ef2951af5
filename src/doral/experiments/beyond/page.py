"""The report of the comparison, put together."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape

import polars as pl

from doral.experiments.beyond import tables
from doral.experiments.beyond.analysis import Comparison
from doral.experiments.beyond.choices import Choice
from doral.experiments.beyond.figures import figure_name
from doral.experiments.beyond.ingredients import REFERENCE
from doral.experiments.beyond.plan import ComparePlan
from doral.experiments.claims import Claim
from doral.experiments.figures import PNG_DOTS_PER_INCH
from doral.experiments.report import shell
from doral.experiments.report.markup import number, spread
from doral.experiments.report.shell import Facts, Section, asset, settings_section
from doral.experiments.report.tables import verdict_mark

CSS_DOTS_PER_INCH = 96
_COURSE_WORDS = "Cut-off m and number of arms in play of doral-otf, over time"
_REGRET_WORDS = "Regret of every policy on the paper's scenarios, on a log scale"


def build(
    found: Comparison, plan: ComparePlan, facts: Facts, images: Mapping[str, bytes], dark: Mapping[str, bytes]
) -> str:
    """The whole page; `images` are the figures as files, `dark` those for readers in the dark."""
    return shell.build(
        headline=_headline(found),
        kicker="Every policy on every scenario, all on the same draws",
        banner=_banner(plan),
        answer=f"<p>{_answer(found, plan)}</p>{_missed(found.claims)}",
        sections=[*_sections(found, plan, images, dark), settings_section(facts, _settings(plan))],
        scripts=f"<script>\n{asset('sorting.js')}\n</script>",
    )


def _headline(found: Comparison) -> str:
    if not found.claims:
        return f"{len(found.policies)} policies on {len(found.scenarios)} scenarios"
    held = sum(claim.holds for claim in found.claims)
    return f"{REFERENCE}: {held} of {len(found.claims)} targets are reached"


def _banner(plan: ComparePlan) -> str:
    if not plan.is_quick:
        return ""
    return (
        f"A quick try-out: {plan.runs} runs, with budgets and horizons divided by {plan.shrink}. "
        "It shows that everything works; nothing about the policies follows from it."
    )


def _answer(found: Comparison, plan: ComparePlan) -> str:
    said = (
        f"{_count(len(found.policies), 'policy', 'policies')} played "
        f"{_count(len(found.scenarios), 'scenario', 'scenarios')}, {_count(plan.runs, 'run', 'runs')} each. "
    )
    return said + escape(where_not_ahead(found))


def _missed(claims: list[Claim]) -> str:
    """The targets that are not reached, where nobody can overlook them."""
    items = "".join(
        f"<li>{verdict_mark(claim)}<span>{escape(claim.statement)} "
        f"<small>({escape(claim.scenario)}: {number(claim.estimate, 2)}, {spread(claim.low, claim.high, 2)})</small>"
        "</span></li>"
        for claim in claims
        if not claim.holds
    )
    return f'<ul class="answer">{items}</ul>' if items else ""


def _count(many: int, one: str, several: str) -> str:
    return f"{many} {one if many == 1 else several}"


def where_not_ahead(found: Comparison) -> str:
    """One or two sentences that say first where `doral-otf` is not ahead."""
    if REFERENCE not in found.policies or len(found.policies) == 1:
        return ""
    rows = found.shares.filter(policy=REFERENCE)
    if rows["standing"][0] == "unknown":
        return "One run has no interval, so that nothing can be said about who is ahead."
    behind, tied, ahead = (rows.filter(standing=word) for word in ("behind", "tied", "ahead"))
    said = f"{REFERENCE} is behind on {_list_of(behind)}" if behind.height else f"{REFERENCE} is behind on none of them"
    said += f" and tied with the best other policy on {_list_of(tied)}" if tied.height else ", and tied on none"
    return f"{said}. It is ahead, by an interval that excludes 0, on {ahead.height} of {rows.height}."


def _list_of(rows: pl.DataFrame) -> str:
    words = [
        f"{row['scenario']} ({number(row['difference_points'], 2, signed=True)} points to {row['best_other']})"
        for row in rows.iter_rows(named=True)
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _sections(
    found: Comparison, plan: ComparePlan, images: Mapping[str, bytes], dark: Mapping[str, bytes]
) -> Iterable[Section]:
    regret = _picture("regret", _REGRET_WORDS, images, dark) if "regret.png" in images else ""
    html = f"{tables.shares_table(found)}\n{regret}"
    yield Section(id="shares", title="The share of the clairvoyant's reward", menu="Shares", html=html)
    if found.claims:
        yield Section(id="claims", title="The targets", menu="Targets", html=tables.claims_table(found.claims))
    if found.ingredients is not None:
        runs = _count(plan.side_runs, "run", "runs")
        html = (
            f"<p><code>{REFERENCE}</code> with one word changed at a time, {runs} each, paired.</p>\n"
            f"{tables.ingredients_table(found.ingredients, found.scenarios)}"
        )
        yield Section(id="ingredients", title="What each ingredient is worth", menu="Ingredients", html=html)
    if found.courses is not None:
        note = (
            "The cut-off m follows the return curves, and arms that cannot enter the LP's solution are out, with a "
            "certificate, until further notice. Near the end values change with every round, because what cannot "
            "return any more is worth nothing, and arms are examined anew."
        )
        html = f"<p>{note}</p>\n{_picture('course', _COURSE_WORDS, images, dark)}"
        yield Section(id="course", title="The course over time", menu="Course", html=html)
    if found.choices is not None:
        shown = [_choice(choice, found.choices.filter(choice=choice.name), images, dark) for choice in plan.choices]
        note = (
            "Why the defaults are what they are. Bands and bars are 95% intervals of the mean. Policies share the "
            "draws of a run, so that their differences on one scenario are sharper than the bands suggest."
        )
        html = f'<p>{note}</p>\n<div class="grid">{"".join(shown)}</div>'
        yield Section(id="choices", title="The choices", menu="Choices", html=html)


def _choice(choice: Choice, frame: pl.DataFrame, images: Mapping[str, bytes], dark: Mapping[str, bytes]) -> str:
    words = f"{choice.question} % of the clairvoyant's reward by: {choice.x_label}"
    return (
        f"<div><h3>{escape(choice.question)}</h3>\n{_picture(figure_name(choice), words, images, dark)}\n"
        f"<details><summary>The numbers</summary>{tables.choice_table(choice, frame)}</details></div>\n"
    )


def _picture(name: str, words: str, images: Mapping[str, bytes], dark: Mapping[str, bytes]) -> str:
    light = images[f"{name}.png"]
    width = round(_width(light) * CSS_DOTS_PER_INCH / PNG_DOTS_PER_INCH)
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_data(dark[name])}">'
        f'<img alt="{escape(words)}" width="{width}" src="{_data(light)}"></picture></figure>'
    )


def _width(png: bytes) -> int:
    """In dots: the first number of the header that every PNG begins with."""
    return int.from_bytes(png[16:20], "big")


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _settings(plan: ComparePlan) -> list[tuple[str, str]]:
    return [
        ("Policies", ", ".join(one.name for one in plan.policies)),
        ("Scenarios", ", ".join(one.name for one in plan.scenarios)),
        ("Runs", f"{plan.runs}; ingredients and choices {plan.side_runs if plan.with_sides else 'not run'}"),
        *([("Budgets and horizons", f"divided by {plan.shrink}")] if plan.is_quick else []),
    ]
