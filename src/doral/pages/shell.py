"""The shell of a self-contained page: styles, menu, sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template


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
        main="\n".join(section(one) for one in sections),
        scripts=page.scripts,
    )


def section(one: Section) -> str:
    """As it stands in a page."""
    return (
        f'<section id="{one.id}" aria-labelledby="{one.id}-title">\n'
        f'<h2 id="{one.id}-title">{escape(one.title)}</h2>\n{one.html}\n</section>'
    )


def duration_words(seconds: float) -> str:
    """Minutes and seconds, for people."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
