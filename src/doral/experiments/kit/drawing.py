"""What figures and pages of experiments have in common: lines with intervals, verdicts, facts about the run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from doral._arrays import Floats, Ints
from doral.experiments.kit.batches import Extent, Finished, cpu_count, versions
from doral.experiments.kit.claim import Claim, Verdict
from doral.pages.markup import Datum, Row, amount, table, text
from doral.pages.numbers import spread
from doral.pages.shell import Page, Section, duration_words, whole
from doral.simulation.results.differences import FEWEST_RUNS
from doral.simulation.results.plots import colour_of, dash_of

# Black digits are read on every depth of these, at a contrast of six at least: no scale reaches into the middle, where
# neither black nor white stands out. One hue from pale to deep, and two that everybody tells apart.
DIGITS_COLOUR = "#010101"  # what is drawn in plain black follows the page, and would be white in the dark
DEPTHS = LinearSegmentedColormap.from_list("depths", ["#f7fbff", "#d6e6f4", "#9ecae1", "#63aad6", "#4292c6"])
SIDES = LinearSegmentedColormap.from_list("sides", ["#e08214", "#fdc98a", "#f7f7f7", "#9ecae1", "#4292c6"])


def mean_words(runs: int) -> str:
    """Of how many runs a number is the mean."""
    return f"mean of {runs} runs" if runs > 1 else "one run"


def runs_words(runs: int) -> str:
    """How many runs a figure shows, and whether that is enough for intervals."""
    return f"{mean_words(runs)}, {'95%' if runs >= FEWEST_RUNS else 'no'} interval"


def banded_line(
    axes: Axes, x: Floats, values: tuple[Floats, Floats, Floats], *, position: int, label: str, marker: str = "o"
) -> None:
    """Means joined by a line, between the low and the high ends of their intervals where there are any."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, marker=marker, markersize=4, color=colour, linestyle=dash_of(position), label=label)
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def banded_curve(
    axes: Axes, x: Floats | Ints, values: tuple[Floats, Floats, Floats], *, position: int, label: str | None
) -> None:
    """The same of so many points that none is marked."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, color=colour, linestyle=dash_of(position), linewidth=1.7, label=label)
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def ends_of(frame: pl.DataFrame, column: str) -> tuple[Floats, Floats, Floats]:
    """The mean, low and high ends of a column of intervals."""
    mean, low, high = (frame[f"{column}{end}"].cast(float).to_numpy() for end in ("", "_low", "_high"))
    return mean, low, high


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a report tells about the run that made it."""

    seed: int
    command: str
    versions: Mapping[str, str]
    cpu_count: int
    time_taken_s: float
    batches: int
    kept_batches: int

    @classmethod
    def of(cls, finished: Finished, *, seed: int, command: str, started_s: float) -> Self:
        """What there is to tell now that the work is done; `started_s` is on the monotonic clock."""
        return cls(
            seed=seed,
            command=command,
            versions=versions(),
            cpu_count=cpu_count(),
            time_taken_s=time.monotonic() - started_s,
            batches=finished.batches,
            kept_batches=finished.kept_batches,
        )


def quick_banner(extent: Extent, *, divided: str, subject: str) -> str:
    """Says of a try-out that it is one: what was divided, and about what nothing follows from it."""
    if not extent.is_quick:
        return ""
    return (
        f"A quick try-out: {extent.runs} runs, with {divided} divided by {extent.shrink}. "
        f"It shows that everything works; nothing about {subject} follows from it."
    )


def build_report(page: Page, facts: Facts) -> str:
    """The whole page of an experiment, with the section about its settings."""
    return whole(page, [*page.sections, _settings_section(facts, page.settings)])


def _settings_section(facts: Facts, rows: Sequence[tuple[str, str]]) -> Section:
    """How to have the same numbers again."""
    kept = f", {facts.kept_batches} of {facts.batches} batches came from an earlier call" if facts.kept_batches else ""
    all_rows = [
        *rows,
        ("Seed", str(facts.seed)),
        *((f"Version of {name}", one) for name, one in facts.versions.items()),
        ("Cores", str(facts.cpu_count)),
        ("Time taken", f"{duration_words(facts.time_taken_s)}{kept}"),
    ]
    html = (
        "<p>The same numbers, to the bit, whatever the number of cores:</p>"
        f"<pre><code>{escape(facts.command)}</code></pre>"
        "<p>Next to this page lie the figures (PNG, PDF), all tables (CSV), <code>claims.json</code>, and "
        "<code>settings.json</code> with every option of every policy and scenario.</p>"
        + table(
            name="settings-table",
            caption="What was run, and with what.",
            heads=["setting", "value"],
            rows=[Row(data=[text(name, is_head=True), text(value)]) for name, value in all_rows],
        )
    )
    return Section(id="settings", title="Settings, and how to reproduce", menu="Settings", html=html)


_VERDICTS = {
    "holds": ("good", "\N{CHECK MARK} holds"),
    "fails": ("bad", "\N{BALLOT X} fails"),
    "not shown": ("open", "? not shown"),
}


VERDICTS_NOTE = (
    "“Holds”: all of the interval agrees with the statement; “fails”: all of it contradicts the statement; “not "
    "shown”: the interval is too wide to say, or there are too few runs for one."
)


def verdict_mark(verdict: Verdict, words: str = "") -> str:
    """The verdict in a colour, with a sign for those who do not see it; `words` may stand in its place."""
    look, own = _VERDICTS[verdict]
    return f'<span class="mark {look}">{words or own}</span>'


def verdicts_table(claims: list[Claim], *, caption: str, places: Mapping[str, str], is_signed: bool = True) -> str:
    """Statements with their verdicts; `places` are names of scenarios for people."""
    rows = []
    for claim in claims:
        statement = f"{escape(claim.statement)}<br><small>{escape(places.get(claim.scenario, claim.scenario))}</small>"
        bounds = spread(claim.low, claim.high, 2, signed=is_signed)
        rows.append(
            Row(
                data=[
                    Datum(html=verdict_mark(claim.verdict), sort=claim.verdict),
                    Datum(html=statement, is_head=True),
                    amount(claim.estimate, 2, signed=is_signed),
                    Datum(html=bounds, sort=claim.low, look="number"),
                    text(claim.unit),
                ]
            )
        )
    heads = ["verdict", "statement", "estimate", "95% interval", "unit"]
    return table(name="claims-table", caption=caption, heads=heads, rows=rows)
