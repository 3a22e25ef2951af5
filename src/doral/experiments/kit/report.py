"""The page of an experiment: what a report tells about the run that made it, and the section about settings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

from doral.experiments.kit import settings
from doral.experiments.kit.batches import Finished
from doral.experiments.kit.extent import Extent
from doral.pages.markup import Row, table, text
from doral.pages.shell import Page, Section, duration_words, whole


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
