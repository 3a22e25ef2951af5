"""What is printed for people: framed tables on a terminal, plain columns in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240  # no reader of a pipe has a width; nothing is cut off


def output() -> Console:
    """Where results go."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str | Text]], *, numbers: Sequence[int] = (), title: str = ""
) -> None:
    """Print a table; `numbers` are the columns that are aligned to the right."""
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
    console.print(table)
