"""What is sent to us: not from strangers, not too much, not too slowly. Nothing is read before a key was looked at."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.service.access.answering import refuse
from doral.service.service import Service
from doral.service.settings import Limits
from doral.wire.problems import ServiceError

STRANGER_BYTES = 64 * 1024  # of a form by somebody who has not signed in: a key has 62 characters
_WITHOUT_BODY = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_API = "/v1/"


class Bodies:
    """Around all routes that take something."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        try:
            most = await self._most_bytes(scope)
            length = _declared_length(scope)
            if length is not None and length > most:
                raise _too_large(most)
        except ServiceError as error:
            await refuse(scope, send, error, is_last=True)  # what it was about to send may still come
            return
        if length == 0:
            await self._app(scope, receive, send)
            return
        await _Bounded(scope, receive, send, most=most, within_s=self._limits.body_s).run(self._app)

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


class _Bounded:
    """One request, of which so much is read within so many seconds. Whoever exceeds it is told at once."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, most: int, within_s: float) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._most, self._left, self._within_s = most, most, within_s
        self._until = asyncio.get_running_loop().time() + within_s
        self._is_whole = self._has_begun = self._is_refused = False

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except ServiceError:
            if not self._is_refused:
                raise

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            words = f"the body did not arrive within {self._within_s:g} s: send less at once, or over a better line"
            raise await self._refuse(ServiceError(words, "request-timeout", 408)) from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise await self._refuse(_too_large(self._most))
        self._is_whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._is_refused:
            return  # what somebody makes of a body that broke off
        self._has_begun = True
        await self._send(message)

    async def _refuse(self, error: ServiceError) -> ServiceError:
        if not self._has_begun and not self._is_refused:
            self._is_refused = True
            await refuse(self._scope, self._send, error, is_last=True)
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
