"""Checksums of many events at once are those of each by itself, whatever the columns hold."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from doral.live.errors import BrokenLog
from doral.live.events.row import COLUMNS, Row, check, hash_key, is_intact, link, seal_all

SALT, BEFORE, ENGINE = b"s" * 16, b"b" * 16, 3
WHOLE = ("sequence", "kind", "writer", "decision", "number", "context", "arm", "round", "reason", "was", "state")
TEXTS, BYTES = ("key", "data", "person"), ("available",)
ALWAYS = ("sequence", "kind", "clock", "at", "writer")
SET_BY_SEALING = ("engine", "key_hash", "person_hash", "chain")
NUMBERS = (0.0, -0.0, 1.0, -2.5, 1e15, 1e16, 1e22, 1e-4, 1e-5, 5e-324, 0.1, 1 / 3, math.inf, -math.inf, math.nan)


def some_value(name: str, rng: random.Random) -> Any:
    if name in TEXTS:
        return rng.choice(["a", "],[", '"@"', "%s", "%", "é", "-0.0,"])
    if name in BYTES:
        return rng.choice([b"", b"%s", b"\xff" * 3])
    return rng.choice([0, 1, -1, 2**62]) if name in (*WHOLE, "outcome") else rng.choice(NUMBERS)


def some_events(rng: random.Random, n: int, *, without: tuple[str, ...] = ()) -> list[Row]:
    """Of each column, all have a value, none has one, or some."""
    share = {name: 1.0 if name in ALWAYS else rng.choice([0.0, 0.0, 0.5, 1.0]) for name in COLUMNS}
    share |= dict.fromkeys((*SET_BY_SEALING, *without), 0.0)
    return [
        Row._make(some_value(name, rng) if rng.random() < share[name] else None for name in COLUMNS) for _ in range(n)
    ]


def one_by_one(events: list[Row]) -> list[Row]:
    found, before = [], BEFORE
    for event in events:
        hashes = (None if text is None else hash_key(SALT, text) for text in (event.key, event.person))
        key_hash, person_hash = hashes
        one = event._replace(engine=ENGINE, key_hash=key_hash, person_hash=person_hash)
        before = link(before, one)
        found.append(one._replace(chain=before))
    return found


@pytest.mark.parametrize("seed", range(300))
def test_many_at_once(seed: int) -> None:
    rng = random.Random(seed)
    events = some_events(rng, rng.randint(1, 7))
    sealed = seal_all(events, before=BEFORE, salt=SALT, engine=ENGINE)
    assert list(map(repr, sealed)) == list(map(repr, one_by_one(events)))
    check(sealed, before=BEFORE, salt=SALT)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "chain"])
def test_a_value_of_another_type_is_found(name: str) -> None:
    """As SQLite gives it back where somebody has put it: it may look alike, and is not what was written."""
    events = [Row(2 + i, 2, 1.0, 1.0, 1, number=i, arm=1, cost=1.0, round=i, reason=1, value=3.0) for i in range(5)]
    sealed = seal_all(events, before=BEFORE, salt=SALT, engine=ENGINE)
    value = getattr(sealed[2], name)
    wrong: list[object] = [
        "x",
        b"x",
        True,
        *([str(value), float(value), f"{value}".encode()] if value is not None else []),
    ]
    for other in wrong:
        if type(other) is type(value):
            continue
        changes: dict[str, Any] = {name: other}
        changed = [*sealed[:2], sealed[2]._replace(**changes), *sealed[3:]]
        assert not is_intact(changed[2], sealed[1].chain, SALT)
        with pytest.raises(BrokenLog, match=f"event {changed[2].sequence!r}"):
            check(changed, before=BEFORE, salt=SALT)
