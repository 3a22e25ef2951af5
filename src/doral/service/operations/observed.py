"""What is noted of every request: an identifier, a line, and numbers. The outermost layer of the application."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.service.event_stream import Streams
from doral.service.operations.logs import request_log
from doral.service.operations.metrics import Metrics

HEADER = b"x-request-id"
NO_ROUTE = "(none)"
_SANE = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:+/=@-]{0,127}")
_PROBLEM = re.compile(rb'"urn:doral:problem:([a-z0-9-]{1,60})"')
_BEGINNING = 500  # bytes of a problem document, in which its type is
_STREAM = b"text/event-stream"
_NOT_TOLD = frozenset(("/healthz", "/readyz", "/metrics"))  # asked for every few seconds, by machines
_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))


def observe(app: FastAPI) -> None:
    """Note every request of this application."""
    app.state.streams = Streams()
    app.add_middleware(Observed, state=app.state)


class Observed:
    """`scope["state"]["request_id"]` is there for whoever answers; who calls is there as `caller`."""

    def __init__(self, app: ASGIApp, state: Any) -> None:
        self._app, self._state = app, state
        self._draws = itertools.count()
        self._mark = secrets.token_hex(6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = self._identify(scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        header = (HEADER, request_id.encode("latin-1"))
        status, sent, is_stream, code = 0, 0, False, None
        task = asyncio.current_task()  # the whole request; its stream may be sent by a part of it

        async def send_noted(message: Message) -> None:
            nonlocal status, sent, is_stream, code
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.get("headers") or []
                message["headers"] = [*headers, header]
                if any(name == b"content-type" and value.startswith(_STREAM) for name, value in headers):
                    is_stream = True
                    self._begin_stream(task)
            else:
                body = message.get("body", b"")
                if status >= 400 and sent == 0:
                    code = _PROBLEM.search(body, 0, _BEGINNING)
                sent += len(body)
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if not (is_stream and self._state.streams.are_ended):
                raise
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if is_stream:
                self._end_stream(task)
            said = None if code is None else code[1].decode("ascii")
            took = time.perf_counter() - began
            self._note(scope, request_id, status or 500, said, sent, took, is_stream=is_stream)

    def _identify(self, scope: Scope) -> str:
        for name, value in scope["headers"]:
            if name == HEADER:
                return value.decode("latin-1") if _SANE.fullmatch(value) else self._draw()
        return self._draw()

    def _draw(self) -> str:
        return f"{self._mark}{next(self._draws):08x}"

    @property
    def _metrics(self) -> Metrics:
        found: Metrics = self._state.service.metrics
        return found

    def _begin_stream(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._state.streams.add(task)
        self._metrics.stream_opened()

    def _end_stream(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._state.streams.remove(task)
        self._metrics.stream_closed()

    def _note(
        self,
        scope: Scope,
        request_id: str,
        status: int,
        code: str | None,
        sent: int,
        seconds: float,
        *,
        is_stream: bool,
    ) -> None:
        found = scope.get("route")
        route: str = NO_ROUTE if found is None else getattr(found, "path", NO_ROUTE)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        metrics = self._metrics
        if not is_stream:  # how long somebody has listened says nothing of how quick the service is
            metrics.answered_request(route, method, status, seconds)
        if status >= 400:
            metrics.refused(code or str(status))
        log = request_log()
        if log is None or (route in _NOT_TOLD and status < 500):
            return
        caller = scope["state"].get("caller")
        campaign = scope.get("path_params", {}).get("name")
        log.tell(
            request_id=request_id,
            method=method,
            route=route,
            status=status,
            seconds=seconds,
            response_bytes=sent,
            key_id=None if caller is None else caller.key_id,
            campaign=None if campaign is None else str(campaign)[:200],
        )
