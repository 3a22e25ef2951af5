"""Arrays in values that JSON can hold: lists as long as somebody may read them, otherwise packed, equal to the bit."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats
from doral.errors import InvalidValue

READABLE = 400  # numbers: about a page; above, nobody reads them and a list takes several times the room
MAX_NUMBERS = 2**27  # of one array, a GiB
_KINDS = {"float64": "<f8", "int64": "<i8"}


def packed(array: NDArray[Any]) -> Any:
    """A list (of lists), in which None stands for what JSON has no number for; many numbers are compressed."""
    if array.size > READABLE:
        kind = "int64" if array.dtype.kind in "iu" else "float64"
        data = zlib.compress(np.ascontiguousarray(array, dtype=_KINDS[kind]).tobytes(), 6)
        return {"packed": base64.b64encode(data).decode(), "kind": kind, "shape": list(array.shape)}
    if array.dtype.kind in "iu" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array, None).tolist()  # type: ignore[call-overload]


def unpacked(field: str, value: object, *, nothing: float = math.nan) -> Any:
    """An array of what was packed, or a list as it is with `nothing` for None; other values as they are."""
    if isinstance(value, Mapping):
        return _decompressed(field, value)
    if isinstance(value, list):
        return [
            nothing if one is None else unpacked(field, one, nothing=nothing) if isinstance(one, list) else one
            for one in value
        ]
    return value


def _decompressed(field: str, value: Mapping[str, Any]) -> NDArray[Any]:
    remedy = "must be a list of numbers, or what to_dict() packed"
    if set(value) != {"packed", "kind", "shape"} or not isinstance(value["packed"], str):
        raise InvalidValue(field, value, remedy)
    kind, shape = value["kind"], value["shape"]
    is_shape = isinstance(shape, list) and all(isinstance(one, int) and 0 <= one <= MAX_NUMBERS for one in shape)
    if not isinstance(kind, str) or kind not in _KINDS or not is_shape or math.prod(shape) > MAX_NUMBERS:
        raise InvalidValue(field, {"kind": kind, "shape": shape}, remedy)
    n_bytes = 8 * math.prod(shape)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(value["packed"], validate=True), n_bytes + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InvalidValue(field, value["packed"], f"cannot be unpacked: {error}") from None
    if len(data) != n_bytes:
        raise InvalidValue(field, value["packed"], f"does not hold as many numbers as its shape says, {shape}")
    numbers = np.frombuffer(data, dtype=_KINDS[kind]).reshape(shape)
    return numbers.astype(np.int64 if kind == "int64" else np.float64)


def packed_words(words: NDArray[Any]) -> Any:
    """A list, with None for what is missing; of many, each once and their numbers."""
    if words.size <= READABLE:
        return [word or None for word in words.tolist()]
    levels, numbers = np.unique(words, return_inverse=True)
    return {"words": [word or None for word in levels.tolist()], "numbers": packed(numbers.ravel())}


def unpacked_words(field: str, value: object) -> Any:
    if not isinstance(value, Mapping) or set(value) != {"words", "numbers"}:
        return value
    words, numbers = value["words"], np.array(unpacked(field, value["numbers"]))
    is_right = isinstance(words, list) and numbers.ndim == 1 and numbers.dtype.kind == "i" and numbers.size > 0
    if not is_right or not (numbers.min() >= 0 and numbers.max() < len(words)):
        raise InvalidValue(field, value, "must be a list, or words and the number of everybody's among them")
    return [words[number] for number in numbers.tolist()]


def table_of(field: str, value: object) -> Floats | Any:
    """Numbers of any shape as an array; what is none stays, for those who check it."""
    found = unpacked(field, value)
    try:
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        return found
