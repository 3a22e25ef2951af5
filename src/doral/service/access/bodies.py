"""What is sent to us: not from strangers, not too much, not too slowly. Nothing is read before a key was looked at."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.errors import DoralError
from doral.service.access.answering import refuse
from doral.service.service import Service
from doral.service.settings import Limits
from doral.wire.problems import ServiceError

STRANGER_BYTES = 64 * 1024  # of a form by somebody who has not signed in: a key has 62 characters
# A few large bodies at once fill no memory, and hundreds would: then only small ones are taken, such as decisions.
_MOST_TOGETHER = 16  # as large as one may be
_SMALL_BYTES = 64 * 1024
_RETRY_S = 1.0
_WITHOUT_BODY = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_API = "/v1/"


class Bodies:
    """Around all routes that take something."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._room = _Room(_MOST_TOGETHER * limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        try:
            most = await self._most_bytes(scope)
            length = _declared_length(scope)
            if length is not None and length > most:
                raise _too_large(most)
        except DoralError as error:
            await refuse(scope, receive, send, error, is_last=True)  # what it was about to send may still come
            return
        if length == 0:
            await self._app(scope, receive, send)
            return
        within_s = self._limits.body_s
        await _Bounded(scope, receive, send, room=self._room, most=most, within_s=within_s).run(self._app)

    async def _most_bytes(self, scope: Scope) -> int:
        """How much this caller may send. The API answers strangers here; pages ask them to sign in."""
        service: Service = scope["app"].state.service
        if scope["path"].startswith(_API):
            await service.entrance.caller(scope)
            return self._limits.body_bytes
        try:
            await service.entrance.page_caller(scope)
        except ServiceError as error:
            if error.retry_after_s is not None:
                raise
            return min(STRANGER_BYTES, self._limits.body_bytes)
        return self._limits.body_bytes


class _Room:
    """Bytes of bodies that are here now, of all requests together."""

    __slots__ = ("most", "taken")

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0


class _Bounded:
    """One request, of which so much is read within so many seconds. Whoever exceeds it is told at once.

    One timer for the whole body: nearly always all of it is there already, and it is never heard of.
    """

    __slots__ = ("_has_begun", "_is_late", "_is_refused", "_left", "_most", "_receive", "_room", "_scope", "_send",
                 "_timer", "_waiting", "_within_s")  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, room: _Room, most: int, within_s: float) -> None:
        self._scope, self._receive, self._send, self._room = scope, receive, send, room
        self._most, self._left, self._within_s = most, most, within_s
        self._has_begun = self._is_refused = self._is_late = False
        self._waiting: asyncio.Task[object] | None = None  # that waits for more of the body
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(within_s, self._be_late)

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except ServiceError:
            if not self._is_refused:
                raise
        finally:
            self._stop_timer()
            self._room.taken -= self._most - self._left

    def _be_late(self) -> None:
        self._is_late = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def receive(self) -> Message:
        if self._timer is None:  # the body is whole
            return await self._receive()
        message = await self._more()
        got = len(message.get("body", b""))
        self._left -= got
        self._room.taken += got
        if self._left < 0:
            raise await self._refuse(_too_large(self._most))
        if self._room.taken > self._room.most and self._most - self._left > _SMALL_BYTES:
            raise await self._refuse(_no_room())
        if not message.get("more_body", False):
            self._stop_timer()
        return message

    async def _more(self) -> Message:
        if self._is_late:
            raise await self._refuse(_too_late(self._within_s))
        self._waiting = asyncio.current_task()
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not self._was_cancelled_here():
                raise
        finally:
            self._waiting = None
        raise await self._refuse(_too_late(self._within_s))

    def _was_cancelled_here(self) -> bool:
        """By our timer, and by nobody else as well, as when the service is stopped."""
        return self._is_late and self._waiting is not None and self._waiting.uncancel() == 0

    async def send(self, message: Message) -> None:
        if self._is_refused:
            return  # what somebody makes of a body that broke off
        self._has_begun = True
        await self._send(message)

    async def _refuse(self, error: ServiceError) -> ServiceError:
        if not self._has_begun and not self._is_refused:
            self._is_refused = True
            await refuse(self._scope, self._receive, self._send, error, is_last=True)
        return error


def _declared_length(scope: Scope) -> int | None:
    """None where it is not said: in pieces, or not at all."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
        if name == b"transfer-encoding":
            return None
    return 0


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"the body has more than {most:,} bytes: send less at once", "content-too-large", 413)


def _no_room() -> ServiceError:
    words = "too many large bodies are being sent at once: try again a little later, or send less at once"
    return ServiceError(words, "overloaded", 503, _RETRY_S)


def _too_late(within_s: float) -> ServiceError:
    words = f"the body did not arrive within {within_s:g} s: send less at once, or over a better line"
    return ServiceError(words, "request-timeout", 408)
