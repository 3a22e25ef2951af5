"""Following a campaign: one look at its log for all who listen in this process, and a signal when there is more.

Listeners read the log themselves, page by page, as fast as they can send: nothing is queued for those who are slow.
What this process stores nudges the follower; what others write is found by looking now and then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from doral.errors import DoralError, UnknownName
from doral.live.errors import CampaignGone
from doral.wire.problems import ServiceError

logger = logging.getLogger("doral.service")

POLL_S = 0.5
_AT_MOST_EVERY_S = 0.05  # however many requests come
_RETRY_S = 5.0

ReadLast = Callable[[], Awaitable[int]]


class Follower:
    """Of one campaign. `last` is the number of its last event that is known here."""

    def __init__(self, read_last: ReadLast, poll_s: float) -> None:
        self.last = 0
        self.ended: str | None = None  # why there will be no more
        self.listeners = 0
        self._read_last, self._poll_s = read_last, poll_s
        self._changed = asyncio.Event()
        self._nudged = asyncio.Event()
        self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while self.ended is None:
            began = time.monotonic()
            try:
                last = await self._read_last()
            except (CampaignGone, UnknownName):
                self.end("deleted")
                return
            except DoralError:  # the store cannot be read now: it is tried again
                last = self.last
            except Exception:
                logger.exception("a campaign cannot be followed any more")
                self.end("failed")
                return
            if last != self.last:
                self.last = last
                self._tell()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), self._poll_s)
            self._nudged.clear()
            await asyncio.sleep(max(0.0, _AT_MOST_EVERY_S - (time.monotonic() - began)))

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def nudge(self) -> None:
        """There may be more."""
        self._nudged.set()

    def end(self, why: str) -> None:
        """There will be no more."""
        if self.ended is None:
            self.ended = why
            self._tell()

    async def wait(self, beyond: int, within_s: float) -> None:
        """Until there are events beyond this one, it is over, or the time is."""
        until = time.monotonic() + within_s
        while self.last <= beyond and self.ended is None and (left := until - time.monotonic()) > 0.0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)

    async def stop(self) -> None:
        """Nobody listens any more."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


class Following:
    """The followers of one process; used from its event loop alone."""

    def __init__(self, *, most: int, poll_s: float = POLL_S) -> None:
        self._most, self._poll_s = most, poll_s
        self._most_of_one = max(1, most - most // 4)  # of one key: others still have some
        self._of_each: Counter[str] = Counter()
        self._followers: dict[str, Follower] = {}
        self._listeners = 0
        self._is_ending = False

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return self._listeners

    @asynccontextmanager
    async def listen(self, name: str, read_last: ReadLast, whose: str) -> AsyncIterator[Follower]:
        """The follower of a campaign; ServiceError where there are too many streams.

        Args:
            name: Of the campaign.
            read_last: Finds the number of its last event.
            whose: The id of the key that listens.
        """
        if self._is_ending:
            raise ServiceError("the service is being stopped", "stopping", 503, _RETRY_S)
        if self._listeners >= self._most:
            words = f"{self._most:,} event streams are open, and there may be no more: close some, or try again later"
            raise ServiceError(words, "too-many-streams", 503, _RETRY_S)
        if self._of_each[whose] >= self._most_of_one:
            words = f"{self._most_of_one:,} event streams of key {whose} are open: close some, or try again later"
            raise ServiceError(words, "too-many-streams", 503, _RETRY_S)
        follower = self._followers.get(name)
        if follower is None or follower.ended is not None:
            follower = self._followers[name] = Follower(read_last, self._poll_s)
        follower.listeners += 1
        self._listeners += 1
        self._of_each[whose] += 1
        try:
            yield follower
        finally:
            self._listeners -= 1
            self._of_each[whose] -= 1
            if not self._of_each[whose]:
                del self._of_each[whose]
            follower.listeners -= 1
            if follower.listeners == 0:
                if self._followers.get(name) is follower:
                    del self._followers[name]
                await follower.stop()

    def nudge(self, name: str) -> None:
        """This process has stored something in a campaign."""
        follower = self._followers.get(name)
        if follower is not None:
            follower.nudge()

    def end(self) -> None:
        """All streams, at once: whoever listens comes again, and goes on where he was."""
        self._is_ending = True
        for follower in list(self._followers.values()):
            follower.end("stopping")

    async def close(self) -> None:
        """After the last request."""
        self.end()
        for follower in list(self._followers.values()):
            await follower.stop()
