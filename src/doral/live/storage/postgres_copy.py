"""Rows for PostgreSQL's COPY: many of them in one message, at a fraction of the cost of INSERT.

They are sent in the server's own form, in which a number is not told from another type of number: so the types of
columns have to be known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Copy

FORMAT = "FORMAT binary"
_OTHERS = "float8"
_SMALL = {"int2": 2**15, "int4": 2**31}  # which the driver cuts off without a word
_TYPES = {
    **dict.fromkeys(("kind", "reason", "was", "state", "outcome"), "int2"),
    **dict.fromkeys(("campaign_id", "context", "arm"), "int4"),
    **dict.fromkeys(("sequence", "writer", "decision", "number", "round", "engine"), "int8"),
    **dict.fromkeys(("key", "data", "person"), "text"),
    **dict.fromkeys(("available", "key_hash", "chain", "person_hash"), "bytea"),
}


def types_of(columns: Iterable[str]) -> list[str]:
    """Of columns of the table of events."""
    return [_TYPES.get(column, _OTHERS) for column in columns]


def send(copy: Copy, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """These rows, in the format above; OverflowError where one holds a number that its column does not."""
    types = types_of(columns)
    limits = [(place, _SMALL[kind]) for place, kind in enumerate(types) if kind in _SMALL]
    for place, limit in limits:
        for row in rows:
            if row[place] is not None and not -limit <= row[place] < limit:
                raise OverflowError(f"{columns[place]} = {row[place]}")
    copy.set_types(types)
    for row in rows:
        copy.write_row(row)
