"""The page of a report: what it shows, what is put around it, and the section about settings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Self

from doral.experiments.kit import settings
from doral.experiments.kit.batches import Finished
from doral.experiments.kit.extent import Extent
from doral.experiments.kit.markup import Row, table, text


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
            versions=settings.versions(),
            cpu_count=settings.cpu_count(),
            time_taken_s=time.monotonic() - started_s,
            batches=finished.batches,
            kept_batches=finished.kept_batches,
        )


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a heading, reached from the contents."""

    id: str
    title: str
    menu: str
    """Its name in the contents."""
    html: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a report shows. All but the headline and the kicker is markup already."""

    headline: str
    kicker: str
    """A line above the headline."""
    banner: str
    """A warning below it, or nothing."""
    answer: str
    """What came out, in short."""
    sections: Sequence[Section]
    settings: Sequence[tuple[str, str]] = ()
    """What was run; what it was run with is added."""
    scripts: str
    css: str = ""
    """Looks that other pages do not have."""


def asset(name: str, *, package: str = __package__) -> str:
    """A file that lies next to the modules of a package; this one, unless another is named."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def quick_banner(extent: Extent, *, divided: str, subject: str) -> str:
    """Says of a try-out that it is one: what was divided, and about what nothing follows from it."""
    if not extent.is_quick:
        return ""
    return (
        f"A quick try-out: {extent.runs} runs, with {divided} divided by {extent.shrink}. "
        f"It shows that everything works; nothing about {subject} follows from it."
    )


def build(page: Page, facts: Facts) -> str:
    """The whole page of an experiment, with the section about its settings."""
    return whole(page, [*page.sections, _settings_section(facts, page.settings)])


def whole(page: Page, sections: Sequence[Section]) -> str:
    """A page that needs nothing but itself, with these sections."""
    return Template(asset("shell.html")).substitute(
        title=f"{escape(page.headline)} \N{MIDDLE DOT} DORAL",
        css=asset("shell.css") + page.css,
        first=sections[0].id,
        kicker=escape(page.kicker),
        headline=escape(page.headline),
        banner=f'<p class="banner" role="note">{page.banner}</p>' if page.banner else "",
        answer=page.answer,
        contents="".join(f'<li><a href="#{one.id}">{escape(one.menu)}</a></li>' for one in sections),
        main="\n".join(_section(one) for one in sections),
        scripts=page.scripts,
    )


def _section(one: Section) -> str:
    return (
        f'<section id="{one.id}" aria-labelledby="{one.id}-title">\n'
        f'<h2 id="{one.id}-title">{escape(one.title)}</h2>\n{one.html}\n</section>'
    )


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


def duration_words(seconds: float) -> str:
    """Minutes and seconds, for people."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
