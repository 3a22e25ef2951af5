"""A request to a service as a value, and how its answer is read: whoever carries it has to know nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from doral.wire import addresses

Result = TypeVar("Result", covariant=True)
Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[Result]):
    """One request.

    Whatever changes something carries a key, and can be sent again.
    """

    method: str
    path: str  # from the address of the service, with its query
    read: Callable[[Any], Result] = field(repr=False)  # of the JSON; ValueError and its like: not understood
    body: bytes | None = field(default=None, repr=False)
    key: str | None = None  # in the body: the caller's, or one that was drawn
    header_key: str | None = None  # of a batch, and of what has no key in its body
    is_change: bool = False
    is_long: bool = False  # the service may think for as long as the caller has patience


@dataclass(frozen=True, kw_only=True)
class Page(Generic[Item]):
    """Some of many things, and what asks for those that follow."""

    items: Sequence[Item]
    following: Call[Page[Item]] | None


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file that the service writes while it is sent."""

    path: str
    format: str  # "parquet" or "csv"


def path_of(*parts: str, **query: str | int | None) -> str:
    """A path of the API; names may hold any character.

    >>> path_of("campaigns", "a/b c", "decisions", state="pending", after=None)
    '/v1/campaigns/a%2Fb%20c/decisions?state=pending'
    """
    asked = {name: str(value) for name, value in query.items() if value is not None}
    path = addresses.path_of("v1", *parts)
    return f"{path}?{urlencode(asked)}" if asked else path


def body_of(given: Mapping[str, Any]) -> bytes:
    """JSON, in which no number is infinite."""
    return json.dumps(given, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def nothing(_: object) -> None:
    """Of an answer that says no more than that it was done."""
