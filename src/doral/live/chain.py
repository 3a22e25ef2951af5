"""The checksum chain: each event carries a checksum of itself and of the one before it.

    chain(i) = blake2b( chain(i - 1)  columns of event i as a JSON list )         16 bytes

The columns are those of `Event` in their order, without those at the end that are null, so that new ones can be added;
bytes are written in hexadecimal. A key itself is not among them, so that it can be erased: its hash is. So it is with
what is known of a person, which holds a random word of its own: who has only the hash cannot try out ages. Before the
first event stand fixed words and the campaign's tag.

Whoever changes, removes, inserts or swaps events without computing all that follows anew is found out, and where.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from doral.live.errors import BrokenLog
from doral.live.events import COLUMNS, Event, sealed

_BYTES = 16
_AT_ONCE = 500
_KEY, _AVAILABLE, _KEY_HASH, _CHAIN = (COLUMNS.index(name) for name in ("key", "available", "key_hash", "chain"))
_ENGINE, _PERSON, _PERSON_HASH = (COLUMNS.index(name) for name in ("engine", "person", "person_hash"))
PLACE = ("sequence", "clock", "number", "round", "chain")  # columns that are not known before
_PLACE_AND_CHAIN = tuple(map(COLUMNS.index, PLACE))
_PLACE = _PLACE_AND_CHAIN[:-1]
_UNCOVERED, _BYTES_PLACES = (_KEY, _CHAIN, _PERSON), (_AVAILABLE, _KEY_HASH, _PERSON_HASH)
_MARK, _MARKED = "@", '"@"'
_ODD_NUMBERS = {"-0.0": "0.0", "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_NoneType = type(None)
_Hashes: TypeAlias = list[bytes | None]
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def _encode(rows: list[Any]) -> str:
    """A negative zero is a zero: SQLite gives it back as one."""
    return _to_json(rows).replace("-0.0,", "0.0,").replace("-0.0]", "0.0]")


def beginning(tag: str) -> bytes:
    """What stands before the first event of a campaign."""
    return f"doral log 1 {tag}".encode()


def link(before: bytes, event: Event) -> bytes:
    """The checksum of an event that follows one with the checksum `before`."""
    return _digest(before, _encode(_covered(event)))


def _digest(before: bytes, columns: str) -> bytes:
    return blake2b(before + columns.encode(), digest_size=_BYTES).digest()


def _covered(event: Event) -> list[Any]:
    """The columns that are covered."""
    row: list[Any] = list(event)
    row[_KEY] = row[_CHAIN] = row[_PERSON] = None
    if event.available is not None:
        row[_AVAILABLE] = event.available.hex()
    if event.key_hash is not None:
        row[_KEY_HASH] = event.key_hash.hex()
    if event.person_hash is not None:
        row[_PERSON_HASH] = event.person_hash.hex()
    while row and row[-1] is None:
        row.pop()
    return row


def hash_key(salt: bytes, key: str) -> bytes:
    """What is left of a key when it is erased: enough to know it again. `salt` is the checksum of the first event."""
    return blake2b(key.encode(), key=salt, digest_size=_BYTES).digest()


def seal(event: Event, *, before: bytes, salt: bytes, engine: int) -> Event:
    """An event that may be stored."""
    return seal_all([event], before=before, salt=salt, engine=engine)[0]


def seal_all(events: Sequence[Event], *, before: bytes, salt: bytes, engine: int) -> list[Event]:
    """Events that may be stored, in their order; together in a third of the time."""
    found: list[Event] = []
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        key_hashes, person_hashes = _hashes(some, salt)
        texts = _texts_of(_columns(some, engine, key_hashes, person_hashes))
        for event, text, key_hash, person_hash in zip(some, texts, key_hashes, person_hashes, strict=True):
            before = _digest(before, text)
            found.append(sealed(event, engine, key_hash, before, person_hash))
    return found


def _hashes(events: Sequence[Event], salt: bytes) -> tuple[_Hashes, _Hashes]:
    """Of their keys, and of what is known of people."""
    return (
        [None if event.key is None else hash_key(salt, event.key) for event in events],
        [None if event.person is None else hash_key(salt, event.person) for event in events],
    )


class Unplaced(NamedTuple):
    """Decisions that may be stored, but for their place: in the log, on the clock, and among rounds and numbers."""

    events: Sequence[Event]
    columns: Sequence[Sequence[Any]]  # of all, sealed but for what is to come
    texts: list[str]  # of each, the columns that are covered, with `%s` for those that say its place

    @property
    def key_hashes(self) -> Sequence[bytes | None]:
        """Of their keys."""
        return self.columns[_KEY_HASH]


class Placed(NamedTuple):
    """The same with their place: after an event of this sequence and round."""

    made: Unplaced
    sequence: int
    clocks: Sequence[float]
    numbers: Sequence[int | None]
    round: int
    chains: Sequence[bytes]

    @property
    def last(self) -> int:
        """The sequence of the last of them."""
        return self.sequence + len(self.chains)

    @property
    def columns(self) -> tuple[Sequence[Any], ...]:
        """Those of `PLACE`."""
        n = len(self.chains)
        sequences, rounds = (range(before + 1, before + n + 1) for before in (self.sequence, self.round))
        return sequences, self.clocks, self.numbers, rounds, self.chains

    @property
    def all_columns(self) -> tuple[tuple[Any, ...], ...]:
        """Those of an event."""
        return tuple(map(tuple, self._with_place()))

    @property
    def last_event(self) -> Event:
        """As it is stored."""
        return Event._make(column[-1] for column in self._with_place())

    def events(self) -> list[Event]:
        """As they are stored."""
        return list(map(Event._make, zip(*self._with_place(), strict=True)))

    def _with_place(self) -> list[Sequence[Any]]:
        columns = list(self.made.columns)
        for place, column in zip(_PLACE_AND_CHAIN, self.columns, strict=True):
            columns[place] = column
        return columns


def unplaced(events: Sequence[Event], *, salt: bytes, engine: int) -> Unplaced:
    """Decisions, sealed as far as that can be done before it is known where they go."""
    columns = _columns(events, engine, *_hashes(events, salt))
    return Unplaced(events, columns, _texts_of(columns, is_placed=False))


def placed(
    made: Unplaced,
    *,
    sequence: int,
    clocks: Sequence[float],
    numbers: Sequence[int | None],
    round_: int,
    before: bytes,
) -> Placed:
    """These decisions after the event of this sequence and round, which has the checksum `before`."""
    chains: list[bytes] = []
    shown: float | None = None
    shown_text = ""
    rows = zip(made.texts, count(sequence + 1), clocks, numbers, count(round_ + 1), strict=False)
    for text, one, clock, number, its_round in rows:
        if clock != shown:
            shown, shown_text = clock, _number_text(clock)
        before = _digest(before, text % (one, shown_text, "null" if number is None else number, its_round))
        chains.append(before)
    return Placed(made, sequence, clocks, numbers, round_, chains)


def _columns(events: Sequence[Event], engine: int, key_hashes: _Hashes, person_hashes: _Hashes) -> list[Sequence[Any]]:
    """Of all of them, once they are sealed."""
    columns: list[Sequence[Any]] = list(zip(*events, strict=True))
    columns[_ENGINE] = (engine,) * len(events)
    columns[_KEY_HASH], columns[_PERSON_HASH] = tuple(key_hashes), tuple(person_hashes)
    return columns


def _texts_of(columns: Sequence[Sequence[Any]], *, is_placed: bool = True) -> list[str]:
    """What is covered of each."""
    found = _by_columns(columns, is_placed=is_placed)
    if found is None:
        rows = [_covered(Event._make(row)) for row in zip(*columns, strict=True)]
        found = _texts(rows) if is_placed else _texts_to_place(rows)
    return found


def _texts_to_place(rows: list[list[Any]]) -> list[str]:
    for row in rows:
        for place in _PLACE:
            row[place] = _MARK
    return [text.replace("%", "%%").replace(_MARKED, "%s") for text in _texts(rows)]


def _by_columns(columns: Sequence[Sequence[Any]], *, is_placed: bool = True) -> list[str] | None:
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
        if not is_placed and place in _PLACE:
            parts.append("%%s")
        elif place in _UNCOVERED or column == nothing:
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


def is_intact(event: Event, before: bytes | None, salt: bytes | None) -> bool:
    """Whether an event is what was written after one with this checksum."""
    try:
        if before is None or link(before, event) != event.chain:
            return False
        return salt is None or _fits_hashes(event, salt)
    except (AttributeError, TypeError, ValueError):  # a column of another type
        return False


def _fits_hashes(event: Event, salt: bytes) -> bool:
    """What can be erased is what was written, as far as it is there."""
    if event.key is not None and hash_key(salt, event.key) != event.key_hash:
        return False
    return event.person is None or hash_key(salt, event.person) == event.person_hash


def check(events: Sequence[Event], *, before: bytes, salt: bytes | None) -> None:
    """Events that follow each other; BrokenLog names the first that is not what was written."""
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        if not _are_intact(some, before, salt):
            _find_damage(some, before, salt)
        before = some[-1].chain or b""


def _are_intact(events: Sequence[Event], before: bytes, salt: bytes | None) -> bool:
    """The same for many, in a third of the time."""
    try:
        texts = _by_columns(list(zip(*events, strict=True))) or _texts(list(map(_covered, events)))
        for event, text in zip(events, texts, strict=True):
            if _digest(before, text) != event.chain:
                return False
            if salt is not None and not _fits_hashes(event, salt):
                return False
            before = event.chain
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _find_damage(events: Sequence[Event], before: bytes, salt: bytes | None) -> None:
    for event in events:
        if not is_intact(event, before, salt):
            raise damaged(event.sequence)
        before = event.chain or b""


def damaged(sequence: object) -> BrokenLog:
    return BrokenLog(
        f"event {sequence!r} is not what was written, or the one before it is missing: the log was damaged; "
        "restore a backup, and see `doral campaign verify` for how far it can be trusted"
    )
