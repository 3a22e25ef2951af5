"""What a key stands for: one request. The same key with another content is an error, for ever."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from doral.errors import shown
from doral.live.chain import hash_key
from doral.live.errors import KeyReused
from doral.live.events import (
    ANSWERED,
    CANCELLED,
    CORRECTED,
    DECIDED,
    IMPLIED_COST,
    NOTED,
    RECORDED,
    Event,
    known,
)
from doral.live.fold import Fold
from doral.live.people import features_of
from doral.live.storage.contract import Log


def used_keys(log: Log, fold: Fold, keys: Iterable[str | None]) -> dict[str, Event]:
    """The events that have used some of these keys, by key."""
    hashes = {hash_key(fold.salt, key): key for key in keys if key is not None}
    if not hashes:
        return {}
    return {hashes[hashed]: event for hashed, event in log.by_keys(hashes).items()}


def is_granted(log: Log, fold: Fold, asked: Event) -> bool:
    """Whether the key of a request has served it already; KeyReused where it has served another one."""
    if asked.key is None:
        return False
    before = used_keys(log, fold, [asked.key]).get(asked.key)
    if before is not None:
        check_same(before, asked, asked.key)
    return before is not None


def check_same(before: Event, asked: Event, key: str) -> None:
    """A key that was used before must have been used for the same, as far as that is not erased."""
    if before.person is None and before.person_hash is not None:
        asked = asked._replace(person=None, person_hash=before.person_hash)
    if _content(before) != _content(asked):
        raise KeyReused(
            f"key = {shown(key[2:])}: was used before with another content; make a new key for each request"
        )


def note_of(asked: Event) -> Event:
    """What is stored of a request that changes nothing: its key, and what it stands for."""
    return Event(0, NOTED, 0.0, 0.0, 0, key=asked.key, data=json.dumps(_content(asked)))


def _as_said(data: str) -> str:
    """Of a record, without a cost that nobody has said."""
    said = json.loads(data)
    if said.pop("implied", False):
        del said["cost"]
        return json.dumps(said)
    return data


def _who(event: Event) -> list[Any]:
    if event.person is None and event.person_hash is None:
        return []
    return [event.weight, event.deadline, features_of(event)]


def _content(event: Event) -> list[Any]:
    """What a request asked, in plain values."""
    if event.kind == NOTED:
        content: list[Any] = json.loads(known(event.data))
        return content
    if event.kind == DECIDED:
        # An arm that was added later is not available to an earlier request.
        available = None if event.available is None else event.available.rstrip(b"\0").hex()
        return [event.kind, event.context, available, event.happened, *_who(event)]
    if event.kind == RECORDED:
        said = _as_said(known(event.data))
        return [event.kind, event.context, event.arm, event.happened, event.probability, said, *_who(event)]
    if event.kind in (ANSWERED, CORRECTED, CANCELLED):
        is_said = event.kind != CANCELLED and event.data != IMPLIED_COST
        actual_cost = event.actual_cost if is_said else None
        return [event.kind, event.decision, event.reward, actual_cost, event.happened]
    return [event.kind, event.value, event.data]
