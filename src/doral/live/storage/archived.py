"""A log whose older events are in files: they are read there when they are asked for, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from doral.live.chain import Placed
from doral.live.errors import ArchiveMissing, BrokenLog, CampaignGone, StorageBusy, StorageError
from doral.live.events import FORGOTTEN, MAKES_DECISION, Event, known
from doral.live.storage.archive_file import ArchiveFile
from doral.live.storage.connection import Connection
from doral.live.storage.contract import PAGE_EVENTS, CampaignRow, Tail
from doral.live.storage.sql_log import SqlLog

_KEYS_AT_ONCE = 500  # asked for by one statement
_ROWS_AT_ONCE = 10_000  # removed by one statement: none takes long
_TABLES = ("events", "snapshots", "archives", "archived_keys")
_KEYS_DAMAGED = "the table of archived keys was damaged; restore a backup"
T = TypeVar("T")


class ArchivedLog(SqlLog):
    """Events 2 to `archived` are in files; the first event and the last one are always in the database."""

    def __init__(self, connection: Connection, row: CampaignRow, *, is_fixed: bool = False) -> None:
        super().__init__(connection, row)
        self._files: list[ArchiveFile] = []
        self._is_fixed = is_fixed  # nobody can archive meanwhile: we hold the lock, or look at one moment
        self._places: tuple[object, ...] = ()

    # --- what is where ----------------------------------------------------------------------------------------------

    def begin(self, *, within_s: float | None = None) -> None:
        super().begin(within_s=within_s)
        self._is_fixed = True

    def begin_after(self, sequence: int, head: bytes, *, within_s: float | None = None) -> Tail | None:
        found = super().begin_after(sequence, head, within_s=within_s)
        self._is_fixed = True
        return found

    def append_and_commit(self, placed: Placed, packed: object = None) -> None:
        super().append_and_commit(placed, packed)
        self._is_fixed = False

    def commit(self) -> None:
        super().commit()
        self._is_fixed = False

    def rollback(self) -> None:
        self._is_fixed = False
        super().rollback()

    def head(self) -> tuple[int, bytes]:
        found = super().head()
        if self.archived != self._upto:
            self._find_files()
            if self.archived != self._upto:
                raise BrokenLog(f"events up to {self.archived} are archived, and there are files up to {self._upto}")
        return found

    @property
    def _upto(self) -> int:
        return self._files[-1].last if self._files else 0

    def _find_files(self) -> bool:
        """Read again where old events are; whether that has changed."""
        sql = (
            "SELECT first, last, path, chain_before, chain_after, keys, "
            "(SELECT count(*) FROM {0}archived_keys WHERE campaign_id = {1}) "
            "FROM {0}archives WHERE campaign_id = {1} ORDER BY first"
        )
        rows = self._connection.execute(sql.format(self._sql.schema, self._sql.mark), (self._id, self._id))
        if self._places == tuple(rows):
            return False
        beginning = SqlLog.after(self, 0, limit=1)
        if not beginning:
            raise BrokenLog("the log has no beginning: it was damaged; restore a backup")
        salt = beginning[0].chain or b""
        files: list[ArchiveFile] = []
        expected, n_keys = 2, 0
        for first, last, path, before, after, keys, _ in rows:
            is_sound = first == expected and isinstance(last, int) and last >= first and isinstance(path, str)
            if not (is_sound and isinstance(before, bytes) and isinstance(after, bytes) and isinstance(keys, int)):
                raise BrokenLog(f"the table of archives was damaged at event {expected}; restore a backup")
            files.append(ArchiveFile(first=first, last=last, path=Path(path), before=before, after=after, salt=salt))
            expected, n_keys = last + 1, n_keys + keys
        if rows and n_keys != rows[0][-1]:
            raise BrokenLog(f"{n_keys} keys are archived, and {rows[0][-1]} of them known: {_KEYS_DAMAGED}")
        self._places, self._files = tuple(rows), files
        self._before = {1: self._before[1], **{file.last + 1: file.after for file in files}}
        return True

    def _looking(self, ask: Callable[[], T]) -> T:
        """Outside a transaction somebody may archive between two looks, or a file may have been moved."""
        while True:
            try:
                found = ask()
            except (ArchiveMissing, BrokenLog):
                if self._find_files():
                    continue
                raise
            if self._is_fixed or not self._has_moved():
                return found

    def _has_moved(self) -> bool:
        sql = f"SELECT archived FROM {self._sql.schema}campaigns WHERE id = {self._sql.mark}"
        rows = self._connection.execute(sql, (self._id,))
        return bool(rows) and (rows[0][0] or 0) != self._upto and self._find_files()

    def _archived(self, first: int, last: int) -> Iterable[Event]:
        return chain.from_iterable(file.between(first, last) for file in self._files)

    # --- reading ----------------------------------------------------------------------------------------------------

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        return self._looking(lambda: self._after(sequence, upto, limit))

    def _after(self, sequence: int, upto: int | None, limit: int) -> list[Event]:
        if sequence >= self._upto:
            return super().after(sequence, upto=upto, limit=limit)
        last = sequence + limit if upto is None else min(upto, sequence + limit)
        first = super().after(0, upto=min(1, last)) if sequence == 0 else []
        live = super().after(self._upto, upto=last) if last > self._upto else []
        return [*first, *self._archived(sequence + 1, last), *live]

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        wanted = list(sequences)
        return self._looking(lambda: self._events(wanted))

    def _events(self, sequences: Sequence[int]) -> dict[int, Event]:
        old = [sequence for sequence in sequences if 1 < sequence <= self._upto]
        found = super().events(sequences if not old else [one for one in sequences if one < 2 or one > self._upto])
        for file in self._files if old else ():
            found.update((event.sequence, event) for event in file.events(old))
        return found

    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        wanted = list(decisions)
        return self._looking(lambda: self._with_old(wanted, super(ArchivedLog, self).about(wanted)))

    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        def ask() -> dict[int, list[Event]]:
            old = range(max(first, 2), min(last, self._upto) + 1)
            return self._with_old(old, super(ArchivedLog, self).about_range(first, last))

        return self._looking(ask)

    def _with_old(self, decisions: Sequence[int], live: dict[int, list[Event]]) -> dict[int, list[Event]]:
        """What is said in files stands before what is said in the database."""
        old = [decision for decision in decisions if 1 < decision <= self._upto]
        found: dict[int, list[Event]] = {}
        for file in self._files:
            if old and file.last > min(old):
                for event in file.about(old):
                    found.setdefault(known(event.decision), []).append(event)
        for decision, events in live.items():
            found.setdefault(decision, []).extend(events)
        return found

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        wanted = list(hashes)
        return self._looking(lambda: self._by_keys(wanted))

    def _by_keys(self, hashes: Sequence[bytes]) -> dict[bytes, Event]:
        found = super().by_keys(hashes)
        if not self._files:
            return found
        schema, mark = self._sql.schema, self._sql.mark
        sql = f"SELECT sequence FROM {schema}archived_keys WHERE campaign_id = {mark} AND key_hash = {mark}"
        for hashed in hashes:
            rows = [] if hashed in found else self._connection.execute(sql, (self._id, hashed))
            if rows:
                event = self._events([rows[0][0]]).get(rows[0][0])
                if event is None or event.key_hash != hashed:
                    raise BrokenLog(f"event {rows[0][0]!r} does not have the key by which it was found")
                found[hashed] = event
        return found

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        return self._looking(lambda: self._decided_after(sequence, upto, limit))

    def _decided_after(self, sequence: int, upto: int, limit: int) -> list[Event]:
        found: list[Event] = []
        for event in self._archived(sequence + 1, upto) if sequence < self._upto else ():
            if event.kind in MAKES_DECISION:
                found.append(event)
                if len(found) == limit:
                    return found
        following = max(sequence, self._upto)
        return found + super().decided_after(following, upto=upto, limit=limit - len(found))

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        def ask() -> list[Event]:
            live = super(ArchivedLog, self).of_kinds(kinds)
            old = [event for file in self._files for event in file.of_kinds(kinds)]
            return [*live[:1], *old, *live[1:]] if live[:1] and live[0].sequence == 1 else [*old, *live]

        return self._looking(ask)

    def check_indexes(self) -> None:
        super().check_indexes()
        self._looking(self._check_keys)

    def _check_keys(self) -> None:
        """The keys of archived events are looked up in a table, which must say what the files say."""
        schema, mark = self._sql.schema, self._sql.mark
        n_keys = 0
        for first in range(2, self._upto + 1, _KEYS_AT_ONCE):
            last = min(first + _KEYS_AT_ONCE - 1, self._upto)
            there = {known(one.key_hash): one.sequence for one in self._archived(first, last) if one.key_hash}
            some = f"key_hash IN ({', '.join([mark] * len(there))})"
            sql = f"SELECT key_hash, sequence FROM {schema}archived_keys WHERE campaign_id = {mark} AND {some}"
            noted = dict(self._connection.execute(sql, (self._id, *there))) if there else {}
            if noted != there:
                wrong = min(one for hashed, one in there.items() if noted.get(hashed) != one)
                raise BrokenLog(f"the key of event {wrong} does not lead to it: {_KEYS_DAMAGED}")
            n_keys += len(there)
        sql = f"SELECT count(*) FROM {schema}archived_keys WHERE campaign_id = {mark}"
        noted_keys = self._connection.execute(sql, (self._id,))[0][0]
        if self._files and noted_keys != n_keys:
            raise BrokenLog(f"{n_keys} keys are archived, and {noted_keys} of them known: {_KEYS_DAMAGED}")

    # --- moving, forgetting, removing -------------------------------------------------------------------------------

    def archives(self) -> list[ArchiveFile]:
        self._find_files()  # one may have moved
        return list(self._files)

    def move_out(self, file: ArchiveFile, *, since: int) -> None:
        run, schema, mark = self._connection.execute, self._sql.schema, self._sql.mark
        newest = self._files[-1] if self._files else None
        if newest is not None and (newest.last, newest.path) == (file.last, file.path):
            return  # an attempt of ours was stored, and its answer lost
        forgotten = (
            f"SELECT 1 FROM {schema}events WHERE campaign_id = {mark} AND sequence > {mark} AND kind = {FORGOTTEN}"
        )
        if file.first != max(self._upto, 1) + 1 or run(forgotten, (self._id, since)):
            raise StorageBusy("others have archived, or forgotten keys, meanwhile; nothing was changed: try again")
        some = f"campaign_id = {mark} AND sequence >= {mark} AND sequence <= {mark}"
        for first in range(file.first, file.last + 1, _ROWS_AT_ONCE):
            these = (self._id, first, min(first + _ROWS_AT_ONCE - 1, file.last))
            run(
                f"INSERT INTO {schema}archived_keys (campaign_id, key_hash, sequence) "
                f"SELECT campaign_id, key_hash, sequence FROM {schema}events WHERE {some} AND key_hash IS NOT NULL",
                these,
            )
            run(f"DELETE FROM {schema}events WHERE {some}", these)
        run(
            f"INSERT INTO {schema}archives (campaign_id, first, last, path, chain_before, chain_after, keys) "
            f"SELECT {', '.join([mark] * 6)}, count(*) FROM {schema}archived_keys "
            f"WHERE campaign_id = {mark} AND sequence >= {mark}",
            (self._id, file.first, file.last, str(file.path), file.before, file.after, self._id, file.first),
        )
        run(f"UPDATE {schema}campaigns SET archived = {mark} WHERE id = {mark}", (file.last, self._id))

    def relocate(self, file: ArchiveFile, path: Path) -> None:
        schema, mark = self._sql.schema, self._sql.mark
        sql = f"UPDATE {schema}archives SET path = {mark} WHERE campaign_id = {mark} AND first = {mark}"
        self._connection.execute(sql, (str(path), self._id, file.first))

    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        for file in self._files:
            keyless, faceless = (
                [one for one in given if file.first <= one <= file.last] for given in (sequences, people)
            )
            try:
                file.without(keys=keyless, people=faceless)
            except OSError as error:
                raise StorageError(
                    f"{file.path}: {error.strerror or error}; it is erased in the database, and not yet in this "
                    "archive: make the file and its folder writable, and ask again"
                ) from error
        super().wipe(sequences, people=people)

    def remove_all(self) -> None:
        run, schema, mark = self._connection.execute, self._sql.schema, self._sql.mark
        self._connection.be_thorough()
        if not run(f"SELECT 1 FROM {schema}campaigns WHERE id = {mark} AND tag = {mark}", (self._id, self._tag)):
            raise CampaignGone("the campaign is no longer there: it was deleted")
        # Whatever is wrong with it: a damaged campaign has to go before its backup is restored.
        some = f"SELECT sequence FROM {schema}events WHERE campaign_id = {mark} ORDER BY sequence LIMIT {{}}"
        while run(some.format(1), (self._id,)):
            sql = (
                f"DELETE FROM {schema}events WHERE campaign_id = {mark} AND sequence IN ({some.format(_ROWS_AT_ONCE)})"
            )
            run(sql, (self._id, self._id))
        for table in _TABLES:
            run(f"DELETE FROM {schema}{table} WHERE campaign_id = {mark}", (self._id,))
        run(f"DELETE FROM {schema}campaigns WHERE id = {mark}", (self._id,))
