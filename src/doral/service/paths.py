"""Paths whose parts may hold any character: names of campaigns and arms may have a slash in them, or look like `..`.

Clients percent-encode each part. A server hands the path on decoded, and then nobody can tell a slash of a name from
one between two parts. So the path is taken apart as it was sent, each part is decoded once, and a slash inside a part
travels to the routes as a character that no name can have; the routes' parameters have it back as a slash.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from doral.service.responses import problem_reply
from doral.wire.problems import ServiceError

_SLASH_IN_NAME = "\x1f"  # a control character, which `_check.name` refuses in every name


def name_in(part: str) -> str:
    """The name that a part of a path for the routes stands for."""
    return part.replace(_SLASH_IN_NAME, "/")


class _Part(Convertor[str]):
    """One part of a path, between two slashes."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return name_in(value)

    def to_string(self, value: str) -> str:
        return value.replace("/", _SLASH_IN_NAME)


register_url_convertor("str", _Part())  # in place of the usual one, which is the same without slashes


def route_path(raw: bytes) -> str:
    """The path for the routes, of the one that was sent. ServiceError where it cannot be one of ours."""
    parts = [unquote_to_bytes(part) for part in raw.split(b"/")]
    try:
        text = [part.decode() for part in parts]
    except UnicodeDecodeError:
        words = "the path is not UTF-8: encode names as UTF-8, then percent-encode them"
        raise ServiceError(words, "bad-path", 400) from None
    if any(not character.isprintable() and _is_control(character) for part in text for character in part):
        raise ServiceError("the path holds control characters, which no name may have", "bad-path", 400)
    return "/".join(part.replace("/", _SLASH_IN_NAME) for part in text)


def _is_control(character: str) -> bool:
    return ord(character) < 32 or 127 <= ord(character) < 160


class WholeNames:
    """Gives routes the path with its parts intact."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        raw: bytes | None = scope.get("raw_path")
        try:
            path = route_path(quote(scope["path"]).encode() if raw is None else raw.partition(b"?")[0])
        except ServiceError as error:
            await problem_reply(error)(scope, receive, send)
            return
        scope["path"] = path  # the very scope: what routes find out must be there for whoever stands around them
        await self._app(scope, receive, send)
