"""`memory://`: the log in this process, gone with it. For tests, trials and simulations."""

from __future__ import annotations

import importlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from operator import attrgetter
from pathlib import Path
from threading import RLock
from typing import Any

from doral.live.errors import CampaignExists, CampaignGone, StorageBusy
from doral.live.events.codec import decode
from doral.live.events.event import Deciding, Event, Settled, known
from doral.live.events.row import FORGOTTEN, MAKES_DECISION, Row
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Pages, Storage, by_decision
from doral.live.storage.service_tables import ActRow, Books, SqlBooks
from doral.live.storage.sqlite_copy import PlainSqlite


class _Kept:
    """One campaign's data, shared by all its logs."""

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        self.lock = RLock()
        self.rows: list[Row] = []  # the one with sequence s is at s - 1
        self.about: dict[int, list[Row]] = {}
        self.keys: dict[bytes, Row] = {}
        self.snapshots: dict[int, bytes] = {}
        self.is_deleted = False

    def append(self, rows: Sequence[Row]) -> None:
        self.rows.extend(rows)
        for row in rows:
            if row.decision is not None:
                self.about.setdefault(row.decision, []).append(row)
            if row.key_hash is not None:
                self.keys[row.key_hash] = row

    def erase(self, *, keys: Sequence[int], people: Sequence[int]) -> None:
        """The keys of these events, and the people of those; their hashes stay."""
        keyless, faceless = set(keys), set(people)
        for sequence in keyless | faceless:
            row = self.rows[sequence - 1]
            row = row._replace(
                key=None if sequence in keyless else row.key, person=None if sequence in faceless else row.person
            )
            self.rows[sequence - 1] = row
            if row.key_hash is not None:
                self.keys[row.key_hash] = row
            if row.decision is not None:
                about = self.about[row.decision]
                about[:] = [row if one.sequence == sequence else one for one in about]
        if people:
            self.snapshots.clear()


class MemoryLog(Log):
    """A view of it; what a transaction has appended is seen by others once it ends."""

    def __init__(self, kept: _Kept, storage: MemoryStorage) -> None:
        self._kept, self._storage = kept, storage
        self._acts: list[ActRow] = []
        self._own = _Kept(kept.row)
        self._erased: tuple[Sequence[int], Sequence[int]] = ((), ())
        self._is_open = False

    def begin(self, *, within_s: float | None = None) -> None:
        if not self._kept.lock.acquire(timeout=-1 if within_s is None else max(0.0, within_s)):
            raise StorageBusy(f"campaign {self._kept.row.name!r}: others have kept it locked; try again")
        self._is_open = True

    def commit(self) -> None:
        self._kept.append(self._own.rows)
        keys, people = self._erased
        if keys or people:
            self._kept.erase(keys=keys, people=people)
        for act in self._acts:
            self._storage.books().note(act)
        self.rollback()

    def rollback(self) -> None:
        if self._is_open:
            if self._own.rows:
                self._own = _Kept(self._kept.row)
            self._is_open, self._acts, self._erased = False, [], ((), ())
            self._kept.lock.release()

    def head(self) -> tuple[int, bytes]:
        if self._kept.is_deleted:
            raise CampaignGone("the campaign is no longer there: it was deleted")
        last = (self._own.rows or self._kept.rows)[-1]
        return last.sequence, known(last.chain)

    def count(self, *, upto: int) -> tuple[int, int]:
        rows = self._some(0, upto)
        return sum(row.decision is not None for row in rows), sum(row.key_hash is not None for row in rows)

    def append(self, rows: Sequence[Row]) -> None:
        self._own.append(rows)

    def erase(self, *, keys: Sequence[int], people: Sequence[int]) -> None:
        self._erased = (keys, people)

    def note(self, act: ActRow) -> None:
        self._acts.append(act)

    def _some(self, after: int, upto: int) -> list[Row]:
        """The rows after one, up to another."""
        kept, own = self._kept.rows, self._own.rows
        if not own or upto <= len(kept):
            return kept[after:upto]
        return kept[after:] + own[max(0, after - len(kept)) : upto - len(kept)]

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Row]:
        return self._some(sequence, sequence + limit if upto is None else min(upto, sequence + limit))

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        kept, own = self._kept.rows, self._own.rows
        n_kept, n = len(kept), len(kept) + len(own)
        return {
            sequence: decode(kept[sequence - 1] if sequence <= n_kept else own[sequence - 1 - n_kept])
            for sequence in sequences
            if 1 <= sequence <= n
        }

    def about(self, decisions: Iterable[int]) -> dict[int, list[Settled]]:
        kept, own = self._kept.about, self._own.about
        wanted = set(decisions)
        if len(wanted) > len(kept) + len(own):
            wanted &= kept.keys() | own.keys()
        rows = [row for decision in wanted for row in (*kept.get(decision, ()), *own.get(decision, ()))]
        return by_decision(map(decode, rows))  # type: ignore[arg-type]

    def about_range(self, first: int, last: int) -> dict[int, list[Settled]]:
        return self.about(range(first, last + 1))

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        kept, own = self._kept.keys, self._own.keys
        return {
            hashed: decode(own[hashed] if hashed in own else kept[hashed])
            for hashed in hashes
            if hashed in kept or hashed in own
        }

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Deciding]:
        found: list[Any] = []
        while sequence < upto and len(found) < limit:
            some = self._some(sequence, min(upto, sequence + limit))
            if not some:
                break
            found += [decode(row) for row in some if row.kind in MAKES_DECISION]
            sequence += len(some)
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return [decode(row) for row in (*self._kept.rows, *self._own.rows) if row.kind in kinds]

    def _open_ones(self, rows: Iterable[Row]) -> Iterator[Deciding]:
        """Decisions of which nothing has become."""
        for row in rows:
            if row.arm is not None and row.state is None and not self.about((row.sequence,)):
                event = decode(row)
                assert isinstance(event, Deciding)
                yield event

    def overdue(
        self,
        *,
        after: int,
        upto: int,
        clock: float,
        age_limit: float,
        repairs: Sequence[tuple[int, float]] = (),
        contexts: Sequence[int] | None = None,
    ) -> tuple[int, list[tuple[int, float, int]]]:
        if age_limit == math.inf:
            return after, []
        last, old = upto, list[Row]()
        for row in self._some(after, upto):
            if row.kind not in MAKES_DECISION or (contexts is not None and row.context not in contexts):
                continue
            if row.deadline is not None:
                continue
            own = row.clock if row.happened is None else row.happened
            made = min([own, *(shown for sequence, shown in repairs if row.sequence < sequence)])
            if not clock - made > age_limit:
                last = row.sequence - 1
                break
            old.append(row)
        counts = Counter((event.arrival.context, event.choice.cost) for event in self._open_ones(old))
        return last, [(context, cost, count) for (context, cost), count in sorted(counts.items())]

    def own_deadlines(self, *, after: int, upto: int) -> list[Deciding]:
        rows = (row for row in self._some(after, upto) if row.kind in MAKES_DECISION and row.deadline is not None)
        return list(self._open_ones(rows))

    def save_snapshot(self, sequence: int, data: bytes) -> None:
        if any(row.kind == FORGOTTEN for row in self._kept.rows[sequence:]):
            return
        snapshots = self._kept.snapshots
        snapshots[sequence] = data
        for old in self.snapshots()[KEPT_SNAPSHOTS:]:
            del snapshots[old]

    def snapshots(self) -> list[int]:
        return sorted(self._kept.snapshots, reverse=True)

    def load_snapshot(self, sequence: int) -> bytes:
        return self._kept.snapshots.get(sequence, b"")

    def remove_all(self) -> None:
        self._kept.is_deleted = True

    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        """Nothing is left."""

    def close(self) -> None:
        """Nothing is open."""


class MemoryStorage(Storage):
    url = "memory://"

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = RLock()
        self._numbers = count(1)
        self._books: Books | None = None

    def create(self, *, name: str, tag: str, first: Row, act: ActRow | None = None) -> CampaignRow:
        with self._lock:
            if name in self._kept:
                raise CampaignExists(f"name = {name!r}: this store has a campaign of that name; choose another")
            row = CampaignRow(id=next(self._numbers), name=name, tag=tag, created_at=first.at)
            kept = _Kept(row)
            kept.append([first])
            self._kept[name] = kept
            if act is not None:
                self.books().note(act)
            return row

    def campaigns(self) -> list[CampaignRow]:
        return sorted((kept.row for kept in self._kept.values()), key=attrgetter("name"))

    def open_log(self, row: CampaignRow) -> Log:
        kept = self._kept.get(row.name)
        if kept is None or kept.row.tag != row.tag:
            raise CampaignGone(f"campaign {row.name!r} is not the one that was opened: it was deleted")
        return MemoryLog(kept, self)

    @contextmanager
    def reading(self) -> Iterator[list[tuple[CampaignRow, Log]]]:
        found: list[tuple[CampaignRow, Log]] = []
        for row in self.campaigns():
            kept = self._kept[row.name]
            with kept.lock:
                copy = _Kept(row)
                copy.rows = list(kept.rows)  # all that a reader of the whole log needs
            found.append((row, MemoryLog(copy, self)))
        yield found

    def restore(self, campaigns: Sequence[tuple[CampaignRow, Pages]]) -> None:
        made: dict[str, _Kept] = {}
        with self._lock:
            for row, pages in campaigns:
                if row.name in self._kept or row.tag in [kept.row.tag for kept in self._kept.values()]:
                    raise CampaignExists(f"name = {row.name!r}: this store has that campaign already; delete it first")
                kept = made[row.name] = _Kept(replace(row, id=next(self._numbers)))
                for page in pages():
                    kept.append(page)
            self._kept.update(made)

    def delete(self, row: CampaignRow) -> None:
        with self._lock:
            log = self.open_log(row)
            with log.writing():
                log.remove_all()
            del self._kept[row.name]

    def books(self) -> Books:
        with self._lock:
            if self._books is None:
                self._books = memory_books()
            return self._books

    def close(self) -> None:
        """The log lives as long as this object."""


_MIGRATIONS = ("0005_service", "0006_alarm_subjects")


class _InMemory(PlainSqlite):
    def close(self) -> None:
        """What is in it would be gone."""


def memory_books() -> SqlBooks:
    """Empty."""
    connection = _InMemory(Path(":memory:"), "file::memory:")
    connection.run_script(_tables())
    return SqlBooks(lambda: connection, has_one_connection=True)


def _tables() -> str:
    """The statements of the migrations that make them."""
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    written = io.StringIO()
    context = MigrationContext.configure(dialect_name="sqlite", opts={"as_sql": True, "output_buffer": written})
    with Operations.context(context):
        for name in _MIGRATIONS:
            importlib.import_module(f"doral.live.migrations.versions.{name}").upgrade()
    return written.getvalue()
