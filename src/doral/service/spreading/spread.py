"""Who of the workers is there, and what is at home where."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from doral.service.spreading.door import Door, Serve
from doral.service.spreading.homes import home_of
from doral.service.spreading.link import Link

_logger = logging.getLogger("doral.service")


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Where a worker is among those of its service.

    Attributes:
        place: Its number, from 0 on.
        of: How many there are.
        folder: That only the service's own user may enter.
    """

    place: int
    of: int
    folder: str

    def path(self, place: int) -> str:
        """Of the socket of the worker at that place."""
        return str(Path(self.folder) / f"worker-{place}")


class Spread:
    """Of one worker."""

    def __init__(self, where: Neighbours) -> None:
        self._where, self.place = where, where.place
        self.links = {place: Link(where.path(place)) for place in range(where.of) if place != where.place}
        self._tasks: list[asyncio.Task[None]] = []
        self._door: Door | None = None

    def alive(self) -> frozenset[int]:
        """Places of this worker, and of those that it can reach."""
        return frozenset((self._where.place, *(place for place, link in self.links.items() if link.is_up)))

    def home(self, name: str) -> int:
        """The place of the worker where this campaign is at home now."""
        return home_of(name, self.alive())

    def will_be_home(self, name: str) -> bool:
        """Whether it is at home here once all workers are there."""
        return home_of(name, range(self._where.of)) == self._where.place

    def home_elsewhere(self, name: str) -> int | None:
        """The same; None where it is at home here."""
        place = self.home(name)
        return None if place == self._where.place else place

    async def open(self, serve: Serve) -> None:
        """Be there for the others. Where that cannot be, all goes on without: each worker serves what comes to it."""
        self._door = Door(self._where.path(self._where.place), serve)
        try:
            await self._door.open()
        except OSError as error:  # such as a name of a folder that is too long for a socket
            _logger.warning("campaigns are not spread over the workers: %s", error)
            self._door = None

    def reach_out(self) -> None:
        """To the others, from now on."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(link.keep_up()) for link in self.links.values()]

    async def close(self) -> None:
        """Come back when all that others have handed on is answered."""
        if self._door is not None:
            await self._door.close()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
