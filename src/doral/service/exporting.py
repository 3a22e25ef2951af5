"""A file on its way: a thread of its own writes it, the connection takes it, and neither gets ahead of the other.

The thread is none of those that requests share: whoever takes an hour for a file keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, BinaryIO, cast

from doral.live.campaign import Campaign
from doral.live.errors import StorageError
from doral.live.views.export import write_csv_rows, write_parquet_rows
from doral.person import Feature
from doral.wire.problems import ServiceError

MOST = 8  # at once
_PARTS_AHEAD = 4
_PART_BYTES = 256 * 1024
_STALLED_S = 120.0  # after which nobody is waited for who takes nothing
_RETRY_S = 10.0
_REST, _REST_AFTER_S = 2.0, 0.005  # seconds of rest for each second of work, and after how much
_CHECK_EVERY_S = 1.0  # whether the key is still valid


class _Stopped(Exception):
    """Nobody takes the file any more."""


class _Parts(io.RawIOBase):
    """What is written in a thread, handed to the event loop in parts; `None` is the end, an error is a bad one."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, when_stalled: Callable[[], None], is_storing: Callable[[], bool]
    ) -> None:
        self.is_stopped = False
        self._when_stalled = when_stalled
        self.queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(_PARTS_AHEAD)
        self._loop, self._collected = loop, bytearray()
        self._is_storing, self._used_s = is_storing, 0.0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._collected += data
        used_s = time.thread_time() - self._used_s
        if used_s > _REST_AFTER_S:
            if self._is_storing():  # others wait for the same processor
                time.sleep(_REST * used_s)
            self._used_s += used_s
        if len(self._collected) >= _PART_BYTES:
            self._hand_over()
        return len(memoryview(data).cast("B"))

    def _hand_over(self) -> None:
        if self._collected:
            part, self._collected = bytes(self._collected), bytearray()
            self._put(part)

    def _put(self, part: bytes | BaseException | None) -> None:
        if self.is_stopped:
            raise _Stopped
        put = asyncio.run_coroutine_threadsafe(self.queue.put(part), self._loop)
        try:
            put.result(_STALLED_S)
        except TimeoutError:
            put.cancel()
            self._loop.call_soon_threadsafe(self._break_off)
            raise _Stopped from None

    def run(self, write: Callable[[BinaryIO], None]) -> None:
        """In a thread: the whole file."""
        end: BaseException | None = None
        try:
            write(cast(BinaryIO, self))
            self._hand_over()
        except _Stopped:
            return
        except BaseException as error:  # noqa: BLE001  (whoever takes the file raises it)
            end = error
        if not self.is_stopped:
            try:
                self._put(end)
            except (_Stopped, RuntimeError):  # nobody is there any more, nor is the loop
                return

    def _break_off(self) -> None:
        """On the event loop: whoever took nothing for so long, and goes on now, is told that no more comes."""
        if not self.is_stopped:
            self.stop()
            self.queue.put_nowait(StorageError(f"nothing was taken for {_STALLED_S:.0f} s"))
            self._when_stalled()

    def stop(self) -> None:
        """From the event loop: nobody takes it any more."""
        self.is_stopped = True
        while not self.queue.empty():  # what waits to be put can go on, and finds out
            self.queue.get_nowait()


class Exports:
    """The files that one process is sending."""

    def __init__(self, is_storing: Callable[[], bool] = lambda: False) -> None:
        """`is_storing`: whether writers need the processor; files are then written more slowly."""
        self.running, self._is_storing = 0, is_storing

    @asynccontextmanager
    async def sending(
        self,
        campaign: Campaign,
        person: Sequence[Feature],
        format: str,  # noqa: A002
        is_allowed: Callable[[], Awaitable[bool]],
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The parts of a file. What is wrong from the start is raised before there is a part.

        Args:
            campaign: Whose decisions.
            person: What is known of people there.
            format: "csv" or "parquet".
            is_allowed: Whether the caller may still have it; asked about once a second.
        """
        if self.running >= MOST:
            words = f"{MOST} files are being sent, and there may be no more: try again later"
            raise ServiceError(words, "too-many-exports", 503, _RETRY_S)
        holds_place = True

        def give_place_back() -> None:
            nonlocal holds_place
            self.running -= holds_place
            holds_place = False

        parts = _Parts(asyncio.get_running_loop(), give_place_back, self._is_storing)

        def write(file: BinaryIO) -> None:
            if format == "csv":
                write_csv_rows(file, campaign.decisions(), has_header=True, person=person)
            else:
                write_parquet_rows(file, campaign.decisions(), person=person)

        self.running += 1
        try:
            threading.Thread(target=parts.run, args=(write,), name="doral-export", daemon=True).start()
            first = await parts.queue.get()
            if isinstance(first, BaseException):
                raise first
            yield _following(first, parts, is_allowed)
        finally:
            give_place_back()
            parts.stop()


async def _following(
    first: bytes | None, parts: _Parts, is_allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    part: bytes | BaseException | None = first
    checked_at = time.monotonic()
    while part is not None:
        if time.monotonic() > checked_at + _CHECK_EVERY_S:
            checked_at = time.monotonic()
            if not await is_allowed():
                raise StorageError("the key of an export was revoked or has expired: the file was broken off")
        if isinstance(part, BaseException):
            # The answer has begun: all that is left is to break it off, which whoever takes it sees.
            raise StorageError("a file could not be sent to its end") from part
        yield part
        part = await parts.queue.get()
