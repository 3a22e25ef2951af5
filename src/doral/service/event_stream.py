"""Following a campaign: one look at its log for all who listen in this process, and a signal when there is more.

Listeners read the log themselves, page by page, as fast as they can send: nothing is queued for those who are slow.
What this process stores nudges the follower; what others write is found by looking now and then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from doral.errors import DoralError, UnknownName
from doral.live.errors import CampaignGone
from doral.live.events import row as kinds
from doral.live.events.event import (
    STATE_NAMES,
    Answered,
    ArmAdded,
    ArmChanged,
    Corrected,
    Deciding,
    Event,
    Expired,
    Extended,
    Forgotten,
    Leased,
    LeaseEnded,
    Recorded,
    Settled,
    ToppedUp,
)
from doral.live.state.parts import Names, make_id
from doral.live.views.decision import SHORT
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


class OwningStream(StreamingResponse):
    """Gives back what it holds, however it ends: even where nobody takes the first byte of it."""

    def __init__(
        self,
        content: AsyncIterator[bytes],
        stack: AsyncExitStack,
        *,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(content, headers=headers, media_type=media_type)
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            await super().__call__(scope, receive, send)


KIND_WORDS = {
    kinds.CREATED: "created",
    kinds.DECIDED: "decided",
    kinds.ANSWERED: "answered",
    kinds.CORRECTED: "corrected",
    kinds.CANCELLED: "cancelled",
    kinds.EXPIRED: "expired",
    kinds.ARM_ADDED: "arm added",
    kinds.ARM_PAUSED: "arm paused",
    kinds.ARM_RESUMED: "arm resumed",
    kinds.ARM_RETIRED: "arm retired",
    kinds.TOPPED_UP: "topped up",
    kinds.EXTENDED: "extended",
    kinds.PAUSED: "paused",
    kinds.RESUMED: "resumed",
    kinds.CLOSED: "closed",
    kinds.ENGINE_JOINED: "engine joined",
    kinds.RECORDED: "recorded",
    kinds.CLOCK_SET: "clock set back",
    kinds.FORGOTTEN: "forgotten",
    kinds.NOTED: "noted",
    kinds.LEASED: "leased",
    kinds.LEASE_ENDED: "lease ended",
}


def told(event: Event, names: Names) -> dict[str, Any]:
    """The facts of an event; what it does not say is left out."""
    place = event.place
    found: dict[str, Any] = {
        "sequence": event.sequence,
        "kind": KIND_WORDS.get(event.kind, str(event.kind)),
        "written_at": place.at,
        "at": names.epoch + names.own_time(event),
        "key": None if place.key is None else place.key[2:],
        **_facts(event, names),
    }
    return {name: value for name, value in found.items() if value is not None}


def _facts(event: Event, names: Names) -> dict[str, Any]:
    if isinstance(event, Deciding):
        return _of_decision(event, names)
    if isinstance(event, Settled):
        return _of_outcome(event, names)
    if isinstance(event, ToppedUp):
        return {"amount": event.amount}
    if isinstance(event, Extended):
        return {"rounds": event.rounds, "until": None if event.until is None else names.epoch + event.until}
    if isinstance(event, ArmAdded):
        return {"arm": event.arm.name}
    if isinstance(event, ArmChanged):
        return {"arm": names.arms[event.arm]}
    if isinstance(event, Expired):
        return {"decisions": event.n_decisions, "is_released": bool(event.is_released)}
    if isinstance(event, Forgotten):
        return {"keys": len(event.keys)}
    if isinstance(event, Leased):
        return {"amount": float(event.amount)}
    if isinstance(event, LeaseEnded):
        return {"amount": float(event.left), "why": event.why}
    return {}


def _of_decision(event: Deciding, names: Names) -> dict[str, Any]:
    choice = event.choice
    found = {
        "context": names.contexts[event.arrival.context],
        "arm": _arm(choice.arm, names),
        "decision_id": make_id(names.tag, event.sequence),
        "reason": SHORT.get(choice.reason, str(choice.reason)),
        "state": STATE_NAMES[event.state_then],
    }
    numbers = {name: getattr(choice, name) for name in ("cost", "round", "value", "price", "probability")}
    return {**found, **numbers, **({"cost": event.list_cost} if isinstance(event, Recorded) else {})}


def _of_outcome(event: Settled, names: Names) -> dict[str, Any]:
    about = event.about
    found = {
        "context": names.contexts[about.context],
        "arm": _arm(about.arm, names),
        "decision_id": make_id(names.tag, about.decision),
        "reason": SHORT.get(about.reason, str(about.reason)),
        "state": STATE_NAMES[event.settlement.state],
        "cost": about.cost,
        "actual_cost": event.settlement.actual_cost,
    }
    if isinstance(event, Answered | Corrected):
        found |= {"reward": event.reward, "delay": event.delay}
    if isinstance(event, Corrected):
        found["previous"] = event.previous
    return found


def _arm(arm: int | None, names: Names) -> str | None:
    return None if arm is None or arm == names.nothing else names.arms[arm]
