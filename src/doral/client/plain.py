"""What callers give, as JSON can hold it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

import numpy as np

from doral import _check
from doral.errors import InvalidValue


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
