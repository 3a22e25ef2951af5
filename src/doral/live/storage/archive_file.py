"""Old events in a Parquet file, all columns as they were in the log.

The chain goes through the files as it does through the log: what it was before the first and after the last event of a
file is kept in the database, so that a file that was changed is noticed by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doral._files import replacing
from doral.live.chain import check
from doral.live.errors import ArchiveMissing, BrokenLog
from doral.live.events import COLUMNS, Event, known
from doral.live.parquet import write_parquet

if TYPE_CHECKING:
    import polars as pl

_PAGE = 2_000  # rows that are read, checked and remembered together
_REMEMBERED = 8  # pages
_TEXTS, _BYTES = ("key", "data", "person"), ("available", "key_hash", "chain", "person_hash")
_NUMBERS = (
    "clock", "at", "cost", "value", "price", "probability", "reward", "previous", "actual_cost", "previous_cost",
    "happened", "delay", "weight", "deadline",
)  # fmt: skip


def write_events(path: Path, pages: Iterable[Sequence[Event]]) -> None:
    """Into a file that is there and empty."""
    with path.open("rb+") as file:
        write_parquet(file, map(_frame, pages), _schema(), group_rows=_PAGE)


class ArchiveFile:
    """The events `first` to `last`; `before` and `after` are the checksums around them."""

    def __init__(self, *, first: int, last: int, path: Path, before: bytes, after: bytes, salt: bytes) -> None:
        self.first, self.last, self.path = first, last, path
        self.before, self.after, self._salt = before, after, salt
        self._seen: tuple[int, ...] = ()
        self._pages: dict[int, list[Event]] = {}

    def between(self, first: int, last: int) -> Iterator[Event]:
        """Those of these events that are in this file, in their order."""
        first, last = max(first, self.first), min(last, self.last)
        while first <= last:
            index = (first - self.first) // _PAGE
            start = self.first + index * _PAGE
            page = self._page(index)
            yield from page[first - start : last - start + 1]
            first = start + len(page)

    def events(self, sequences: Iterable[int]) -> list[Event]:
        """Those of these events that are in this file."""
        return [event for one in sequences for event in self.between(one, one)]

    def about(self, decisions: Sequence[int]) -> list[Event]:
        """Events about these decisions, in their order."""
        return self._where("decision", decisions)

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return self._where("kind", kinds)

    def check(self) -> None:
        """ArchiveMissing or BrokenLog unless it begins and ends as it must."""
        self.events((self.first, self.last))

    def without(self, *, keys: Iterable[int], people: Iterable[int]) -> None:
        """Write the file anew, without keys of events, and without who others are. It is replaced in one step."""
        keyless, faceless = set(keys), set(people)
        is_there = any(event.key is not None for event in self.events(keyless))
        if not is_there and not any(event.person is not None for event in self.events(faceless)):
            return
        with replacing(self.path, is_private=True) as file:
            write_parquet(file, map(_frame, self._pages_without(keyless, faceless)), _schema(), group_rows=_PAGE)

    def _pages_without(self, keyless: set[int], faceless: set[int]) -> Iterator[list[Event]]:
        for index in range((self.last - self.first) // _PAGE + 1):
            page = [one._replace(key=None) if one.sequence in keyless else one for one in self._page(index)]
            yield [one._replace(person=None) if one.sequence in faceless else one for one in page]

    def _page(self, index: int) -> list[Event]:
        self._look()
        if index in self._pages:
            return self._pages[index]
        start = index * _PAGE
        count = min(_PAGE, self.last - self.first + 1 - start)
        overlap = 1 if index else 0  # the event before it
        rows = self._ask(lambda frame: _all_columns(frame).slice(start - overlap, count + overlap))
        events = list(map(Event._make, rows))
        wanted = range(self.first + start - overlap, self.first + start + count)
        if [event.sequence for event in events] != list(wanted):
            raise self._altered("lacks events")
        before = known(events.pop(0).chain) if overlap else self.before
        try:
            check(events, before=before, salt=self._salt)
        except BrokenLog as error:
            raise self._altered(str(error)) from error
        if events[-1].sequence == self.last and events[-1].chain != self.after:
            raise self._altered(f"event {self.last} is not what was written")
        while len(self._pages) >= _REMEMBERED:
            del self._pages[next(iter(self._pages))]
        self._pages[index] = events
        return events

    def _where(self, column: str, wanted: Sequence[int]) -> list[Event]:
        import polars as pl

        self._look()
        places = pl.Series(list(wanted), dtype=pl.Int64)
        rows = self._ask(lambda frame: frame.filter(pl.col(column).is_in(places.implode())).select("sequence"))
        return self.events(row[0] for row in rows)

    def _look(self) -> None:
        """Is it there, and is it the one of which pages are remembered?"""
        try:
            now = self.path.stat()
        except OSError as error:
            raise ArchiveMissing(
                f"{self.path}: cannot be read ({error.strerror}), and holds the events {self.first} to {self.last}, "
                "which are needed for this: put the archive back, or say with relocate_archive() where it is now"
            ) from None
        seen = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
        if seen != self._seen:
            self._seen, self._pages = seen, {}

    def _ask(self, question: Any) -> list[tuple[Any, ...]]:
        import polars as pl

        try:
            rows: list[tuple[Any, ...]] = question(pl.scan_parquet(self.path, glob=False)).collect().rows()
        except (pl.exceptions.PolarsError, OSError) as error:
            self._look()
            raise self._altered(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        return rows

    def _altered(self, how: str) -> BrokenLog:
        return BrokenLog(
            f"{self.path}: is not the archive of the events {self.first} to {self.last} as it was written ({how}): put "
            "the right file back, or restore a backup"
        )


def _frame(events: Sequence[Event]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(map(tuple, events)), schema=_schema(), orient="row")


def _all_columns(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Files of an earlier version lack the last ones."""
    import polars as pl

    there = frame.collect_schema().names()
    return frame.select(
        [pl.col(name) if name in there else pl.lit(None, dtype=kind).alias(name) for name, kind in _schema().items()]
    )


def _schema() -> dict[str, Any]:
    import polars as pl

    kinds = {**dict.fromkeys(_TEXTS, pl.String), **dict.fromkeys(_BYTES, pl.Binary)}
    kinds.update(dict.fromkeys(_NUMBERS, pl.Float64))
    return {name: kinds.get(name, pl.Int64) for name in COLUMNS}
