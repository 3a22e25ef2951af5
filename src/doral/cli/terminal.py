"""What is printed for people: framed tables on a terminal, plain columns in a pipe, progress on standard error."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from doral.pages.numbers import count

if TYPE_CHECKING:
    from doral.experiments.kit.batches import Batch

PIPE_WIDTH = 240  # no reader of a pipe has a width; nothing is cut off
READ_WIDTH = 80  # what is read like a page is no wider, on a wide terminal and in a pipe
_LEAST_WORDS = 20  # columns that words need, however narrow the terminal is
_LINE_EVERY = 0.1  # of all work: a line of progress at least so often
_NUMBERS = re.compile(r"\d+")


def output() -> Console:
    """Return where results go."""
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
    """Print a sentence or two, in lines that can be read."""
    console = output()
    for line in textwrap.wrap(words, min(console.width, READ_WIDTH)):
        console.print(Text(line), soft_wrap=True)


def show_pairs(pairs: Iterable[tuple[str, str]], *, left: int, indent: int = 0, style: str = "") -> None:
    """Print names and words in two columns; words that do not fit go on below each other."""
    console = output()
    room = max(_LEAST_WORDS, min(console.width, READ_WIDTH) - indent - left - 2)
    for name, words in pairs:
        for line in textwrap.wrap(words, room, break_on_hyphens=False) or [""]:
            start = (f"{'':{indent}}{name:{left}}  ", style)
            console.print(Text.assemble(start, line), soft_wrap=True)
            name = ""


class Progress:
    """Progress on standard error: a bar on a terminal, otherwise a line now and then.

    It is called with the share that is done and the stage; or it is told of batches of rounds, as experiments do.
    """

    def __init__(self, *, is_quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, markup=False)
        self._writes_lines = not (is_quiet or self._console.is_terminal)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn())
        times = (TimeElapsedColumn(), TextColumn("gone,"), TimeRemainingColumn(), TextColumn("left"))
        is_shown = self._console.is_terminal and not is_quiet
        self.bar = RichProgress(*columns, *times, console=self._console, transient=True, disable=not is_shown)
        self._task = self.bar.add_task("starting", total=None)
        self._started_s = time.monotonic()
        self._stage, self._line_at = "", -1.0
        self._done = self._kept = 0
        self._total = 1
        self._is_kept = False

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def __call__(self, done: float, stage: str) -> None:
        """Show the share that is done, 0 to 1, and what is being done."""
        self.bar.update(self._task, total=1.0, completed=done, description=stage)
        kind = _NUMBERS.sub("", stage)  # "draw 3 of 40" is no new stage after "draw 2 of 40"
        if kind != self._stage or done >= self._line_at + _LINE_EVERY:
            self._stage, self._line_at = kind, done
            self._line(done, stage)

    def begin(self, *, rounds: int) -> None:
        """Once, with the total."""
        self._total = rounds
        self.bar.update(self._task, total=rounds)

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        """Before a batch; one that an earlier call has computed takes no time, and leaves the estimate alone."""
        self._is_kept = is_kept
        self.bar.update(self._task, description=_batch_in_words(batch))
        kept = " (kept from before)" if is_kept else ""
        self._line(self._done / self._total, f"{_batch_in_words(batch)}{kept}")

    def advance(self, rounds: int) -> None:
        """After every run."""
        self._done += rounds
        if self._is_kept:
            self._kept += rounds
            self.bar.update(self._task, total=self._total - self._kept)
        else:
            self.bar.advance(self._task, rounds)

    def _line(self, done: float, words: str) -> None:
        if self._writes_lines:
            seconds = time.monotonic() - self._started_s
            self._console.print(f"{int(100.0 * done):3d}% {seconds:6.1f} s  {words}", soft_wrap=True, markup=False)


def _batch_in_words(batch: Batch) -> str:
    scenario = batch.cell.scenario.name.removeprefix("paper/").replace("@", ", ")
    runs = f"runs {batch.first_run + 1}-{batch.first_run + batch.runs}"
    many = len(batch.policies)
    some = f", {count(many, 'policy', 'policies')}" if many < len(batch.cell.policies) else ""
    return f"{batch.cell.study}, {scenario}, {runs}{some}"
