"""Backups: campaigns as they were at one moment, in a SQLite file that is a store itself; and back into a store.

The chain of every campaign is checked on the way out and on the way in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.errors import BrokenLog, ConnectionLost
from doral.live.events.codec import decode
from doral.live.events.event import Forgotten, known
from doral.live.events.row import FORGOTTEN, Row, beginning, check, damaged, has_types
from doral.live.kinds.request import as_batch
from doral.live.storage.connection import Retry
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.storage.service_tables import KeyRow
from doral.live.storage.sqlite_copy import copied_keys, prepare_copy, reading_copy, write_copy
from doral.live.views.files import given_path, new_file

_PAGE = 5_000
_ATTEMPTS = 3


def back_up(storage: Storage, path: object, names: Iterable[str] | None, *, keys: bool = False) -> int:
    """All campaigns, or these, into a new file; how many. `keys`: with the keys of a service, as they are stored."""
    if not isinstance(keys, bool):
        raise InvalidValue("keys", keys, "must be True or False")
    target = given_path(path, is_text=True)
    wanted = None if names is None else [_check.name("name of a campaign", one) for one in as_batch("names", names)]
    return _persistently(storage, target, wanted, storage.books().all_keys() if keys else [])


def _persistently(storage: Storage, target: Path, wanted: Sequence[str] | None, keys: Sequence[KeyRow]) -> int:
    """A connection that broke is no longer at the moment that was being copied: all of it again, into a new file."""
    retry = Retry()
    for _ in range(_ATTEMPTS - 1):
        try:
            return _back_up(storage, target, wanted, keys)
        except ConnectionLost as error:
            retry.wait(error)
    return _back_up(storage, target, wanted, keys)


def _back_up(storage: Storage, target: Path, wanted: Sequence[str] | None, keys: Sequence[KeyRow]) -> int:
    with new_file(target) as unfinished:
        prepare_copy(unfinished)
        with storage.reading() as campaigns:
            chosen = _chosen(campaigns, wanted)
            write_copy(unfinished, [(row, partial(_checked, row, log)) for row, log in chosen], keys)
    return len(chosen)


def restore(storage: Storage, path: object, name: str | None, *, keys: bool = False) -> list[str]:
    """All campaigns of a backup, or one, into a store; their names. Nothing is written before all was checked.

    `keys`: its keys, too, as far as the store has none of these identifiers.
    """
    if not isinstance(keys, bool):
        raise InvalidValue("keys", keys, "must be True or False")
    wanted = None if name is None else [_check.name("name of a campaign", name)]
    source = given_path(path, is_text=True).absolute()
    if not os.path.isfile(source):  # noqa: PTH113  (which says no, where a Path raises, to a name that cannot be)
        raise InvalidValue("path", str(source), "there is no such file: name a backup")
    with reading_copy(source) as campaigns:
        chosen = _chosen(campaigns, wanted)
        for row, log in chosen:
            for _ in _checked(row, log):
                pass
        storage.restore([(row, partial(_pages, log)) for row, log in chosen])
    for key in copied_keys(source) if keys else []:
        if storage.books().key(key.id) is None:
            storage.books().add_key(key)
    return [row.name for row, _ in chosen]


def _chosen(campaigns: list[tuple[CampaignRow, Log]], wanted: Sequence[str] | None) -> list[tuple[CampaignRow, Log]]:
    if wanted is None:
        return campaigns
    known_names = {row.name for row, _ in campaigns}
    for name in wanted:
        if name not in known_names:
            raise UnknownName("campaign", name, known_names)
    return [(row, log) for row, log in campaigns if row.name in wanted]


def _pages(log: Log) -> Iterator[list[Row]]:
    last, _ = log.head()
    sequence = 0
    while sequence < last:
        page = log.following(sequence, upto=last, limit=_PAGE)
        sequence = page[-1].sequence
        yield page


def _checked(row: CampaignRow, log: Log) -> Iterator[list[Row]]:
    """The whole log; BrokenLog where it is not what was written."""
    _, end = log.head()
    head, salt = beginning(row.tag), None
    erased, faceless = set[int](), set[int]()
    for page in _pages(log):
        odd = next((row.sequence for row in page if not has_types(row)), None)
        if odd is not None:
            raise damaged(odd)
        salt = salt or known(page[0].chain)
        check(page, before=head, salt=salt)
        head = known(page[-1].chain)
        for one in page:
            if one.key is None and one.key_hash is not None:
                erased.add(one.sequence)
            elif one.kind == FORGOTTEN:
                event = decode(one)
                assert isinstance(event, Forgotten)
                erased.difference_update(event.keys)
                faceless.difference_update(event.people)
            if one.person is None and one.person_hash is not None:
                faceless.add(one.sequence)
        yield page
    if head != end:
        raise BrokenLog(f"campaign {row.name!r}: its last event is not the last that was written")
    if erased:
        raise BrokenLog(f"campaign {row.name!r}: the key of event {min(erased)} was removed")
    if faceless:
        raise BrokenLog(f"campaign {row.name!r}: the features of event {min(faceless)} were removed")
