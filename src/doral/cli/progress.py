"""How far a long command is: a bar on a terminal, a line per batch elsewhere. All of it on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from doral.cli.time_left import TimeLeft, words
from doral.experiments.kit.batches import Batch
from doral.pages.numbers import count


def _describe(batch: Batch) -> str:
    scenario = batch.cell.scenario.name.removeprefix("paper/").replace("@", ", ")
    runs = f"runs {batch.first_run + 1}-{batch.first_run + batch.runs}"
    many = len(batch.policies)
    some = f", {count(many, 'policy', 'policies')}" if many < len(batch.cell.policies) else ""
    return f"{batch.cell.study}, {scenario}, {runs}{some}"


class _Left(ProgressColumn):
    """Our estimate: rich's own takes what was kept from before for speed, and compiling for slowness."""

    def render(self, task: Task) -> Text:
        left: TimeLeft = task.fields["left"]
        return Text(words(left.left_s(time.monotonic())))


class Bar:
    """For a terminal."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        times = (TimeElapsedColumn(), TextColumn("gone,"), _Left(), TextColumn("left"))
        self._bar = RichProgress(*columns, *times, console=console, transient=True)
        self._left = TimeLeft()
        self._is_kept = False
        self._task = self._bar.add_task("starting", total=None, left=self._left)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, *, rounds: int) -> None:
        self._left.begin(work=rounds)
        self._bar.update(self._task, total=rounds)

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        self._is_kept = is_kept
        self._bar.update(self._task, description=_describe(batch))

    def advance(self, rounds: int) -> None:
        self._left.advance(rounds, now_s=time.monotonic(), is_kept=self._is_kept)
        self._bar.advance(self._task, rounds)


class Lines:
    """For a log file or a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started_s = time.monotonic()
        self._total = 1
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, *, rounds: int) -> None:
        self._total = rounds

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        kept = " (kept from before)" if is_kept else ""
        share = 100 * self._done // self._total
        seconds = time.monotonic() - self._started_s
        self._console.print(f"{share:3d}% {seconds:6.1f} s  {_describe(batch)}{kept}", soft_wrap=True)

    def advance(self, rounds: int) -> None:
        self._done += rounds


def progress() -> Bar | Lines:
    """What fits where standard error goes."""
    console = Console(stderr=True, highlight=False, markup=False)
    return Bar(console) if console.is_terminal else Lines(console)
