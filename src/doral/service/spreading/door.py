"""Where a worker takes what others hand on to it: a socket in a folder that only the service's own user may enter."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from doral.service.spreading.frames import (
    ASK,
    FAILED,
    PING,
    PONG,
    REFUSED,
    Broken,
    Frame,
    Reader,
    packed,
    packed_answer,
)

Served = tuple[list[bytes], bytes]  # head and body of an answer
Serve = Callable[[tuple[bytes, ...], bytes], Awaitable[Served]]
_PEER = struct.Struct("3i")  # process, user, group

_logger = logging.getLogger("doral.service")


class Door:
    """Of one worker.

    Args:
        path: Of the socket; what is left there from a worker before this one is removed.
        serve: Answers a request.
    """

    def __init__(self, path: str, serve: Serve) -> None:
        self._path, self._serve = path, serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._visitors: set[_Visitor] = set()
        self._server: asyncio.AbstractServer | None = None
        self.is_closing = False

    async def open(self) -> None:
        """From now on others hand on what is at home here."""
        with suppress(FileNotFoundError):
            Path(self._path).unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(self._path)
            Path(self._path).chmod(0o600)  # before it listens: whatever the folder is, nobody else may ever connect
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(lambda: _Visitor(self), sock=listening)
        except BaseException:
            listening.close()
            raise

    def came(self, visitor: _Visitor) -> None:
        self._visitors.add(visitor)

    def went(self, visitor: _Visitor) -> None:
        self._visitors.discard(visitor)

    def take(self, visitor: _Visitor, frame: Frame) -> None:
        """One request."""
        if self.is_closing:
            visitor.send([packed(REFUSED, frame.number)])
            return
        task = asyncio.get_running_loop().create_task(self._answer(visitor, frame))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, visitor: _Visitor, frame: Frame) -> None:
        try:
            head, body = await self._serve(frame.head, frame.body)
            messages = packed_answer(frame.number, head, body)
        except Exception:
            _logger.exception("a request that another worker has handed on failed")
            messages = [packed(FAILED, frame.number)]
        visitor.send(messages)

    async def close(self) -> None:
        """Come back when all that was taken is answered. What comes now is refused, so that others serve it."""
        self.is_closing = True
        with suppress(FileNotFoundError):
            Path(self._path).unlink()
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._server is not None:
            self._server.close()
        for visitor in list(self._visitors):
            visitor.leave()


class _Visitor(asyncio.Protocol):
    """The connection of another worker."""

    def __init__(self, door: Door) -> None:
        self._door, self._reader = door, Reader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._door.came(self)
        if not _is_own(transport.get_extra_info("socket")):
            _logger.error("somebody else's process has reached the socket of a worker, and was sent away")
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._door.went(self)

    def leave(self) -> None:
        """After what was said last."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            for frame in self._reader.read(data):
                if frame.kind == PING:
                    self.send([packed(PONG, 0)])
                elif frame.kind == ASK:
                    self._door.take(self, frame)
        except Broken:
            self._transport.abort()

    def send(self, messages: list[bytes]) -> None:
        if not self._transport.is_closing():
            self._transport.writelines(messages)


def _is_own(peer: socket.socket | None) -> bool:
    """Whether the process at the other end belongs to the same user, where the system tells."""
    if peer is None or not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(user == os.geteuid())
