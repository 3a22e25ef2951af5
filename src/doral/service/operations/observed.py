"""What is noted of every request: an identifier, a line, and numbers. The outermost layer of the application."""

from __future__ import annotations

import itertools
import re
import secrets
import time
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.service.operations.logs import tell_request
from doral.service.operations.metrics import Metrics

HEADER = b"x-request-id"
NO_ROUTE = "(none)"
_SANE = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:+/=@-]{0,127}")
_STREAM = b"text/event-stream"
_NOT_TOLD = frozenset(("/healthz", "/readyz", "/metrics"))  # asked for every few seconds, by machines
_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))


def observe(app: FastAPI) -> None:
    """Note every request of this application."""
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
        status, sent, is_stream = 0, 0, False

        async def send_noted(message: Message) -> None:
            nonlocal status, sent, is_stream
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.get("headers") or []
                message["headers"] = [*headers, header]
                if any(name == b"content-type" and value.startswith(_STREAM) for name, value in headers):
                    is_stream = True
                    self._metrics.stream_opened()
            else:
                sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            if is_stream:
                self._metrics.stream_closed()
            took = time.perf_counter() - began
            self._note(scope, request_id, status or 500, state.get("problem"), sent, took, is_stream=is_stream)

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
        if route in _NOT_TOLD and status < 500:
            return
        caller = scope["state"].get("caller")
        campaign = scope.get("path_params", {}).get("name")
        tell_request(
            request_id=request_id,
            method=method,
            route=route,
            status=status,
            seconds=seconds,
            response_bytes=sent,
            key_id=None if caller is None else caller.key_id,
            campaign=None if campaign is None else str(campaign)[:200],
        )
