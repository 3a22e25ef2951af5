"""Rows of a log, and the chain of checksums over them. The sequence of a campaign is append-only and has no gaps.

A row carries all that its event needs, so that a log is read once, from first to last, in constant memory: an answer
repeats the number, context, arm and cost of the decision that it answers. `codec` makes events of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from doral.live.errors import BrokenLog

# Kinds. The numbers are stored: never change or reuse one.
CREATED = 1
DECIDED = 2
ANSWERED = 3
CORRECTED = 4
CANCELLED = 5
EXPIRED = 6
ARM_ADDED = 7
ARM_PAUSED = 8
ARM_RESUMED = 9
ARM_RETIRED = 10
TOPPED_UP = 11
EXTENDED = 12
CLOSED = 13
ENGINE_JOINED = 14
RECORDED = 15
CLOCK_SET = 16
FORGOTTEN = 17
NOTED = 18
LEASED = 19  # of budget leases, which are gone: written before, and read for ever
LEASE_ENDED = 20
PAUSED = 21
RESUMED = 22

MAKES_DECISION = (DECIDED, RECORDED)


class Row(NamedTuple):
    """One row of the log; what a kind does not use is None."""

    sequence: int
    kind: int
    clock: float  # what the campaign's clock shows; it goes back only when it is set
    at: float  # wall clock of the host when it was written, in seconds since 1970
    writer: int  # who appended it: settles whether a commit of unknown outcome happened
    key: str | None = None  # with the scope in front
    decision: int | None = None  # sequence of the decision that this one is about
    number: int | None = None  # of the decision in the engine, which counts only those that were played
    context: int | None = None
    arm: int | None = None
    cost: float | None = None  # reserved; 0 where it does not enter the ledger
    round: int | None = None
    reason: int | None = None
    value: float | None = None
    price: float | None = None
    probability: float | None = None
    available: bytes | None = None  # one bit per arm; None: all
    reward: float | None = None
    previous: float | None = None  # the reward that a correction replaces
    actual_cost: float | None = None  # where an answer or a correction says it
    previous_cost: float | None = None  # what it was taken to cost before; the rest is given back
    was: int | None = None  # state of the decision before
    state: int | None = None  # and after
    outcome: int | None = None  # what the engine made of an answer
    data: str | None = None  # JSON, for events that are rare
    engine: int | None = None  # sequence of the event with which the engine that wrote it joined; None: version 0.1
    happened: float | None = None  # on the campaign's clock, where the caller said when
    delay: float | None = None  # of an answer
    key_hash: bytes | None = None  # of the key, which may be erased
    chain: bytes | None = None  # checksum of this row and all before it; None: not sealed yet
    # Of problems with features of people; repeated by events about the decision.
    weight: float | None = None  # what a unit of this one's reward is worth, where the caller said it
    deadline: float | None = None  # likewise
    person_hash: bytes | None = None  # of what follows, which may be erased
    person: str | None = None  # whom it is for, see `person`


COLUMNS = Row._fields
_BEFORE_ENGINE = slice(COLUMNS.index("engine"))
_TYPES = {"sequence": int, "writer": int, "decision": int, "number": int, "round": int, "engine": int,
          "kind": int, "context": int, "arm": int, "reason": int, "was": int, "state": int, "outcome": int,
          "key": str, "data": str, "available": bytes, "key_hash": bytes, "chain": bytes,
          "person_hash": bytes, "person": str}  # fmt: skip
_OPTIONAL = [(_TYPES.get(name, float), type(None)) for name in COLUMNS]


def sealed(row: Row, engine: int, key_hash: bytes | None, chain: bytes | None, person_hash: bytes | None) -> Row:
    """Return the row with the engine that wrote it, and with its place in the chain."""
    plain: tuple[Any, ...] = row
    own = (engine, row.happened, row.delay, key_hash, chain, row.weight, row.deadline, person_hash, row.person)
    return tuple.__new__(Row, plain[_BEFORE_ENGINE] + own)


def has_types(row: Sequence[object]) -> bool:
    """Whether each column holds what it should: SQLite takes anything anywhere."""
    return all(map(isinstance, row, _OPTIONAL))


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
    """What is covered of many events, column by column; None where a column holds values of another type."""
    nothing = (None,) * len(columns[0])
    last = max(place for place, column in enumerate(columns) if place not in _UNCOVERED and column != nothing)
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
    texts = [row % one for one in zip(*varying, strict=True)]
    return texts if None not in columns[last] else [_without_nulls(text) for text in texts]


def _without_nulls(text: str) -> str:
    """A list without the nulls at its end: a text ends with a quotation mark, whatever it holds."""
    end = len(text) - 1
    while text.endswith(",null", 0, end):
        end -= 5
    return text[:end] + "]"


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
    if not (types <= {float, _NoneType} or types <= {str, _NoneType}):
        return None
    text_of = _text if str in types else _number_text
    texts = {value: text_of(value) for value in set(column)}  # most take long to write, and come more than once
    if any(value != value for value in texts):  # two that are no numbers are not the same
        return None
    return map(texts.__getitem__, column)


def _number_text(number: float | None) -> str:
    """As JSON has it; a negative zero is a zero."""
    text = "null" if number is None else repr(number)
    return _ODD_NUMBERS.get(text, text)


def _text(value: str | None) -> str:
    """As JSON has it, and as the whole row has it in `_encode`."""
    return _to_json(value).replace("-0.0,", "0.0,").replace("-0.0]", "0.0]")


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
