"""What is printed for people: framed tables on a terminal, plain columns in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240  # no reader of a pipe has a width; nothing is cut off
READ_WIDTH = 80  # what is read like a page is no wider, on a wide terminal and in a pipe
_FACT_WIDTH = 12


def output() -> Console:
    """Where results go."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def show_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    numbers: Sequence[int] = (),
    title: str = "",
    width: int | None = None,
    is_whole: bool = False,
) -> None:
    """Print a table; `numbers` are the columns that are aligned to the right, `width` is what it takes at most.

    One that `is_whole` has its lines broken by a narrow terminal, and not its cells.
    """
    console = output()
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        title=title or None,
        title_justify="left",
        pad_edge=False,
        header_style="bold" if console.is_terminal else "",
    )
    for position, head in enumerate(heads):
        table.add_column(head, justify="right" if position in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    if is_whole:
        console.print(table, width=PIPE_WIDTH, crop=False, soft_wrap=True)
    else:
        console.print(table, width=None if width is None else min(width, console.width))


def show_words(words: str) -> None:
    """A sentence or two, in lines that can be read."""
    console = output()
    for line in textwrap.wrap(words, min(console.width, READ_WIDTH)):
        console.print(Text(line), soft_wrap=True)


def show_fact(field: str, words: str) -> None:
    """A name and a sentence, which goes on below itself."""
    console = output()
    room = max(20, min(console.width, READ_WIDTH) - _FACT_WIDTH - 1)
    lines = textwrap.wrap(words, room, break_on_hyphens=False) or [""]
    console.print(Text.assemble((f"{field:{_FACT_WIDTH}}", "bold"), " ", lines[0]), soft_wrap=True)
    for line in lines[1:]:
        console.print(Text(f"{'':{_FACT_WIDTH}} {line}"), soft_wrap=True)
