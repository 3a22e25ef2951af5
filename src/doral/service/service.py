"""What all requests of one process share: the store, a write queue for each campaign, keys, counts."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Depends, Request

from doral.engine.explain import view_forecast
from doral.errors import DoralError, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import CampaignGone
from doral.live.events.event import ARM_STATUS_NAMES, IS_PENDING
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.store import Store
from doral.service.access.entrance import Entrance
from doral.service.access.keys import calling
from doral.service.event_stream import Following
from doral.service.exporting import Exports
from doral.service.operations.metrics import Metrics, briefly
from doral.service.responses import iso
from doral.service.settings import ServiceSettings
from doral.service.write_queue import WriteQueue


def summary(name: str, now: CampaignState) -> dict[str, Any]:
    """Members of `models.campaigns.Summary`."""
    engine, ledger = now.engine, now.ledger
    ahead = view_forecast(engine.state)
    return {
        "name": name,
        "created_at": now.definition.created_at,
        "created_at_iso": iso(now.definition.created_at),
        "state": now.stage,
        "policy": now.definition.policy.name,
        "clock": now.definition.clock,
        "events": now.sequence,
        "arrivals": now.round,
        "horizon": engine.horizon if ahead is None else now.round + round(ahead.expected),
        "ends_at": None if engine.until is None else now.definition.epoch + engine.until,
        "ends_at_iso": None if engine.until is None else iso(now.definition.epoch + engine.until),
        "total": float(ledger.total),
        "spent": float(ledger.spent),
        "reserved": float(ledger.reserved),
        "left": float(ledger.left),
        "reward": float(now.counts.reward),
        "pending": now.counts.states[IS_PENDING],
    }


def shown(campaign: Campaign) -> dict[str, Any]:
    """Members of `models.campaigns.CampaignShown`."""

    def look(_: Log, now: CampaignState) -> dict[str, Any]:
        definition = now.definition
        statuses = zip(now.problem.arm_names, now.arms.status, strict=True)
        return {
            "name": campaign.name,
            "summary": summary(campaign.name, now),
            "problem": now.problem.to_dict(),
            "policy": definition.policy.to_dict(),
            "seed": definition.seed,
            "clock": definition.clock,
            "created_at": definition.created_at,
            "created_at_iso": iso(definition.created_at),
            "arms": [{"name": name, "status": ARM_STATUS_NAMES[status]} for name, status in statuses],
            "engine": definition.engine,
        }

    return campaign.session.read(look)


Result = TypeVar("Result")
_THREADS = 16
_THREADS_PER_KEY = 1  # that the requests of one key use at once, beside those that store something
_REST = 2.0  # as long again, and twice, a key rests after a read while others store: they wait for the same processor
_SHORT_S = 0.002  # a read that needs no rest
_STORING_S = 1.0
_DOORS = 2  # threads that look keys up: whoever keeps all others busy keeps nobody out
_WRITERS = 32  # campaigns that store something at once; a slow one keeps no other from its turn
_FOREVER_S = 3_600.0
_SUMMARIES_S = 0.5  # that a list of campaigns takes at most, but for the one that is being read
_KEPT_OPEN_FILES = 300  # campaigns in one SQLite file: each takes three files, and half a megabyte of memory or more
_CONNECTIONS = 30  # of one process: PostgreSQL has 100 for everybody, unless told otherwise
_FEWEST_OPEN = 8
_MOST_LISTED = 100  # campaigns of a list that stay open, where each has a connection of its own
_FILES_PER_CAMPAIGN = 12  # of those that a process may open: three are used, and others are for connections


class Service:
    """One process's service. Nothing here blocks the event loop: whatever reads or writes runs in a thread."""

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store, self.settings = store, settings
        if (kept := kept_open(settings)) is not None:
            store._keep_open(kept)
        self.metrics = Metrics()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="doral")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="doral-write")
        self._doors = ThreadPoolExecutor(_DOORS, thread_name_prefix="doral-keys")
        self._audits = ThreadPoolExecutor(1, thread_name_prefix="doral-verify")
        self.entrance = Entrance(store.books, settings, self._look_up)
        self.following = Following(most=settings.limits.streams)
        self.exports = Exports(lambda: self.is_storing)
        self._queues: dict[str, WriteQueue] = {}
        self._stored_at = -_STORING_S
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()  # by key
        self._trying: asyncio.Future[None] | None = None

    async def run(self, work: Callable[[], Result]) -> Result:
        """Something that takes a while, in a thread; of one key only a few at a time."""
        async with self._turn():
            return await self._run(work)

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A turn among the requests of the key that this one came with: no key can keep all threads busy."""
        key_id = calling.get()
        if key_id is None:
            yield
            return
        turns = self._turns.get(key_id)
        if turns is None:
            turns = self._turns[key_id] = asyncio.Semaphore(_THREADS_PER_KEY)
        await turns.acquire()
        began = time.monotonic()
        try:
            yield
        finally:
            rest_s = _REST * (time.monotonic() - began) if self.is_storing else 0.0
            if rest_s > _SHORT_S:
                asyncio.get_running_loop().call_later(rest_s, turns.release)
            else:
                turns.release()

    @property
    def is_storing(self) -> bool:
        """Whether something was stored within the last second: readers then leave time to writers."""
        return time.monotonic() - self._stored_at < _STORING_S

    async def _look_up(self, work: Callable[[], Result]) -> Result:
        """The same for keys, which every request needs."""
        return await asyncio.get_running_loop().run_in_executor(self._doors, work)

    async def _store(self, work: Callable[[], Result]) -> Result:
        """The same for what write queues store: readers do not wait for those that wait for a disk or a lock."""
        self._stored_at = time.monotonic()
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def run_long(self, work: Callable[[], Result]) -> Result:
        """The same for what may take minutes, such as reading a whole log: one after the other, beside all else."""
        return await asyncio.get_running_loop().run_in_executor(self._audits, work)

    async def queue(self, name: str) -> WriteQueue:
        """Where requests about one campaign are handed in; UnknownName where there is none."""
        found = self._queues.get(name)
        if found is None or found.campaign.is_gone:
            campaign = await self.run(lambda: self.store.campaign(name))
            self._queues = {one: queue for one, queue in self._queues.items() if not queue.campaign.is_gone}
            found = self._queues.get(name)  # others may have asked meanwhile
            if found is None or found.campaign is not campaign:
                found = self._queues[name] = WriteQueue(
                    campaign,
                    self._run,
                    self.metrics,
                    turn=self._turn,
                    store=self._store,
                    queue=self.settings.limits.queue,
                    when_stored=lambda: self.following.nudge(name),
                )
        return found

    @property
    def campaigns(self) -> list[Campaign]:
        """That somebody has asked for here."""
        return [queue.campaign for queue in self._queues.values()]

    async def follow(self, name: str, whose: str) -> AsyncIterator[int]:
        """The number of the last event, now and whenever there are more, for somebody with the key of this id."""
        queue = await self.queue(name)
        seen = -1
        async with self.following.listen(name, lambda: queue.read(last_event), whose) as follower:
            while follower.ended is None:
                last = await queue.read(last_event) if seen < 0 else follower.last
                if last > seen:
                    seen = last
                    yield last
                await follower.wait(beyond=seen, within_s=_FOREVER_S)

    async def summaries(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Of campaigns, as far as that is quick: what is not read says no more than its name."""
        return await self.run(lambda: self._summaries(names, time.monotonic() + _SUMMARIES_S))

    def _summaries(self, names: Sequence[str], until: float) -> list[dict[str, Any]]:
        found = []
        of = 0 if self.store._shares_connections else len(names)  # there, states are kept as far as memory goes
        for name in names:
            one: dict[str, Any] | None = None
            if time.monotonic() < until:
                one = self._summary(name, of=of)
            elif (queue := self._queues.get(name)) is not None and (
                state := queue.campaign.session.last_seen
            ) is not None:
                one = summary(name, state)
            found.append({"name": name} if one is None else one)
        return found

    def _summary(self, name: str, *, of: int) -> dict[str, Any] | None:
        """None where it cannot be read. A long list keeps none open that was not: others would be closed for it."""
        try:
            with briefly(self.store, name, of=of, most=_MOST_LISTED) as campaign:
                return campaign.session.read(lambda _, state: summary(name, state))
        except DoralError:
            return None

    async def try_store(self) -> None:
        """StorageError where the store cannot be used. Anybody may ask for this: however many do, it is done once."""
        if self._trying is None:
            self._trying = asyncio.ensure_future(self.run(self._try_store))
            self._trying.add_done_callback(self._tried)
        await asyncio.shield(self._trying)

    def _tried(self, done: asyncio.Future[None]) -> None:
        self._trying = None
        if not done.cancelled():
            done.exception()  # whoever waits for it is told; all of them may have gone away

    def _try_store(self) -> None:
        name = next(iter(self._queues), None) or next(iter(self.store.list()), None)
        if name is not None:
            try:
                self.store.campaign(name).session.try_to_write()
            except (UnknownName, CampaignGone):  # deleted meanwhile: the store was asked all the same
                self._queues.pop(name, None)

    async def drain(self) -> None:
        """Come back when everything that was handed in is stored."""
        for queue in list(self._queues.values()):
            await queue.drain()

    def close(self) -> None:
        """After the last request."""
        self._writers.shutdown(wait=True)
        self._doors.shutdown(wait=True)
        self._audits.shutdown(wait=True, cancel_futures=True)
        self.threads.shutdown(wait=True)
        self.store.close()


def kept_open(settings: ServiceSettings) -> int | None:
    """How many campaigns one process keeps open, or with PostgreSQL how many it uses at one moment; None: all."""
    if settings.storage.startswith("memory:"):
        return None
    if not settings.storage.startswith("sqlite:"):
        return _CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = _KEPT_OPEN_FILES if most == resource.RLIM_INFINITY else most // _FILES_PER_CAMPAIGN
    return max(_FEWEST_OPEN, min(_KEPT_OPEN_FILES, few))


def last_event(campaign: Campaign) -> int:
    """The number of the last event of a campaign."""
    return campaign.session.read(lambda _, state: state.sequence)


def service_of(request: Request) -> Service:
    """The service of an application."""
    found: Service = request.app.state.service
    return found


async def _shared(request: Request) -> Service:
    """`service_of` as a dependency: one that is not awaited would be called in a thread."""
    return service_of(request)


Shared = Annotated[Service, Depends(_shared)]
