"""A request to a service as a value, and how its answer is read: whoever carries it has to know nothing else."""

from __future__ import annotations

import inspect
import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import numpy as np

from doral import _check
from doral.errors import InvalidValue
from doral.wire import values as addresses


def moment(field: str, at: object) -> float | str | None:
    """A time: seconds since 1970 (or rounds) as a number, a datetime as text with its zone."""
    if at is None:
        return None
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidValue(field, at, "must say its time zone, such as datetime.now(timezone.utc)")
        return at.isoformat()
    return _check.finite_number(field, at, hint=": seconds since 1970 or a datetime")


def end(until: object) -> float | str | None:
    """As `moment`; a date, and text, as people write them."""
    if isinstance(until, str):
        return until
    if isinstance(until, date) and not isinstance(until, datetime):
        return until.isoformat()
    return moment("until", until)


def features(given: object) -> object:
    """A mapping or a list of plain values; what is not a number was not known."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): _plain("features", value) for name, value in given.items()}
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidValue("features", given, "must be a mapping from name to value, or one value for each feature")
    return [_plain("features", value) for value in given]


def word(field: str, value: object) -> object:
    """A name: whether there is such a one, the service knows."""
    return _plain(field, value)


def _plain(field: str, value: object) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isinf(number):
            raise InvalidValue(field, value, "must be a finite number")
        return None if math.isnan(number) else number
    raise InvalidValue(field, value, "must be a number or a word")


Kind = TypeVar("Kind", bound=type)


def described_as(model: type) -> Callable[[Kind], Kind]:
    """A class whose methods have the docstrings that the methods of these names have in another class."""

    def describe(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            if callable(method) and not name.startswith("_") and method.__doc__ is None:
                method.__doc__ = getattr(model, name).__doc__
        return kind

    return describe


Method = TypeVar("Method", bound=Callable[..., Any])

_WRAPPED = ("Call[Page[", "Call[")


def answering(method: Method, make: Callable[..., Any], words: str) -> Method:
    """The method, with the result in place of the request that asks for it: `words` around the result's name.

    >>> def make(self, n: int) -> "Call[int]": ...
    >>> inspect.signature(answering(lambda self, n: None, make, "Awaitable[{}]")).return_annotation
    'Awaitable[int]'
    """
    asked = inspect.signature(make)
    result = str(asked.return_annotation).strip("'")
    for prefix in _WRAPPED:
        if result.startswith(prefix):
            result = result.removeprefix(prefix)[: -prefix.count("[")]
            break
    method.__signature__ = asked.replace(return_annotation=words.format(result))  # type: ignore[attr-defined]
    method.__annotations__ = {**getattr(make, "__annotations__", {}), "return": words.format(result)}
    return method


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
