"""Cards for notebooks: a title, a few facts, small tables, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

_CELL = "padding:.15em .8em .15em 0;border:0;background:none;vertical-align:top"


def card(title: str, facts: Iterable[tuple[str, str]] = (), *, parts: Iterable[str] = ()) -> str:
    """A title, facts as (name, value) in plain text, and what `small_table` or `note` made below them."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};text-align:left;font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{_CELL};text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    table = f'<table style="border-collapse:collapse;margin:.2em 0 .4em">{rows}</table>' if rows else ""
    return (
        f'<div class="doral"><p style="margin:.2em 0"><strong>{escape(title)}</strong></p>{table}{"".join(parts)}</div>'
    )


def small_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = ()) -> str:
    """Plain text in rows and columns; the columns of `numbers` are aligned to the right."""

    def cells(values: Sequence[str], tag: str, weight: str) -> str:
        return "".join(
            f'<{tag} style="{_CELL};text-align:{"right" if i in numbers else "left"};font-weight:{weight}">'
            f"{escape(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells(row, 'td', 'normal')}</tr>" for row in rows)
    head = f"<thead><tr>{cells(heads, 'th', '600')}</tr></thead>"
    return f'<table style="border-collapse:collapse;margin:.2em 0 .4em">{head}<tbody>{body}</tbody></table>'


def note(words: str) -> str:
    """A line in small type."""
    return f'<p style="margin:.2em 0;opacity:.75"><small>{escape(words)}</small></p>'
