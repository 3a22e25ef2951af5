"""Old, finished decisions move from the database to a Parquet file; what was learned of them stays.

The file is on the disk before the rows leave the database, and both is decided by one commit: whenever a process is
killed, either the database still has all rows, or it knows the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from doral.errors import InvalidValue, UnknownName
from doral.live.chain import check
from doral.live.decision import state_of
from doral.live.drafts import timestamp
from doral.live.errors import ConnectionLost, OutcomeUnknown
from doral.live.events import IS_PENDING, MAKES_DECISION, Event, known
from doral.live.fold import Fold
from doral.live.new_file import new_file, refuse_if_there
from doral.live.paths import given_path
from doral.live.session import Session
from doral.live.storage.archive_file import ArchiveFile, write_events
from doral.live.storage.contract import Log

_PAGE = 5_000
_SUFFIXES = (".parquet",)


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A file with the events `first` to `last` of a campaign.

    Attributes:
        path: Where it is.
        first: Sequence number of its first event.
        last: And of its last.
    """

    path: Path
    first: int
    last: int


def archive(session: Session, path: object, before: object) -> int:
    """Move what is finished, up to the first decision that is not; how many events."""
    target = _full(given_path(path, suffixes=_SUFFIXES, is_text=True))
    refuse_if_there(target)
    upto, limit = session.read(lambda _, fold: (fold.sequence, _limit(fold, before)))
    session.save()  # opening the campaign then needs none of what moves
    finished = _Finished(session, upto, limit)
    pages = iter(finished)
    first_page = next(pages, None)
    if first_page is None:
        return 0

    def all_pages() -> Iterator[list[Event]]:
        yield first_page
        yield from pages

    with new_file(target) as unfinished:
        write_events(unfinished, all_pages())
    file = ArchiveFile(
        first=finished.first,
        last=finished.last,
        path=target,
        before=finished.before,
        after=finished.head,
        salt=finished.salt,
    )
    try:
        file.check()
        session.read(lambda log, _: _register(log, file, upto))
    except (ConnectionLost, OutcomeUnknown):
        raise  # it may be registered
    except BaseException:
        with suppress(OSError):
            target.unlink()
        raise
    return file.last - file.first + 1


def _full(path: Path) -> Path:
    return path.parent.resolve() / path.name


def _limit(fold: Fold, before: object) -> float:
    """On the campaign's clock."""
    if before is None:
        return math.inf
    limit = timestamp("before", before, in_seconds=fold.definition.is_in_seconds) - fold.definition.epoch
    if not fold.definition.is_in_seconds and limit > fold.clock + fold.longest_leap:
        raise InvalidValue("before", before, f"this campaign counts rounds, and its clock shows {fold.clock:g}")
    return limit


def _register(log: Log, file: ArchiveFile, since: int) -> None:
    with log.writing():
        log.head()
        log.move_out(file, since=since)


class _Finished:
    """The events that can go, in pages, each checked: none after the first that is still needed, and never the last."""

    def __init__(self, session: Session, upto: int, limit: float) -> None:
        self._session, self._upto, self._limit = session, upto - 1, limit
        self.first, self.before, self.salt = session.read(_beginning)
        self.last, self.head = self.first - 1, self.before

    def __iter__(self) -> Iterator[list[Event]]:
        while self.last < self._upto:
            page, is_all = self._session.read(self._page)
            if page:
                check(page, before=self.head, salt=self.salt)
                self.last, self.head = page[-1].sequence, known(page[-1].chain)
                yield page
            if not is_all:
                return

    def _page(self, log: Log, fold: Fold) -> tuple[list[Event], bool]:
        """The next events that can go, and whether those after them may, too."""
        events = log.following(self.last, upto=self._upto, limit=_PAGE)
        about = log.about_range(events[0].sequence, events[-1].sequence)
        for place, event in enumerate(events):
            is_open = event.kind in MAKES_DECISION and (
                state_of(event, about.get(event.sequence, ()), fold.expiries) == IS_PENDING
            )
            if is_open or event.clock >= self._limit:
                return events[:place], False
        return events, True


def _beginning(log: Log, fold: Fold) -> tuple[int, bytes, bytes]:
    """The first event that is not archived, and what stands before it."""
    files = log.archives()
    if files:
        return files[-1].last + 1, files[-1].after, fold.salt
    return 2, fold.salt, fold.salt


def archives(session: Session) -> list[Archive]:
    """Where old events are."""
    files = session.read(lambda log, _: log.archives())
    return [Archive(path=file.path, first=file.first, last=file.last) for file in files]


def relocate(session: Session, old: object, new: object) -> None:
    """A file has moved: from now on it is looked for in its new place."""
    was, now = (
        _full(given_path(path, suffixes=_SUFFIXES, field=field, is_text=True))
        for field, path in (("old", old), ("new", new))
    )

    def change(log: Log, fold: Fold) -> None:
        with log.writing():
            log.head()
            files = {file.path: file for file in log.archives()}
            if was not in files:
                raise UnknownName("archive", str(was), map(str, files))
            file = files[was]
            moved = ArchiveFile(
                first=file.first, last=file.last, path=now, before=file.before, after=file.after, salt=fold.salt
            )
            if not now.is_file():
                raise InvalidValue("new", str(now), "there is no such file")
            moved.check()
            log.relocate(file, now)

    session.read(change)
