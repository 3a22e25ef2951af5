"""Tables of a plan as markup: numbers with intervals, and no more rows than somebody reads."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from doral.log.clock import Clock
from doral.pages.markup import Datum, Row, table, text
from doral.pages.names import printable, short
from doral.pages.numbers import DASH, MINUS
from doral.planning.fact import number, percent
from doral.planning.table import How, Shown, Table

MOST_ROWS = 50
_UNFOLDED = 20  # rows; a page with more open ones is scrolled and not read
_LONGEST, _LONGEST_NAME = 300, 60  # characters of a cell


def datum_table(found: Table, clock: Clock) -> str:
    """Markup of a table; a long one is folded, and of what is left out it is said where it is."""
    shown = found.shown or tuple(Shown(head=key, key=key) for key in found.keys)
    rows = found.rows if found.on_page is None else found.on_page
    rest = len(rows) - MOST_ROWS
    more = f" The first {MOST_ROWS} of {len(rows):,} rows; all are in {found.name}.csv." if rest > 0 else ""
    html = table(
        name=f"{found.name}-table",
        caption=escape(found.caption + more),
        heads=[one.head for one in shown],
        rows=[
            Row(data=[_datum(row, one, clock, is_head=place == 0) for place, one in enumerate(shown)])
            for row in rows[:MOST_ROWS]
        ],
        is_sortable=len(rows) > 2 and bool(found.shown),
    )
    if len(rows) <= _UNFOLDED:
        return html
    summary = f"{found.name.capitalize()}: {f'{MOST_ROWS} of ' if rest > 0 else ''}{len(rows):,} rows"
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def _datum(row: dict[str, Any], one: Shown, clock: Clock, *, is_head: bool) -> Datum:
    value = row[one.key]
    if one.how == "name":
        full = printable(DASH if value is None else str(value))
        brief = short(full, _LONGEST_NAME)
        title = full if brief != full else ""
        return Datum(html=escape(brief), sort=full.lower(), look="words", is_head=is_head, title=title)
    if one.how == "text":
        return text(DASH if value is None else short(str(value), _LONGEST), look="words", is_head=is_head)
    if one.how == "yes":
        return text(written(value, one.how, clock), is_head=is_head)
    html = escape(written(value, one.how, clock))
    if one.ends is not None and value is not None:
        low, high = (row[key] for key in one.ends)
        if low is not None:
            ends = f"{written(low, one.how, clock)} to {'more' if high is None else written(high, one.how, clock)}"
            html = f"{html} <small>{escape(ends)}</small>"
    return Datum(
        html=html, sort=None if value is None else float(value), look="" if is_head else "number", is_head=is_head
    )


def written(value: Any, how: How, clock: Clock) -> str:
    """A value as people read it; a dash where it is not known."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return DASH
    if how == "yes":
        return "yes" if value else "no"
    if how == "count":
        return f"{value:,}"
    if how == "share":
        return _real_minus(percent(value))
    if how == "times":
        return _real_minus(clock.shown(value * clock.size_of(clock.told)))
    if how == "number":
        return _real_minus(number(value))
    if how == "signed":
        return _real_minus(f"+{number(value)}" if value > 0 else number(value))
    return printable(str(value))


def _real_minus(words: str) -> str:
    return words.replace("-", MINUS, 1) if words.startswith("-") else words
