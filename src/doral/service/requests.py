"""Bodies of requests, from bytes to checked values, and the keys that make a repeated request count once.

FastAPI reads bodies and checks them by the models of routes. What stands here is what it lacks: a body that would take
all memory is refused before it is checked, large ones are parsed in a thread, and what is wrong is told as a campaign
would tell it: the field, the value, the remedy. Bytes that are no JSON are a broken request (400); JSON that says what
cannot be used is a value that was refused (422).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, get_type_hints

from fastapi import Depends, Header, Request, Response, params
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from doral.errors import InvalidValue
from doral.service.access.guard import check_may
from doral.service.service import service_of
from doral.wire.problems import ServiceError

_LARGE_BYTES = 64 * 1024  # takes about a millisecond to parse
# A few bytes may ask for much: to tell of a value that is wrong costs hundreds of bytes, and more time than a decision.
_MOST_VALUES = 2_000_000  # in one body
_MANY_VALUES = 5_000  # from which on a body is looked at before it is checked
_MOST_ITEMS = 100_000  # of one list: as many as a problem may have arms
_MOST_MEMBERS = 10_000  # of one object
_MOST_OF = {"features": 2_000, "available": 20_000}
_FREE = frozenset(("problem", "options"))  # whatever they hold, nothing is told of it here
_WORDS = {
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}


class Body(BaseModel):
    """Strict: no number where a text belongs, no NaN, no field that nobody knows."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body = await self.body()
            self._json = parse(body) if len(body) <= _LARGE_BYTES else await asyncio.to_thread(parse, body)
        return self._json


class JsonRoute(APIRoute):
    """A route whose body is JSON, if it takes one."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def handle_json(request: Request) -> Response:
            refuse_unless_json(request)
            is_read = isinstance(request, _JsonRequest)
            return await handle(request if is_read else _JsonRequest(request.scope, request.receive))

        return handle_json


class QuickRoute(JsonRoute):
    """The same, for the routes that are asked most: with a good request, the endpoint is called at once.

    FastAPI finds out anew for every request what an endpoint needs, which takes longer than a decision. These endpoints
    need the service, parts of the path, a caller with a role, one body, and the key of the request; their signatures
    say which. Whatever is wrong with a body is told by FastAPI's own way, which is taken then.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, endpoint = super().get_route_handler(), self.endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        model, body_name = next(
            (hint, name) for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Body)
        )
        roles = next(
            one.scopes or () for hint in hints.values() for one in getattr(hint, "__metadata__", ())
            if isinstance(one, params.Security)
        )  # fmt: skip
        needs_request = "request" in hints

        async def handle_quickly(plain: Request) -> Response:
            service = service_of(plain)
            caller = await service.entrance.caller(plain.scope)
            check_may(plain, caller, roles, anywhere=False)
            request = _JsonRequest(plain.scope, plain.receive)
            refuse_unless_json(request)
            sent = await request.body()
            if len(sent) > _LARGE_BYTES:
                return await handle(request)
            try:
                body = model.model_validate_json(sent)
            except ValidationError:
                return await handle(request)
            given = {"service": service, "caller": caller, "key": header_key(request), body_name: body}
            if needs_request:
                given["request"] = request
            found: Response = await endpoint(**plain.path_params, **given)
            return found

        return handle_quickly


def refuse_unless_json(request: Request) -> None:
    """ServiceError where there is a body, and it is said to be something else, or nothing is said of it."""
    kind, has_body = b"", False
    for name, value in request.scope["headers"]:
        if name == b"content-type":
            kind = value.partition(b";")[0].strip().lower()
        elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            has_body = True
    is_json = kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))
    if has_body and not is_json:
        words = "the body must be JSON, and the header Content-Type must say so: application/json"
        raise ServiceError(words, "unsupported-media-type", 415)


def parse(body: bytes) -> Any:
    """JSON into plain values. ServiceError where it is none; InvalidValue where its parts are too many."""
    n_values = sum(map(body.count, (b",", b"[", b"{")))
    if n_values > _MOST_VALUES:
        words = f"the body has more than {_MOST_VALUES:,} values: send less at once"
        raise ServiceError(words, "content-too-large", 413)
    try:
        found = from_json(body)
    except ValueError as error:
        words = f"the body is no JSON: {error}; send one JSON object in UTF-8"
        raise ServiceError(words, "broken-json", 400) from None
    if n_values > _MANY_VALUES:
        _refuse_too_wide(found)
    return found


def _refuse_too_wide(body: Any) -> None:
    """Only finding out what is wrong with so many parts would take all memory."""
    waiting: list[tuple[str, Any]] = [("body", body)] if isinstance(body, list | dict) else []
    while waiting:
        field, value = waiting.pop()
        most = _MOST_OF.get(field, _MOST_MEMBERS if isinstance(value, dict) else _MOST_ITEMS)
        if len(value) > most:
            raise InvalidValue(f"number of {field}", len(value), f"must be at most {most:,}: send less at once")
        members = value.items() if isinstance(value, dict) else ((field, one) for one in value)
        waiting += (one for one in members if isinstance(one[1], list | dict) and one[0] not in _FREE)


# --- what is wrong with a body ----------------------------------------------------------------------------------------


def refusal(faults: Sequence[Mapping[str, Any]], body: Any) -> InvalidValue:
    """The one fault of a request to tell: pydantic's words, with the place in the body and what stands there."""
    found = [
        (*_walk(body, fault["loc"][1:]), fault)
        if fault["loc"][0] == "body"
        else (fault["loc"][1:], fault.get("input"), fault)  # of the path, the query, or a header
        for fault in faults
    ]
    # Where a value may be one of several things, the one that was followed furthest is what was meant.
    furthest = max(len(path) for path, _, _ in found)
    path, value, first = next(one for one in found if len(one[0]) == furthest)
    field = shown_path(path)
    if first["type"] == "missing":
        return InvalidValue(field, None, "is missing: give it")
    if first["type"] == "extra_forbidden":
        return InvalidValue(field, value, "is no field that is known here: leave it out, or see /v1/openapi.json")
    alike = [one["type"] for its_path, _, one in found if its_path == path]
    wanted = list(dict.fromkeys(_WORDS[kind] for kind in alike if kind in _WORDS))
    return InvalidValue(field, value, f"must be {' or '.join(wanted)}" if wanted else f"cannot be used: {first['msg']}")


def _walk(value: Any, location: Sequence[int | str]) -> tuple[tuple[int | str, ...], Any]:
    """Where in the body that is, and what stands there.

    Parts of the location that are no step of the body are the names of what a value might have been.
    """
    path: list[int | str] = []
    for place, step in enumerate(location):
        is_in_list = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if is_in_list or (isinstance(value, dict) and step in value):
            value = value[step]
        elif isinstance(value, dict) and place == len(location) - 1 and isinstance(step, str):
            value = None  # what is missing
        else:
            continue
        path.append(step)
    return tuple(path), value


def shown_path(path: Sequence[int | str]) -> str:
    """Such as `arrivals[3].context`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text[:200] or "body"


# --- values and keys --------------------------------------------------------------------------------------------------

_TIMES = ("at", "answered_at")
_HEADER = b"idempotency-key"


async def idempotency_key(
    request: Request,
    _: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="A name of this very request, in UTF-8: sent again, it counts once. It stands in for `key` "
            "where the body has none; in a batch, item number i without a key gets this one, a slash and i.",
        ),
    ] = None,
) -> str | None:
    """A dependency: what the header says."""
    return header_key(request)


def header_key(request: Request) -> str | None:
    """What the header says; InvalidValue where several of them say different things."""
    found = [value for name, value in request.scope["headers"] if name == _HEADER]
    if not found:
        return None
    if any(one != found[0] for one in found):
        raise InvalidValue("Idempotency-Key", found[1], "was given twice: give one")
    try:
        return bytes(found[0]).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValue("Idempotency-Key", found[0], "must be text in UTF-8") from None


IdempotencyKey = Annotated[str | None, Depends(idempotency_key)]


def key_of(header: str | None, body: str | None) -> str | None:
    """The key of a request: what its header and its body say, which must not differ."""
    if header is None or body is None:
        return header if body is None else body
    if header != body:
        raise InvalidValue("key", body, f"and the header Idempotency-Key says {header!r}: give one, or the same")
    return body


def fields_of(body: Body, header: str | None) -> dict[str, Any]:
    """The fields of a body that is about one decision, ready for a campaign: times as moments, and its key."""
    found = _plain(body)
    found["key"] = key_of(header, found["key"])
    return found


def fields_of_many(request: Request, field: str, items: Sequence[Body], header: str | None) -> list[dict[str, Any]]:
    """The same for each of many. Items without keys get that of the header, with their place."""
    most = service_of(request).settings.limits.batch
    if len(items) > most:
        raise InvalidValue(f"number of {field}", len(items), f"must be at most {most:,} in one request here")
    found = [_plain(one) for one in items]
    own = {one["key"] for one in found}
    for index, one in enumerate(found):
        one["key"] = _item_key(header, index, one["key"], own)
    return found


def _item_key(header: str | None, index: int, body: str | None, own: Container[str | None]) -> str | None:
    if body is not None or header is None:
        return body
    key = f"{header}/{index}"
    if key in own:
        raise InvalidValue(
            "key", key, f"is what item {index} gets from the header Idempotency-Key: give all items keys, or none"
        )
    return key


def _plain(body: Body) -> dict[str, Any]:
    found = dict(vars(body))
    for name in _TIMES:
        if isinstance(found.get(name), str):
            found[name] = moment(name, found[name])
    return found


def moment(field: str, value: float | str | None) -> float | datetime | None:
    """A time of a body: seconds since 1970 (or rounds), or ISO text with its zone."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        remedy = "must be a number (seconds since 1970), or a time with its zone such as 2026-11-16T12:00:00Z"
        raise InvalidValue(field, value, remedy) from None
