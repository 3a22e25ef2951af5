"""Checks of values from outside, which turn them into plain Python values."""

from __future__ import annotations

import math
import numbers
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doral.errors import InvalidValue, UnknownName, shown

MAX_NAME_CHARACTERS = 200

FloatsLike: TypeAlias = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]


def _real(value: object) -> float | None:
    """The value as a float: inf when its size is too large for one, None when it is not a number."""
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    # bool is an int to Python, but a flag in a number's place is a slip; numpy's bool is not a Real.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _range_in_words(above: float | None, at_least: float | None, at_most: float | None) -> str:
    low = f" above {above:g}" if above is not None else "" if at_least is None else f" of at least {at_least:g}"
    high = "" if at_most is None else f" and at most {at_most:g}" if low else f" of at most {at_most:g}"
    return low + high


def finite_number(
    field: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    hint: str = "",
) -> float:
    """A finite float in the range; `hint` is added to the remedy."""
    number = _real(value)
    if (
        number is None
        or not math.isfinite(number)
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
    ):
        raise InvalidValue(field, value, f"must be a finite number{_range_in_words(above, at_least, at_most)}{hint}")
    return number


def whole_number(field: str, value: object, *, at_least: int, at_most: int) -> int:
    """An int in the range; floats that are whole (1e5) are taken too."""
    number = _real(value)
    if number is None or not at_least <= number <= at_most or not number.is_integer():
        raise InvalidValue(field, value, f"must be a whole number from {at_least:,} to {at_most:,}")
    return int(number)


def name(field: str, value: object) -> str:
    """A name that every store, file and page can carry: not blank, no control characters, encodable."""
    if not isinstance(value, str):
        raise InvalidValue(field, value, "must be a string")
    if not value.strip():
        raise InvalidValue(field, value, "must not be empty")
    if len(value) > MAX_NAME_CHARACTERS:
        raise InvalidValue(field, value, f"must have at most {MAX_NAME_CHARACTERS} characters")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in value):
        raise InvalidValue(field, value, "must not contain control characters or lone surrogates")
    return str(value)  # numpy's strings become plain ones


def is_among(value: object, words: Iterable[str]) -> bool:
    """Return whether it is one of these words; a value of any type may be asked about."""
    return isinstance(value, str) and value in words


def items(field: str, value: object, *, what: str, at_most: int, at_least: int = 1) -> list[Any]:
    """The elements of a sequence or of an array with one axis; its length is checked before anything is copied."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
    if not is_sequence and not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise InvalidValue(field, value, f"must be a list of {what}")
    assert isinstance(value, Sequence | np.ndarray)
    if not at_least <= len(value) <= at_most:
        raise InvalidValue(f"number of {field}", len(value), f"must be from {at_least} to {at_most:,}")
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def no_duplicates(field: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise InvalidValue(field, each, "appears twice; give each its own name")
        seen.add(each)


def keys(field: str, value: object, *, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """A stored mapping with exactly the keys it should have."""
    if not isinstance(value, Mapping):
        raise InvalidValue(field, value, "must be a mapping")
    required = tuple(required)
    known = {*required, *optional}
    for key in required:
        if key not in value:
            raise InvalidValue(field, value, f"lacks the key {key!r}")
    for key in value:
        if key not in known:
            raise InvalidValue(field, value, f"has the unknown key {shown(key)}; known: {', '.join(sorted(known))}")
    return dict(value)


def by_name(field: str, value: Mapping[str, Any], names: Iterable[str], *, kind: str) -> list[Any]:
    """Return the entries of a mapping in the order of the names, each of which must be there, and no other."""
    known = dict.fromkeys(names)
    for each in value:
        if each not in known:
            raise UnknownName(f"{kind} in {field}", each, known)
    for each in known:
        if each not in value:
            raise InvalidValue(field, dict(value), f"lacks {kind} {shown(each)}; give one to every {kind}")
    return [value[each] for each in known]


def set_fields(instance: object, **values: object) -> None:
    """Set the fields of a frozen instance that is being made."""
    for field, value in values.items():
        object.__setattr__(instance, field, value)
