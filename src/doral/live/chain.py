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
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from doral.live.errors import BrokenLog
from doral.live.events import COLUMNS, Event, chained, sealed, with_place

_BYTES = 16
_AT_ONCE = 500
_KEY, _AVAILABLE, _KEY_HASH, _CHAIN = (COLUMNS.index(name) for name in ("key", "available", "key_hash", "chain"))
_SEQUENCE, _CLOCK, _NUMBER, _ROUND = (COLUMNS.index(name) for name in ("sequence", "clock", "number", "round"))
_PERSON, _PERSON_HASH = COLUMNS.index("person"), COLUMNS.index("person_hash")
_MARK, _MARKED = "@", '"@"'
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
    """Events that may be stored, in their order; together in half the time."""
    found: list[Event] = []
    for start in range(0, len(events), _AT_ONCE):
        unchained = _unchained(events[start : start + _AT_ONCE], salt, engine)
        for event, text in zip(unchained, _texts(list(map(_covered, unchained))), strict=True):
            before = _digest(before, text)
            found.append(chained(event, before))
    return found


def _unchained(events: Sequence[Event], salt: bytes, engine: int) -> list[Event]:
    return [
        sealed(
            event,
            engine,
            None if event.key is None else hash_key(salt, event.key),
            None,
            None if event.person is None else hash_key(salt, event.person),
        )
        for event in events
    ]


class Unplaced(NamedTuple):
    """Decisions that may be stored, but for their place: in the log, on the clock, and among rounds and numbers."""

    events: list[Event]
    texts: list[list[str]]  # of each, the columns that are covered, cut where those belong that say its place


def unplaced(events: Sequence[Event], *, salt: bytes, engine: int) -> Unplaced:
    """Decisions, sealed as far as that can be done before it is known where they go."""
    found = _unchained(events, salt, engine)
    rows = list(map(_covered, found))
    for row in rows:
        row[_SEQUENCE] = row[_CLOCK] = row[_ROUND] = _MARK
        if row[_NUMBER] is not None:
            row[_NUMBER] = _MARK
    return Unplaced(found, [text.split(_MARKED) for text in _texts(rows)])


def placed(
    event: Event, cut: list[str], sequence: int, clock: float, number: int | None, round_: int, *, before: bytes
) -> Event:
    """A decision there, after an event with the checksum `before`."""
    clock = clock + 0.0  # a negative zero is a zero
    if number is None:
        first, second, third, last = cut
        text = f"{first}{sequence}{second}{clock!r}{third}{round_}{last}"
    else:
        first, second, third, fourth, last = cut
        text = f"{first}{sequence}{second}{clock!r}{third}{number}{fourth}{round_}{last}"
    return with_place(event, sequence, clock, number, round_, _digest(before, text))


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
    """The same for many, in two thirds of the time."""
    try:
        for event, text in zip(events, _texts(list(map(_covered, events))), strict=True):
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
