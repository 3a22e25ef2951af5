"""A worker's line to another: requests that it hands on, and what comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from doral.service.spreading.frames import ANSWER, ASK, FAILED, PART, PING, REFUSED, Broken, Frame, Reader, packed

MOST_UNDER_WAY = 4_096  # requests; those beyond are served where they came
_LOOK_S = 1.0
_SILENT_S = 5.0  # without a sign of life while something is under way: whoever is there answers a ping at once
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


class NotTaken(Exception):
    """The other has done nothing with the request, and never will."""


class AnswerLost(Exception):
    """The other has ended, or is silent: whether it has served the request is not known."""


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._answers: dict[int, asyncio.Future[Frame]] = {}
        self._parts: dict[int, list[bytes]] = {}  # of answers that are not whole yet
        self._heard_at = time.monotonic()
        self._next = 0
        self._loop = asyncio.get_running_loop()
        self._look: asyncio.TimerHandle | None = None
        self._said = asyncio.Event()  # anything, or that it ends
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @property
    def under_way(self) -> int:
        return len(self._answers)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def is_answered(self) -> bool:
        """Whether somebody is at the other end: the system takes connections also for a process that is stopped."""
        self._transport.write(packed(PING, 0))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._said.wait(), _SILENT_S)
        return self._said.is_set() and not self.lost.done()

    def data_received(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        self._said.set()
        try:
            for frame in self._reader.read(data):
                self._take(frame)
        except Broken:
            self._transport.abort()

    def _take(self, frame: Frame) -> None:
        waiting = self._answers.get(frame.number)
        if waiting is None or waiting.done():  # whoever asked has gone away
            return
        if frame.kind == PART:
            self._parts.setdefault(frame.number, []).append(frame.body)
        elif frame.kind in (ANSWER, REFUSED, FAILED):
            waiting.set_result(frame._replace(body=b"".join((*self._parts.pop(frame.number, ()), frame.body))))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._look is not None:
            self._look.cancel()
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(AnswerLost())
        self._answers = {}
        if not self.lost.done():
            self.lost.set_result(None)
        self._said.set()

    async def ask(self, head: Sequence[bytes], body: bytes) -> Frame:
        if self.lost.done() or self._transport.is_closing() or self.under_way >= MOST_UNDER_WAY:
            raise NotTaken
        number, self._next = self._next, self._next + 1
        try:
            data = packed(ASK, number, head, body)
        except Broken:
            raise NotTaken from None
        waiting: asyncio.Future[Frame] = self._loop.create_future()
        if not self._answers:
            self._heard_at = time.monotonic()
        self._answers[number] = waiting
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_S, self._see_whether_there)
        self._transport.write(data)
        try:
            return await waiting
        finally:
            self._answers.pop(number, None)
            self._parts.pop(number, None)

    def _see_whether_there(self) -> None:
        self._look = None
        if not self._answers:
            return
        silent_s = time.monotonic() - self._heard_at
        if silent_s > _SILENT_S:
            self._transport.abort()
            return
        if silent_s > _LOOK_S / 2:
            self._transport.write(packed(PING, 0))
        self._look = self._loop.call_later(_LOOK_S, self._see_whether_there)

    def close(self) -> None:
        self._transport.close()


class Link:
    """To one other worker, made again whenever it breaks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._line: _Line | None = None

    @property
    def is_up(self) -> bool:
        """Whether the other is there, as far as is known."""
        return self._line is not None

    async def keep_up(self) -> None:
        """For ever."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while True:
            with suppress(OSError):
                _, line = cast("tuple[Any, _Line]", await loop.create_unix_connection(_Line, self._path))
                try:
                    if await line.is_answered():
                        self._line, pause_s = line, _FIRST_PAUSE_S
                        await asyncio.shield(line.lost)
                finally:
                    self._line = None
                    line.close()
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 2.0 * pause_s)

    async def ask(self, head: Sequence[bytes], body: bytes) -> Frame:
        """What the other answers: ANSWER, or FAILED. NotTaken or AnswerLost where it does not."""
        line = self._line
        if line is None:
            raise NotTaken
        frame = await line.ask(head, body)
        if frame.kind == REFUSED:
            raise NotTaken
        return frame
