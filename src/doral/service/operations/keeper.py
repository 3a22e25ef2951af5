"""Watches all campaigns, every now and then: alarms, and decisions that are too old.

Where there are more campaigns than there is time for, those that have moved come first. Each of several replicas has a
keeper: what they raise is the same, and the store raises it once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator

from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.kinds.expire import overdue
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.service.operations.briefly import briefly
from doral.service.operations.scraped import standings
from doral.service.operations.watching import Watched
from doral.service.service import Service

_ROUND_S = 5.0  # in which campaigns are looked at; the others have their turn in the next round
_MOST_WATCHED = 2_000  # campaigns of which something is remembered
_DAY_S = 86_400.0

_logger = logging.getLogger("doral.service")


class _Turns:
    """Who is next. Half of the time belongs to those that are new, or have moved since they were last looked at."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self._seen: dict[str, int] = {}

    def next(self, heads: dict[str, int], has_time: Callable[[], bool]) -> Iterator[str]:
        """Names, each at most once, as long as there is time.

        Args:
            heads: The last event of each campaign.
            has_time: Whether there is.
        """
        self._seen = {name: last for name, last in self._seen.items() if name in heads}
        if not self.waiting:
            self.waiting.extend(heads)
        moved = deque(name for name, last in heads.items() if self._seen.get(name) != last)
        taken: set[str] = set()
        while (self.waiting or moved) and has_time():
            queue = moved if moved and (len(taken) % 2 or not self.waiting) else self.waiting
            name = queue.popleft()
            if name in taken or name not in heads:
                continue
            taken.add(name)
            self._seen[name] = heads[name]
            yield name


class Keeper:
    """Of one process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: dict[str, Watched] = {}
        self._to_watch, self._to_expire = _Turns(), _Turns()
        self._swept_at = 0.0
        self._is_stopped = False

    async def watch(self) -> None:
        """For ever."""
        await self._every(self._service.settings.watch_every_s, self.watch_once)

    async def expire(self) -> None:
        """For ever, unless that was not wanted."""
        every_s = self._service.settings.expire_every_s
        if every_s > 0:
            await self._every(every_s, self.expire_once)

    async def _every(self, seconds: float, work: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._service.run(work)
            except DoralError as error:
                _logger.warning("campaigns could not be looked after: %s", error)
            except Exception:  # whatever it is, the next round comes
                _logger.exception("campaigns could not be looked after")

    def stop(self) -> None:
        """Look at no further campaign."""
        self._is_stopped = True

    # --- rounds, in a thread ----------------------------------------------------------------------------------------

    def watch_once(self) -> None:
        """Alarms of as many campaigns as there is time for."""
        now = time.time()
        if now - self._swept_at > _DAY_S / 24:
            self._swept_at = now
            self._service.store.books.drop_sessions(expired_before=now - _DAY_S)
        self._clear_alarms_of_the_gone(now)
        self._round(self._to_watch, self._watch)

    def expire_once(self) -> None:
        """Settle what is too old in as many campaigns as there is time for."""
        self._round(self._to_expire, _expire)

    def _round(self, turns: _Turns, work: Callable[[Campaign], None]) -> None:
        store, until = self._service.store, time.monotonic() + _ROUND_S
        heads = store._heads()
        for name in turns.next(heads, lambda: time.monotonic() < until and not self._is_stopped):
            try:
                with briefly(store, name, of=len(heads)) as campaign:
                    work(campaign)
            except DoralError as error:
                _logger.warning("campaign %r could not be looked after: %s", name, error)

    def _watch(self, campaign: Campaign) -> None:
        watched = self._watched.pop(campaign.name, None)
        if watched is None or not watched.is_of(campaign):
            watched = Watched(campaign, self._service.store.books)
        self._watched[campaign.name] = watched  # the last one, so that the first is the one that waited longest
        while len(self._watched) > _MOST_WATCHED:
            del self._watched[next(iter(self._watched))]
        watched.look(time.time())
        state = campaign.session.last_seen
        if state is not None:
            standings(self._service.store).note(campaign.name, state)

    def _clear_alarms_of_the_gone(self, now: float) -> None:
        """Nobody can look after a campaign that was deleted."""
        books, there = self._service.store.books, set(self._service.store.list())
        for row in books.alarms():
            if row.campaign not in there:
                books.clear_alarm(row.campaign, row.rule, row.subject, now)
                self._watched.pop(row.campaign, None)


def _expire(campaign: Campaign) -> None:
    def is_due(log: Log, state: CampaignState) -> bool:
        in_seconds = state.definition.is_in_seconds
        now = max(state.clock, time.time() - state.definition.epoch) if in_seconds else state.clock
        return bool(overdue(log, state, now)[2])

    if campaign.session.read(is_due):  # only then is the campaign locked
        count = campaign.expire()
        _logger.info("campaign %r: %d decisions have expired", campaign.name, count)
