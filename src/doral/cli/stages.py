"""How far a plan is: a bar on a terminal, a line per stage elsewhere, or nothing. All of it on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

_STEP = 0.1  # of all: a line at least so often


class Stages:
    """Called with the share that is done, 0 to 1, and what is being done."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._is_quiet = is_quiet
        self._bar: RichProgress | None = None
        self._started_s = time.monotonic()
        self._stage, self._told = "", -1.0

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._is_quiet:
            bar = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._bar = RichProgress(*bar, console=self._console, transient=True)
            self._task = self._bar.add_task("starting", total=1.0)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: float, stage: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=escape(stage))
        elif not self._is_quiet and (stage != self._stage or done >= self._told + _STEP):
            self._stage, self._told = stage, done
            seconds = time.monotonic() - self._started_s
            self._console.print(f"{100.0 * done:3.0f}% {seconds:6.1f} s  {stage}", soft_wrap=True, markup=False)
