"""What all reports share: the page around their sections, how a section is set, and the section about settings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Self

from doral.experiments import settings
from doral.experiments.report.markup import Row, table, text
from doral.experiments.run import Finished


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a report tells about the run that made it."""

    seed: int
    command: str
    versions: Mapping[str, str]
    cpu_count: int
    time_taken_s: float
    blocks: int
    kept_blocks: int

    @classmethod
    def of(cls, finished: Finished, *, seed: int, command: str, started_s: float) -> Self:
        """What there is to tell now that the work is done; `started_s` is on the monotonic clock."""
        return cls(
            seed=seed,
            command=command,
            versions=settings.versions(),
            cpu_count=settings.cpu_count(),
            time_taken_s=time.monotonic() - started_s,
            blocks=finished.blocks,
            kept_blocks=finished.kept_blocks,
        )


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading, reached from the contents."""

    id: str
    title: str
    menu: str
    """Its name in the contents."""
    html: str


def asset(name: str) -> str:
    """A file that lies next to this module."""
    return files("doral.experiments.report").joinpath(name).read_text(encoding="utf-8")


def build(
    *, headline: str, kicker: str, banner: str, answer: str, sections: Sequence[Section], scripts: str = ""
) -> str:
    """A whole page that needs nothing but itself; all but the headline and the kicker is markup already."""
    return Template(asset("shell.html")).substitute(
        title=f"{escape(headline)} \N{MIDDLE DOT} DORAL",
        css=asset("page.css"),
        first=sections[0].id,
        kicker=escape(kicker),
        headline=escape(headline),
        banner=f'<p class="banner" role="note">{banner}</p>' if banner else "",
        answer=answer,
        contents="".join(f'<li><a href="#{one.id}">{escape(one.menu)}</a></li>' for one in sections),
        main="\n".join(_section(one) for one in sections),
        scripts=scripts,
    )


def _section(one: Section) -> str:
    return (
        f'<section id="{one.id}" aria-labelledby="{one.id}-title">\n'
        f'<h2 id="{one.id}-title">{escape(one.title)}</h2>\n{one.html}\n</section>'
    )


def plain_table(name: str, caption: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """Words in rows, the first of each as its heading."""
    made = [Row(data=[text(first, is_head=True), *(text(cell) for cell in others)]) for first, *others in rows]
    return table(name=name, caption=caption, heads=heads, rows=made)


def settings_section(facts: Facts, rows: Sequence[tuple[str, str]]) -> Section:
    """How to have the same numbers again; `rows` say what was run, what it was run with is added here."""
    kept = f", {facts.kept_blocks} of {facts.blocks} blocks came from an earlier call" if facts.kept_blocks else ""
    all_rows = [
        *rows,
        ("Seed", str(facts.seed)),
        *((f"Version of {name}", one) for name, one in facts.versions.items()),
        ("Cores", str(facts.cpu_count)),
        ("Time taken", f"{_duration(facts.time_taken_s)}{kept}"),
    ]
    html = (
        "<p>The same numbers, to the bit, whatever the number of cores:</p>"
        f"<pre><code>{escape(facts.command)}</code></pre>"
        "<p>Next to this page lie the figures (PNG, PDF), all tables (CSV), <code>claims.json</code>, and "
        "<code>settings.json</code> with every option of every policy and scenario.</p>"
        + plain_table("settings-table", "What was run, and with what.", ["setting", "value"], all_rows)
    )
    return Section(id="settings", title="Settings, and how to reproduce", menu="Settings", html=html)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
