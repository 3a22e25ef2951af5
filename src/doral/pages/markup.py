"""HTML for reports: escaped text, numbers, tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from doral.pages.numbers import number


@dataclass(frozen=True, kw_only=True)
class Datum:
    """An entry of a table: its HTML, what it is sorted by, and how it looks."""

    html: str
    sort: float | str | None = None
    look: str = ""
    is_head: bool = False
    title: str = ""
    """More of it, shown on hover."""


def text(value: str, *, look: str = "", is_head: bool = False) -> Datum:
    """Words."""
    return Datum(html=escape(value), sort=value.lower(), look=look, is_head=is_head)


def amount(value: float | None, digits: int = 0, *, signed: bool = False, look: str = "") -> Datum:
    """A number, right-aligned."""
    return Datum(html=number(value, digits, signed=signed), sort=value, look=f"number {look}".strip())


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row, with a mark by which the page may show or hide it."""

    data: Sequence[Datum]
    metric: str = ""
    key: str = ""
    """What it is about, by which a page that moves knows it again."""


def table(*, name: str, caption: str, heads: Sequence[str], rows: Iterable[Row], is_sortable: bool = False) -> str:
    """A table in a frame that scrolls sideways on narrow screens. A caption may hold markup of its own."""
    made = list(rows)
    looks = [datum.look for datum in made[0].data]  # headings stand above their numbers
    head = "".join(_head(words, look, is_sortable=is_sortable) for words, look in zip(heads, looks, strict=True))
    body = "\n".join(row_html(row) for row in made)
    look = ' class="sortable"' if is_sortable else ""
    return (
        f'<div class="scroll" role="region" aria-labelledby="{name}-caption" tabindex="0">'
        f'<table id="{name}"{look}><caption id="{name}-caption">{caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _head(words: str, look: str, *, is_sortable: bool) -> str:
    inner = f'<button type="button">{escape(words)}</button>' if is_sortable else escape(words)
    return f'<th scope="col"{_class(look)}>{inner}</th>'


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""


def row_html(row: Row) -> str:
    """A row of a table."""
    mark = f' data-metric="{escape(row.metric)}"' if row.metric else ""
    mark += f' data-key="{escape(row.key)}"' if row.key else ""
    return f"<tr{mark}>{''.join(_datum(datum) for datum in row.data)}</tr>"


def _datum(datum: Datum) -> str:
    look = _class(datum.look)
    known = datum.sort is not None and not (isinstance(datum.sort, float) and math.isnan(datum.sort))
    sort = f' data-sort="{escape(str(datum.sort))}"' if known else ""
    title = f' title="{escape(datum.title)}"' if datum.title else ""
    if datum.is_head:
        return f'<th scope="row"{look}{sort}{title}>{datum.html}</th>'
    return f"<td{look}{sort}{title}>{datum.html}</td>"
