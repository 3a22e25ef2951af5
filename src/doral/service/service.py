"""What all requests of one process share: the store, a desk for each campaign, keys, counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import Request

from doral.live.store import Store
from doral.service.access.entrance import Entrance
from doral.service.desk import Desk
from doral.service.operations.metrics import Metrics
from doral.service.settings import ServiceSettings

Result = TypeVar("Result")
_THREADS = 16
_POLL_S = 0.5


class Service:
    """One process's service. Nothing here blocks the event loop: whatever reads or writes runs in a thread."""

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store, self.settings = store, settings
        self.metrics = Metrics()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="doral")
        self.entrance = Entrance(store.books, settings, self.run)
        self._desks: dict[str, Desk] = {}

    async def run(self, work: Callable[[], Result]) -> Result:
        """Something that takes a while, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    async def desk(self, name: str) -> Desk:
        """Where requests about one campaign are handed in; UnknownName where there is none."""
        found = self._desks.get(name)
        if found is None or found.campaign.is_gone:
            campaign = await self.run(lambda: self.store.campaign(name))
            found = self._desks[name] = Desk(campaign, self.run, self.metrics)
        return found

    async def follow(self, name: str) -> AsyncIterator[int]:
        """The number of the last event, now and whenever there are more."""
        desk = await self.desk(name)
        seen = -1
        while True:
            last = await desk.read(lambda campaign: campaign.session.read(lambda _, fold: fold.sequence))
            if last != seen:
                seen = last
                yield last
            await asyncio.sleep(_POLL_S)

    def close(self) -> None:
        """After the last request."""
        self.threads.shutdown(wait=True)
        self.store.close()


def service_of(request: Request) -> Service:
    """A dependency of routes."""
    found: Service = request.app.state.service
    return found
