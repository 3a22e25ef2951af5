"""Rows for PostgreSQL's COPY: many of them in one message, at a fraction of the cost of INSERT.

They are sent in the server's own form, in which a number is not told from another type of number: so the types of
columns have to be known here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

_BEGINNING, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_NOTHING = b"\xff\xff\xff\xff"
_OTHERS = "float8"
_TYPES = {
    **dict.fromkeys(("kind", "reason", "was", "state", "outcome"), "int2"),
    **dict.fromkeys(("campaign_id", "context", "arm"), "int4"),
    **dict.fromkeys(("sequence", "writer", "decision", "number", "round", "engine"), "int8"),
    **dict.fromkeys(("key", "data", "person"), "text"),
    **dict.fromkeys(("available", "key_hash", "chain", "person_hash"), "bytea"),
}
_NUMBERS = {  # the size of each comes first
    "int2": (struct.Struct(">ih"), 2),
    "int4": (struct.Struct(">ii"), 4),
    "int8": (struct.Struct(">iq"), 8),
    "float8": (struct.Struct(">id"), 8),
}


def types_of(columns: Iterable[str]) -> list[str]:
    """Of columns of the table of events."""
    return [_TYPES.get(column, _OTHERS) for column in columns]


class Packed:
    """Rows in that format, given by their columns: most of these hold nothing, the same for all, or few values.

    OverflowError where one holds a number that its column does not, TypeError where it is none.
    """

    def __init__(
        self, table: str, names: Sequence[str], columns: Sequence[Sequence[Any]], holes: Sequence[str] = ()
    ) -> None:
        """`holes` are columns that are to be filled in, in their order; what is given for those counts for nothing."""
        self.statement = f"COPY {table} ({', '.join(names)}) FROM STDIN (FORMAT binary)"
        self.n_rows = len(columns[0])
        self._holes = holes
        self._parts: list[list[bytes]] = []  # of each row, what stands before and after its holes
        fields = [[struct.pack(">h", len(names))] * self.n_rows]
        for name, column in zip(names, columns, strict=True):
            if name in holes:
                self._parts.append(_joined(fields))
                fields = [[b""] * self.n_rows]
            else:
                fields.append(_fields(name, column))
        self._parts.append(_joined(fields))

    def filled(self, columns: Sequence[Sequence[Any]] = ()) -> bytes:
        """All rows, with these columns in their holes."""
        filled = [_fields(name, column) for name, column in zip(self._holes, columns, strict=True)]
        around = [part for pair in zip(self._parts, filled, strict=False) for part in pair]
        rows = chain.from_iterable(zip(*around, self._parts[-1], strict=True))
        return b"".join((_BEGINNING, *rows, _END))


def _joined(fields: Sequence[Sequence[bytes]]) -> list[bytes]:
    return list(map(b"".join, zip(*fields, strict=True)))


def _fields(name: str, column: Sequence[Any]) -> list[bytes]:
    kind = _TYPES.get(name, _OTHERS)
    try:
        if kind in _NUMBERS:
            return _number_fields(kind, column)
        return [_NOTHING] * len(column) if set(column) == {None} else list(map(_BYTES_OF[kind], column))
    except struct.error as error:
        raise OverflowError(f"{name}: {error}") from error


def _number_fields(kind: str, column: Sequence[Any]) -> list[bytes]:
    layout, size = _NUMBERS[kind]
    pack, few = layout.pack, set(column)
    if len(few) == 1:
        return [_NOTHING if column[0] is None else pack(size, column[0])] * len(column)
    if 2 * len(few) > len(column):
        return [_NOTHING if value is None else pack(size, value) for value in column]
    fields = {value: _NOTHING if value is None else pack(size, value) for value in few}
    return [fields[value] for value in column]


def _of_text(value: str | None) -> bytes:
    if value is None:
        return _NOTHING
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return _of_bytes(value.encode())


def _of_bytes(value: bytes | None) -> bytes:
    if value is None:
        return _NOTHING
    if not isinstance(value, bytes):
        raise TypeError(f"{value!r:.40} are no bytes")
    return len(value).to_bytes(4, "big") + value


_BYTES_OF: dict[str, Callable[[Any], bytes]] = {"text": _of_text, "bytea": _of_bytes}
