"""The checksum chain: each event carries a checksum of itself and of the one before it.

    chain(i) = blake2b( chain(i - 1)  columns of event i as a JSON list )         16 bytes

The columns are those of `Row` in their order, without those at the end that are null, so that new ones can be added;
bytes are written in hexadecimal. A key itself is not among them, so that it can be erased: its hash is. So it is with
what is known of a person, which holds a random word of its own: who has only the hash cannot try out ages. Before the
first event stand fixed words and the campaign's tag.

Whoever changes, removes, inserts or swaps events without computing all that follows anew is found out, and where.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from doral.live.errors import BrokenLog
from doral.live.events.row import COLUMNS, Row, sealed

_BYTES = 16
_AT_ONCE = 500
_FEW = 6  # rows that are sealed one by one
_KEY, _AVAILABLE, _KEY_HASH, _CHAIN = (COLUMNS.index(name) for name in ("key", "available", "key_hash", "chain"))
_ENGINE, _PERSON, _PERSON_HASH = (COLUMNS.index(name) for name in ("engine", "person", "person_hash"))
_UNCOVERED, _BYTES_PLACES = (_KEY, _CHAIN, _PERSON), (_AVAILABLE, _KEY_HASH, _PERSON_HASH)
_ODD_NUMBERS = {"-0.0": "0.0", "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_NoneType = type(None)
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def _encode(rows: list[Any]) -> str:
    """A negative zero is a zero: SQLite gives it back as one."""
    return _to_json(rows).replace("-0.0,", "0.0,").replace("-0.0]", "0.0]")


def beginning(tag: str) -> bytes:
    """Return what stands before the first event of a campaign."""
    return f"doral log 1 {tag}".encode()


def link(before: bytes, row: Sequence[Any]) -> bytes:
    """Return the checksum of a row that follows one with the checksum `before`."""
    text = _to_json(_covered(row)).replace("-0.0,", "0.0,").replace("-0.0]", "0.0]")
    return blake2b(before + text.encode(), digest_size=_BYTES).digest()


def _digest(before: bytes, columns: str) -> bytes:
    return blake2b(before + columns.encode(), digest_size=_BYTES).digest()


def _covered(row: Sequence[Any]) -> list[Any]:
    """Return the columns that are covered."""
    covered: list[Any] = list(row)
    covered[_KEY] = covered[_CHAIN] = covered[_PERSON] = None
    for place in _BYTES_PLACES:
        if covered[place] is not None:
            covered[place] = covered[place].hex()
    while covered and covered[-1] is None:
        covered.pop()
    return covered


def hash_key(salt: bytes, key: str) -> bytes:
    """Return what is left of an erased key: enough to know it again. `salt` is the checksum of the first event."""
    return blake2b(key.encode(), key=salt, digest_size=_BYTES).digest()


def seal(row: Row, *, before: bytes, salt: bytes, engine: int) -> Row:
    """Return a row that may be stored."""
    key_hash = None if row.key is None else hash_key(salt, row.key)
    person_hash = None if row.person is None else hash_key(salt, row.person)
    columns: tuple[Any, ...] = sealed(row, engine, key_hash, None, person_hash)
    chain = link(before, columns)
    return tuple.__new__(Row, (*columns[:_CHAIN], chain, *columns[_CHAIN + 1 :]))


def seal_all(rows: Sequence[Row], *, before: bytes, salt: bytes, engine: int) -> list[Row]:
    """Return rows that may be stored, in their order; many together in a third of the time."""
    found: list[Row] = []
    if len(rows) < _FEW:
        for row in rows:
            found.append(seal(row, before=before, salt=salt, engine=engine))
            before = found[-1].chain or b""
        return found
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        key_hashes = [None if row.key is None else hash_key(salt, row.key) for row in some]
        person_hashes = [None if row.person is None else hash_key(salt, row.person) for row in some]
        columns: list[Sequence[Any]] = list(zip(*some, strict=True))
        columns[_ENGINE] = (engine,) * len(some)
        columns[_KEY_HASH], columns[_PERSON_HASH] = tuple(key_hashes), tuple(person_hashes)
        texts = _by_columns(columns)
        if texts is None:
            texts = _texts([_covered(Row._make(row)) for row in zip(*columns, strict=True)])
        for row, text, key_hash, person_hash in zip(some, texts, key_hashes, person_hashes, strict=True):
            before = _digest(before, text)
            found.append(sealed(row, engine, key_hash, before, person_hash))
    return found


def _by_columns(columns: Sequence[Sequence[Any]]) -> list[str] | None:
    """What is covered of many events, of which most columns hold nothing, one number or few; None where there is
    something else in one, or not all of them end with the same.
    """
    nothing = (None,) * len(columns[0])
    last = max(place for place, column in enumerate(columns) if place not in _UNCOVERED and column != nothing)
    if None in columns[last]:
        return None
    parts: list[str] = []
    varying: list[Iterable[Any]] = []
    for place, column in enumerate(columns[: last + 1]):
        if place in _UNCOVERED or column == nothing:
            parts.append("null")
        else:
            texts = _column_texts(column, is_bytes=place in _BYTES_PLACES)
            if texts is None:
                return None
            parts.append("%s")
            varying.append(texts)
    row = f"[{','.join(parts)}]"
    return [row % one for one in zip(*varying, strict=True)]


def _column_texts(column: Sequence[Any], *, is_bytes: bool) -> Iterable[Any] | None:
    """What becomes of each value; None where one is of another type than a number, or than bytes."""
    types = set(map(type, column))
    if is_bytes:
        if not types <= {bytes, _NoneType}:
            return None
        return ["null" if value is None else f'"{value.hex()}"' for value in column]
    if types == {int}:
        return column
    if types <= {int, _NoneType}:
        return ["null" if value is None else value for value in column]
    if types <= {float, _NoneType}:  # most take long to write, and come more than once
        texts = {value: "null" if value is None else _number_text(value) for value in set(column)}
        return map(texts.__getitem__, column)
    return None


def _number_text(number: float) -> str:
    """As JSON has it; a negative zero is a zero."""
    text = repr(number)
    return _ODD_NUMBERS.get(text, text)


def _texts(rows: list[list[Any]]) -> list[str]:
    """The columns of each, as they are covered."""
    texts = _encode(rows)[2:-2].split("],[")
    if len(texts) == len(rows):
        return [f"[{text}]" for text in texts]
    return list(map(_encode, rows))  # a text does not let them be told apart


def is_intact(row: Row, before: bytes | None, salt: bytes | None) -> bool:
    """Whether a row is what was written after one with this checksum."""
    try:
        if before is None or link(before, row) != row.chain:
            return False
        return salt is None or _fits_hashes(row, salt)
    except (AttributeError, TypeError, ValueError):  # a column of another type
        return False


def _fits_hashes(row: Row, salt: bytes) -> bool:
    """Whether what can be erased is what was written, as far as it is there."""
    if row.key is not None and hash_key(salt, row.key) != row.key_hash:
        return False
    return row.person is None or hash_key(salt, row.person) == row.person_hash


def check(rows: Sequence[Row], *, before: bytes, salt: bytes | None) -> None:
    """Raise BrokenLog for the first of rows that follow each other which is not what was written."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        if not _are_intact(some, before, salt):
            for row in some:
                if not is_intact(row, before, salt):
                    raise damaged(row.sequence)
                before = row.chain or b""
        before = some[-1].chain or b""


def _are_intact(rows: Sequence[Row], before: bytes, salt: bytes | None) -> bool:
    """Whether all are, in a third of the time."""
    try:
        texts = _by_columns(list(zip(*rows, strict=True))) or _texts(list(map(_covered, rows)))
        for row, text in zip(rows, texts, strict=True):
            if _digest(before, text) != row.chain:
                return False
            if salt is not None and not _fits_hashes(row, salt):
                return False
            before = row.chain
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def damaged(sequence: object) -> BrokenLog:
    """Return the error of a log in which this event is not what was written."""
    return BrokenLog(
        f"event {sequence!r} is not what was written, or the one before it is missing: the log was damaged; "
        "restore a backup, and see `doral campaign verify` for how far it can be trusted"
    )
