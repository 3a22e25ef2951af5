"""Answers that never end by themselves: known, counted, and ended when the service is."""

from __future__ import annotations

import asyncio
from typing import Any


class Streams:
    """Of one process; used from its event loop alone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self.are_ended = False

    def add(self, task: asyncio.Task[Any]) -> None:
        """This task sends a stream."""
        self._tasks.add(task)
        if self.are_ended:
            task.cancel()

    def remove(self, task: asyncio.Task[Any]) -> None:
        """It does no longer."""
        self._tasks.discard(task)

    def end(self) -> None:
        """All of them, now: whoever follows comes again, and is answered by the next process."""
        self.are_ended = True
        for task in list(self._tasks):
            task.cancel()
