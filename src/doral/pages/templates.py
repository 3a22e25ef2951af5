"""Templates of pages: Jinja with autoescape, and the words in which pages tell numbers, money, shares and times.

Everything that a template prints is escaped; only macros, drawings and what is called `safe` there is markup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from doral.pages.meters import meter
from doral.pages.names import printable, short
from doral.pages.numbers import DASH, count, figure, money, number


@cache
def environment(*packages: str) -> Environment:
    """The templates in the folders `templates` of these packages, the first one first."""
    loaders = [PackageLoader(one, "templates", encoding="utf-8") for one in packages]
    made = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(dash=DASH, meter=_meter, count=count)
    return made


def when(at: float | None, *, seconds: bool = False, brief: bool = False) -> Markup:
    """A moment in UTC that a script shows in the zone of the viewer: UTC stays in its title."""
    try:
        found = None if at is None else datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return Markup("a time that no calendar shows")
    if found is None:
        return Markup(DASH)
    words = found.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    precision = "brief" if brief else "seconds" if seconds else "minutes"
    iso = found.isoformat(timespec="seconds").replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{} UTC" data-local="{}">{} UTC</time>').format(
        iso, words, precision, words
    )


def named(name: str, width: int = 48) -> Markup:
    """A name that fits its place; all of it as a title where it was cut."""
    shown, whole = short(name, width), printable(name)
    if shown == whole:
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup('<bdi title="{}">{}</bdi>').format(whole, shown)


def sortable(value: object) -> Markup:
    """What a table is sorted by, as an attribute; nothing where it is not known."""
    if value is None or value != value:
        return Markup("")
    return Markup(' data-sort="{}"').format(printable(str(value)).lower())


def _meter(parts: Sequence[tuple[str, float]], look: str, mark: float | None = None) -> Markup:
    return Markup(meter(parts, look=look, mark=mark))


FILTERS: dict[str, Callable[..., object]] = {
    "short": short,
    "printable": printable,
    "named": named,
    "figure": figure,
    "number": number,
    "money": money,
    "when": when,
    "sortable": sortable,
}


def add_filters(made: Environment, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """More filters, of the package whose templates need them."""
    made.filters.update(filters)
    return made
