"""Requests that change a campaign are handed on to the worker where it is at home; nearly all others stay where they
came. (Numbers for Prometheus are looked up by one worker for all, so that they are the same whoever is asked.)

Where that is makes no difference to what is stored: every change takes the campaign's lock in the database. So whoever
cannot hand a request on serves it. One that was handed on is served where it arrives, whatever that worker thinks of
its home: it comes in behind this layer, which only requests from outside pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.live.errors import OutcomeUnknown
from doral.service.access.answering import refuse
from doral.service.access.entrance import HANDED_ON
from doral.service.paths import name_in
from doral.service.spreading.door import Served
from doral.service.spreading.frames import FAILED
from doral.service.spreading.link import AnswerLost, NotTaken
from doral.service.spreading.repeating import may_be_repeated
from doral.service.spreading.spread import Spread

MOST_BODY_BYTES = 256 * 1024  # of a request that is handed on: larger ones are read where they came
_PREFIX = "/v1/campaigns/"
_METRICS = "/metrics"
_NUMBERS = ""  # stands for the numbers of all workers, where one of them looks them up: no campaign is called so
_FIXED = 7  # lines of a head before its headers


class HandedRoute:
    """What stands in a scope in the place of the route that another worker has found."""

    def __init__(self, path: str) -> None:
        self.path = path


class Handing:
    """Stands right before the routes: by then a key was looked at, and the path taken apart."""

    def __init__(self, app: ASGIApp, owner: FastAPI, routes: Sequence[BaseRoute]) -> None:
        self._app, self._owner, self._state, self._routes = app, owner, owner.state, routes
        self._state.serve_handed = self.serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        spread: Spread | None = getattr(self._state, "spread", None)
        name = None if spread is None else self._name(scope)
        home = None if spread is None or name is None else spread.home_elsewhere(name)
        if spread is None or name is None or home is None:
            await self._app(scope, receive, send)
            return
        body = await _whole(receive)
        if body is None:  # whoever asked has gone away: told as it is told of all others
            await self._app(scope, _gone, send)
            return
        try:
            frame = await spread.links[home].ask(_packed(scope), body)
        except NotTaken:
            self._note(scope, "refused")
        except AnswerLost:
            self._note(scope, "lost")
            if not may_be_repeated(self._routes, scope, body):
                words = (
                    "the worker that had the request has ended; whether the change was stored is not known: "
                    "look before you ask again, and give requests a key"
                )
                await refuse(scope, receive, send, OutcomeUnknown(words))
                return
        else:
            if frame.kind == FAILED:
                self._note(scope, "failed")
                raise RuntimeError("the worker where the campaign is at home has failed at this; its log says why")
            self._note(scope, "answered")
            await _send(scope, name, frame.head, frame.body, send)
            return
        await self._app(scope, _again(body, receive), send)

    def _name(self, scope: Scope) -> str | None:
        """What is at home somewhere: the campaign that a request changes, or the numbers of all workers; else None."""
        if scope["type"] != "http":
            return None
        if scope["method"] == "POST":
            return _changed(scope)
        is_of_all = scope["path"] == _METRICS and self._state.service.metrics.folder is not None
        return _NUMBERS if is_of_all and scope["method"] == "GET" else None

    def _note(self, scope: Scope, outcome: str) -> None:
        scope["state"][HANDED_ON] = outcome
        self._state.service.metrics.handed_on(outcome)

    async def serve(self, head: tuple[bytes, ...], body: bytes) -> Served:
        """A request that another worker has handed on. Its key is looked at again, by its route."""
        scope = _unpacked(head, self._owner)
        found = _Answer()
        await self._app(scope, _again(body, _never), found.send)
        route = getattr(scope.get("route"), "path", "")
        return [b"%d" % found.status, str(route).encode(), *found.headers], b"".join(found.parts)


class _Answer:
    """What a route sends."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[bytes] = []
        self.parts: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for name, value in message.get("headers", ()):
                self.headers += (bytes(name), bytes(value))
        else:
            self.parts.append(message.get("body", b""))


def _changed(scope: Scope) -> str | None:
    """The campaign that a request changes; None where it changes none, or is too large to be handed on."""
    if not scope["path"].startswith(_PREFIX):
        return None
    name, slash, _ = scope["path"][len(_PREFIX) :].partition("/")
    if not name or not slash:
        return None
    length = 0
    for header, value in scope["headers"]:
        if header == b"content-length":
            length = int(value) if value.isdigit() else MOST_BODY_BYTES + 1
        elif header == b"transfer-encoding":
            return None
    return name_in(name) if length <= MOST_BODY_BYTES else None


async def _whole(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _packed(scope: Scope) -> list[bytes]:
    client = scope.get("client") or ("", 0)
    head = [
        scope["state"].get("request_id", "").encode(),
        str(client[0]).encode(),
        scope.get("scheme", "http").encode(),
        scope["method"].encode(),
        scope["path"].encode(),
        scope.get("raw_path") or b"",
        scope.get("query_string") or b"",
    ]
    for pair in scope["headers"]:
        head += pair
    return head


def _unpacked(head: tuple[bytes, ...], app: object) -> dict[str, Any]:
    request_id, client, scheme, method, path, raw_path, query = head[:_FIXED]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method.decode(),
        "scheme": scheme.decode(),
        "path": path.decode(),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": list(zip(head[_FIXED::2], head[_FIXED + 1 :: 2], strict=True)),
        "client": (client.decode(), 0),
        "server": None,
        "app": app,
        "state": {"request_id": request_id.decode(), HANDED_ON: "here"},
    }


async def _send(scope: Scope, name: str, head: tuple[bytes, ...], body: bytes, send: Send) -> None:
    if head[1]:  # for whoever notes it
        scope["route"], scope["path_params"] = HandedRoute(head[1].decode()), {"name": name} if name else {}
    headers = list(zip(head[2::2], head[3::2], strict=True))
    await send({"type": "http.response.start", "status": int(head[0]), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _again(body: bytes, then: Receive) -> Receive:
    """A body that was read already, for whoever reads it next."""
    is_told = False

    async def receive() -> Message:
        nonlocal is_told
        if is_told:
            return await then()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _gone() -> Message:
    return {"type": "http.disconnect"}


async def _never() -> Message:
    await asyncio.get_running_loop().create_future()
    raise AssertionError
