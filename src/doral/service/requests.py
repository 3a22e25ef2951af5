"""Bodies of requests, from bytes to checked values, and the keys that make a repeated request count once.

What is wrong is told as a campaign would tell it: the field, the value, the remedy. Bytes that are no JSON are a broken
request (400); JSON that says what cannot be used is a value that was refused (422).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Container, Sequence
from datetime import datetime
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from doral.errors import DoralError, InvalidValue
from doral.service.responses import in_thread_if_many
from doral.service.service import service_of
from doral.wire.problems import ServiceError

_REFUSAL = "the body must be JSON, and the header Content-Type must say so: application/json"


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
        raise ServiceError(_REFUSAL, "unsupported-media-type", 415)


HEADER = "Idempotency-Key"
RAW_HEADER = b"idempotency-key"


def header_key(request: Request) -> str | None:
    """What the header says; InvalidValue where several of them say different things."""
    found = [value for name, value in request.scope["headers"] if name == RAW_HEADER]
    if not found:
        return None
    if any(one != found[0] for one in found):
        raise InvalidValue(HEADER, found[1], "was given twice: give one")
    try:
        return bytes(found[0]).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValue(HEADER, found[0], "must be text in UTF-8") from None


def key_of(header: str | None, body: str | None) -> str | None:
    """The key of a request.

    Args:
        header: What the header says.
        body: What the body says.
    """
    if header is None or body is None:
        return header if body is None else body
    if header != body:
        raise InvalidValue("key", body, f"and the header {HEADER} says {header!r}: give one of them, or the same")
    return body


def item_key(header: str | None, index: int, body: str | None, own: Container[str | None] = ()) -> str | None:
    """The key of one of many: what the item itself says, or the header's with the place of the item.

    Args:
        header: What the header says.
        index: The place of the item, from 0 on.
        body: What the item says.
        own: What all items say: none may have the key that another gets from the header.
    """
    if body is not None or header is None:
        return body
    key = f"{header}/{index}"
    if key in own:
        raise InvalidValue(
            "key", key, f"is what item {index} gets from the header {HEADER}: give all items keys, or none"
        )
    return key


JSON = "application/json"
_LARGE_BYTES = 64 * 1024  # takes about a millisecond to read
# A few bytes may ask for much: to tell of a value that is wrong costs hundreds of bytes, and more time than a decision.
_MOST_VALUES = 2_000_000  # in one body
_MANY_VALUES = 5_000  # from which on a body is looked at before it is checked
_MOST_MEMBERS = 100_000  # of one list or object: as many as a problem may have arms, or a batch items
_MOST_FAULTS = 1_000  # that are looked through for the one to tell
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


Read = TypeVar("Read", bound=Body)


async def read_body(request: Request, model: type[Read], *, may_be_empty: bool = False) -> Read:
    """The body as this model; where it is not one, the error that says what is wrong.

    Args:
        request: Whose body is read.
        model: What it has to be.
        may_be_empty: Whether no body at all is an empty object.
    """
    refuse_unless_json(request)
    body = await request.body()
    if may_be_empty and not body:
        body = b"{}"
    if len(body) <= _LARGE_BYTES:
        return _read(body, model)
    return await asyncio.to_thread(_read, body, model)  # few are: others are not kept waiting


def _read(body: bytes, model: type[Read]) -> Read:
    _refuse_too_wide(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise _refusal(error, body, model) from None


def _refuse_too_wide(body: bytes) -> None:
    """A body whose parts are so many that only finding out what is wrong with them would take all memory."""
    n_values = sum(map(body.count, (b",", b"[", b"{")))
    if n_values <= _MANY_VALUES:
        return
    if n_values > _MOST_VALUES:
        words = f"the body has more than {_MOST_VALUES:,} values: send less at once"
        raise ServiceError(words, "content-too-large", 413)
    try:
        given = from_json(body)
    except ValueError:
        return  # no JSON: that is told in its own words
    waiting: list[tuple[str, Any]] = [("body", given)]
    while waiting:
        field, value = waiting.pop()
        if len(value) > _MOST_MEMBERS:
            raise InvalidValue(
                f"number of {field}", len(value), f"must be at most {_MOST_MEMBERS:,}: send less at once"
            )
        members = value.items() if isinstance(value, dict) else ((field, one) for one in value)
        waiting += (one for one in members if isinstance(one[1], list | dict) and one[0] not in _FREE)


def moment(field: str, given: float | str | None) -> float | datetime | None:
    """A time of a body: seconds since 1970 (or rounds), or ISO text with its zone.

    Args:
        field: What the body calls it.
        given: Its value.
    """
    if not isinstance(given, str):
        return given
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        remedy = "must be a number (seconds since 1970), or a time with its zone such as 2026-11-16T12:00:00Z"
        raise InvalidValue(field, given, remedy) from None


def refuse_too_many(field: str, given: Sequence[object], at_most: int) -> None:
    """A request that asks for more than this service does at once.

    Args:
        field: What the body calls them.
        given: What it holds.
        at_most: How many may come in one request.
    """
    if len(given) > at_most:
        remedy = f"must be at most {at_most:,} in one request here: send several requests"
        raise InvalidValue(f"number of {field}", len(given), remedy)


class Taken(dict[str, Any]):
    """What a route takes, as the description of the API has it; and what that description is made of.

    Attributes:
        model: What the body has to be.
        may_be_empty: Whether no body at all is an empty object.
    """

    def __init__(self, model: type[Body], *, may_be_empty: bool) -> None:
        schema = model.model_json_schema()
        parts = schema.pop("$defs", {})
        content = {JSON: {"schema": _whole(schema, parts)}}
        super().__init__(requestBody={"required": not may_be_empty, "content": content})
        self.model, self.may_be_empty = model, may_be_empty


def takes(model: type[Body], *, may_be_empty: bool = False) -> Taken:
    """For `openapi_extra` of a route that reads its body by itself."""
    return Taken(model, may_be_empty=may_be_empty)


def _whole(schema: Any, parts: dict[str, Any]) -> Any:
    """The schema with its parts in their places: references would lead nowhere in the whole document."""
    if isinstance(schema, list):
        return [_whole(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {name: _whole(one, parts) for name, one in schema.items()}


def _refusal(error: ValidationError, body: bytes, model: type[Body]) -> DoralError:
    if error.error_count() > _MOST_FAULTS:
        remedy = "is the body what this path takes? See /v1/openapi.json"
        return InvalidValue("number of faults", error.error_count(), f"is more than can be told of: {remedy}")
    told = error.errors(include_url=False, include_context=False)
    if told[0]["type"] == "json_invalid":
        why = str(told[0]["msg"]).removeprefix("Invalid JSON: ")
        return ServiceError(f"the body is no JSON: {why}; send one JSON object in UTF-8", "broken-json", 400)
    given = json.loads(body)
    found = [(*_walk(given, one["loc"]), one) for one in told]
    # Where a value may be one of several things, the one that was followed furthest is what was meant.
    furthest = max(len(path) for path, _, _ in found)
    path, value, first = next(one for one in found if len(one[0]) == furthest)
    alike = [one["type"] for its_path, _, one in found if its_path == path]
    field = _shown(path)
    if first["type"] == "missing":
        return InvalidValue(field, None, "is missing: give it")
    if first["type"] == "extra_forbidden":
        return InvalidValue(field, value, _unknown_field(path, model))
    wanted = list(dict.fromkeys(_WORDS[kind] for kind in alike if kind in _WORDS))
    if not wanted:
        return InvalidValue(field, value, f"cannot be used: {first['msg']}")
    return InvalidValue(field, value, f"must be {' or '.join(wanted)}")


def _walk(given: Any, location: tuple[int | str, ...]) -> tuple[tuple[int | str, ...], Any]:
    """Where in the body that is, and what stands there.

    Parts of the location that are no step of the body are the names of what a value might have been.
    """
    path: list[int | str] = []
    for place, step in enumerate(location):
        is_in_list = isinstance(given, list) and isinstance(step, int) and step < len(given)
        if is_in_list or (isinstance(given, dict) and step in given):
            given = given[step]
        elif isinstance(given, dict) and place == len(location) - 1 and isinstance(step, str):
            given = None  # what is missing
        else:
            continue
        path.append(step)
    return tuple(path), given


def _shown(path: tuple[int | str, ...]) -> str:
    """Such as `arrivals[3].context`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text[:200] or "body"


def _unknown_field(path: tuple[int | str, ...], model: type[Body]) -> str:
    names: list[str] = []
    if len(path) == 1:
        names = sorted(model.model_fields)
    return f"is no field that is known here{': known are ' + ', '.join(names) if names else ''}; leave it out"


Given = TypeVar("Given", bound=Body)
_TIMES = ("at", "answered_at")


def given(model: type[Given], *, may_be_empty: bool = False) -> Callable[[Request], Awaitable[Given]]:
    """A dependency: the body as this model. Put it after the one that says who calls: it is read only once it is known
    that the caller may ask at all.

    Args:
        model: With a field `key`, the header Idempotency-Key stands in for it.
        may_be_empty: Whether no body at all is an empty object.
    """

    async def find(request: Request) -> Given:
        found = await read_body(request, model, may_be_empty=may_be_empty)
        if "key" in model.model_fields:
            found = found.model_copy(update={"key": key_of(header_key(request), getattr(found, "key", None))})
        return found

    return find


async def given_item(request: Request, model: type[Body], *, may_be_empty: bool = False) -> dict[str, Any]:
    """The fields of a body that is about one decision.

    Args:
        request: Whose body is read.
        model: What it has to be.
        may_be_empty: Whether no body at all is an empty object.
    """
    found = _fields(await read_body(request, model, may_be_empty=may_be_empty))
    found["key"] = key_of(header_key(request), found["key"])
    return found


async def given_items(request: Request, model: type[Given], field: str) -> tuple[Given, list[dict[str, Any]]]:
    """A body that is about many, and the fields of each; others are not kept waiting while it is read.

    Args:
        request: Whose body is read.
        model: What it has to be.
        field: Where the many are.
    """
    service = service_of(request)
    body = await read_body(request, model)
    items: Sequence[Body] = getattr(body, field)
    refuse_too_many(field, items, service.settings.limits.batch)
    header = header_key(request)

    def read() -> list[dict[str, Any]]:
        found = [_fields(one) for one in items]
        own = {one["key"] for one in found}
        for index, one in enumerate(found):
            one["key"] = item_key(header, index, one["key"], own)
        return found

    return body, await in_thread_if_many(service.run, len(items), read)


def _fields(body: Body) -> dict[str, Any]:
    found = dict(vars(body))
    for name in _TIMES:
        if isinstance(found.get(name), str):
            found[name] = moment(name, found[name])
    return found
