"""Logs in SQLite and PostgreSQL: the same tables, the same statements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from doral.live.chain import beginning, damaged, is_intact
from doral.live.errors import BrokenLog, CampaignExists, ConnectionLost, OutcomeUnknown, StorageError
from doral.live.events import COLUMNS, MAKES_DECISION, Event, known
from doral.live.storage import migrating, sqlite_file
from doral.live.storage.connection import SCHEMA_LOCK, Connection, Timeouts
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Storage
from doral.live.storage.patience import Patience
from doral.live.storage.sqlite import SqliteConnection
from doral.live.storage.urls import PostgresDatabase, SqliteFile, read_postgres, read_sqlite

_BY_DECISION, _BY_KEY = "events_by_decision", "events_by_key_hash"
_MOST_PARAMETERS = 500  # in one IN (...)


def _read_url(url: str) -> SqliteFile | PostgresDatabase:
    if url.startswith("sqlite:"):
        return read_sqlite(url)
    place = read_postgres(url)
    try:
        from doral.live.storage import postgres
    except ImportError:
        raise StorageError("PostgreSQL needs its driver: pip install 'doral[postgres]'") from None
    postgres.check(place)
    return place


def _connect(place: SqliteFile | PostgresDatabase, timeouts: Timeouts | None = None) -> Connection:
    if isinstance(place, SqliteFile):
        return SqliteConnection(place.path, timeouts)
    from doral.live.storage.postgres import PostgresConnection

    return PostgresConnection(place, timeouts)


class _Statements:
    """SQL with the driver's placeholders and the schema of our tables, made once."""

    def __init__(self, connection: Connection) -> None:
        columns = ", ".join(COLUMNS)
        mark, schema = connection.placeholder, connection.schema
        marks = ", ".join([mark] * (len(COLUMNS) + 1))
        self.mark, self.schema = mark, schema
        self.insert = f"INSERT INTO {schema}events (campaign_id, {columns}) VALUES ({marks})"
        self.set_head = f"UPDATE {schema}campaigns SET last_sequence = {mark}, head = {mark} WHERE id = {mark}"
        self.head = (
            f"SELECT tag, last_sequence, head, (SELECT max(sequence) FROM {schema}events WHERE campaign_id = {mark}) "
            f"FROM {schema}campaigns WHERE id = {mark}"
        )
        self.select = f"SELECT {columns} FROM {schema}events WHERE campaign_id = {mark}"
        self.select_checked = (
            f"SELECT {', '.join(f'one.{column}' for column in COLUMNS)}, "
            f"(SELECT before.chain FROM {schema}events AS before "
            "WHERE before.campaign_id = one.campaign_id AND before.sequence = one.sequence - 1) "
            f"FROM {schema}events AS one{{}} WHERE one.campaign_id = {mark}"
        )
        made = f"FROM {schema}events AS made WHERE campaign_id = {mark} AND sequence > {mark} AND sequence <= {mark}"
        kinds = ", ".join(map(str, MAKES_DECISION))
        self.first_young = f"SELECT min(sequence) {made} AND kind IN ({kinds}){{}} AND NOT ({{}})"
        self.overdue = (
            f"SELECT context, cost, count(*) {made} AND kind IN ({kinds}) AND arm IS NOT NULL AND state IS NULL{{}} "
            f"AND NOT EXISTS (SELECT 1 FROM {schema}events AS later "
            "WHERE later.campaign_id = made.campaign_id AND later.decision = made.sequence) "
            "GROUP BY context, cost ORDER BY context, cost"
        )


class SqlLog(Log):
    def __init__(self, connection: Connection, row: CampaignRow) -> None:
        self._connection, self._row, self._id = connection, row, row.id
        self._sql = _Statements(connection)
        self._salt: bytes | None = None

    def begin(self, *, within_s: float | None = None) -> None:
        self._connection.begin(self._id, within_s=within_s)

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def head(self) -> tuple[int, bytes]:
        rows = self._connection.execute(self._sql.head, (self._id, self._id))
        if not rows:
            raise StorageError(f"campaign {self._row.name!r} is no longer there: it was deleted")
        tag, sequence, head, stored = rows[0]
        if tag != self._row.tag:  # restored in place, from a backup of something else
            raise _not_the_same(self._row)
        if not isinstance(sequence, int) or not isinstance(head, bytes) or sequence != stored:
            raise BrokenLog(
                f"the last event must be {sequence!r}, and the log has events up to {stored!r}: it was damaged; "
                "restore a backup"
            )
        return sequence, head

    def append(self, events: Sequence[Event]) -> None:
        first = (self._id,)
        self._connection.execute_many(self._sql.insert, [first + event for event in events])
        self._connection.execute(self._sql.set_head, (events[-1].sequence, events[-1].chain, self._id))

    def _select(self, condition: str, *parameters: object, index: str = "") -> list[Event]:
        """Events, each of which is what was written."""
        sql = f"{self._sql.select_checked} AND {condition} ORDER BY one.sequence".replace("?", self._sql.mark)
        hint = self._connection.index_hint(index) if index else ""
        rows = self._connection.execute(sql.format(hint), (self._id, *parameters))
        if rows and self._salt is None:
            first = self._connection.execute(f"{self._sql.select} AND sequence = 1", (self._id,))
            self._salt = Event._make(first[0]).chain if first else None
        found = []
        for *columns, before in rows:
            event = Event._make(columns)
            if event.sequence == 1:
                before = beginning(self._row.tag)
            if not is_intact(event, before, self._salt):
                raise damaged(event.sequence)
            found.append(event)
        return found

    def _select_in(self, column: str, values: Iterable[object], index: str = "") -> list[Event]:
        wanted = list(values)
        found: list[Event] = []
        for start in range(0, len(wanted), _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            condition = f"one.{column} IS NOT NULL AND one.{column} IN ({', '.join('?' * len(some))})"
            found += self._select(condition, *some, index=index)
        return found

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        last = sequence + limit if upto is None else min(upto, sequence + limit)
        mark = self._sql.mark
        sql = f"{self._sql.select} AND sequence > {mark} AND sequence <= {mark} ORDER BY sequence"
        return list(map(Event._make, self._connection.execute(sql, (self._id, sequence, last))))

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        return {event.sequence: event for event in self._select_in("sequence", sequences)}

    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        return _by_decision(self._select_in("decision", decisions, _BY_DECISION))

    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        return _by_decision(self._select("one.decision >= ? AND one.decision <= ?", first, last, index=_BY_DECISION))

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        return {known(event.key_hash): event for event in self._select_in("key_hash", hashes, _BY_KEY)}

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        # Decided events are dense: a page of any events that is long enough holds the next decided ones.
        found: list[Event] = []
        kinds = ", ".join(map(str, MAKES_DECISION))
        while sequence < upto and len(found) < limit:
            last = min(upto, sequence + limit)
            page = f"one.sequence > ? AND one.sequence <= ? AND one.kind IN ({kinds})"
            found += self._select(page, sequence, last)
            sequence = last
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return self._select_in("kind", kinds)

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
        run, mark = self._connection.execute, self._sql.mark
        only = "" if contexts is None else f" AND context IN ({', '.join(str(int(one)) for one in contexts)})"
        is_old = f"{mark} - coalesce(happened, clock) > {mark}"
        limits = [clock, age_limit]
        latest = math.inf
        bands = []
        for sequence, shown in reversed(repairs):  # what was made before several of them, was so before the earliest
            latest = min(latest, shown)
            bands.append(f"WHEN sequence < {sequence:d} THEN {latest!r}")
        if bands:
            cap = f"CASE {' '.join(reversed(bands))} ELSE coalesce(happened, clock) END"
            is_old, limits = f"{is_old} OR {mark} - {cap} > {mark}", [*limits, *limits]
        young = run(self._sql.first_young.format(only, is_old), (self._id, after, upto, *limits))[0][0]
        last = upto if young is None else int(young) - 1
        return last, [
            (int(one[0]), float(one[1]), int(one[2]))
            for one in run(self._sql.overdue.format(only), (self._id, after, last))
        ]

    def save_snapshot(self, sequence: int, data: bytes) -> None:
        mark, schema = self._sql.mark, self._sql.schema
        connection = self._connection
        with self.writing():
            connection.execute(
                f"INSERT INTO {schema}snapshots (campaign_id, sequence, data) "
                f"VALUES ({mark}, {mark}, {mark}) ON CONFLICT DO NOTHING",
                (self._id, sequence, data),
            )
            for old in self.snapshots()[KEPT_SNAPSHOTS:]:
                connection.execute(
                    f"DELETE FROM {schema}snapshots WHERE campaign_id = {mark} AND sequence = {mark}",
                    (self._id, old),
                )

    def snapshots(self) -> list[int]:
        mark, schema = self._sql.mark, self._sql.schema
        sql = f"SELECT sequence FROM {schema}snapshots WHERE campaign_id = {mark} ORDER BY sequence DESC"
        return [row[0] for row in self._connection.execute(sql, (self._id,))]

    def load_snapshot(self, sequence: int) -> bytes:
        mark, schema = self._sql.mark, self._sql.schema
        sql = f"SELECT data FROM {schema}snapshots WHERE campaign_id = {mark} AND sequence = {mark}"
        rows = self._connection.execute(sql, (self._id, sequence))
        return bytes(rows[0][0]) if rows else b""

    def close(self) -> None:
        self._connection.close()


def _not_the_same(row: CampaignRow) -> StorageError:
    return StorageError(
        f"campaign {row.name!r} is not the one that was opened: the database was replaced or restored since; nothing "
        "was changed: open the store again"
    )


def _by_decision(events: Iterable[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in events:
        assert event.decision is not None
        found.setdefault(event.decision, []).append(event)
    return found


class SqlStorage(Storage):
    """A database, brought up to date when it is opened."""

    def __init__(self, url: str, *, create: bool = True, timeouts: Timeouts | None = None) -> None:
        self._place = _read_url(url)
        self._timeouts = timeouts or Timeouts()
        self.url = self._place.shown
        if isinstance(self._place, SqliteFile):
            _find_or_make(self._place.path, create=create)
        connection = _connect(self._place, self._timeouts)
        try:
            migrating.bring_up_to_date(self._place, connection, self._timeouts)
        finally:
            connection.close()

    def _opened(self) -> Connection:
        """Another connection to what was opened; a file that has become something else since is not touched."""
        if isinstance(self._place, SqliteFile):
            sqlite_file.check_there(self._place.path)
            found = sqlite_file.look_into(self._place.path, migrating.REVISIONS).revision
            if found != migrating.HEAD:
                raise StorageError(
                    f"{self._place.path}: is not the database that was opened, which had schema {migrating.HEAD} "
                    f"(this one: {found or 'none'}); nothing was changed: put it back, or open the store again"
                )
        return _connect(self._place, self._timeouts)

    def create(self, *, name: str, tag: str, first: Event) -> CampaignRow:
        patience = Patience()
        is_open = False  # whether an attempt of ours may have been stored
        while True:
            try:
                connection = self._opened()
                try:
                    connection.begin(SCHEMA_LOCK, within_s=patience.left_s)
                    try:
                        campaign_id = self._find(connection, name, tag) if is_open else None
                        if campaign_id is None:
                            campaign_id = self._insert(connection, name, tag, first)
                        is_open = True
                        connection.commit()
                    except BaseException:
                        connection.rollback()
                        raise
                finally:
                    connection.close()
            except ConnectionLost as error:
                try:
                    patience.wait(error)
                except ConnectionLost:
                    if not is_open:
                        raise
                    raise OutcomeUnknown(
                        f"{error}; whether campaign {name!r} was made is not known: see whether the store lists it"
                    ) from error
            else:
                return CampaignRow(id=campaign_id, name=name, tag=tag, created_at=first.at)

    def _find(self, connection: Connection, name: str, tag: str) -> int | None:
        """The campaign that an attempt of ours has made, though its answer was lost."""
        mark, schema = connection.placeholder, connection.schema
        sql = f"SELECT id FROM {schema}campaigns WHERE name = {mark} AND tag = {mark}"
        rows = connection.execute(sql, (name, tag))
        return int(rows[0][0]) if rows else None

    def _insert(self, connection: Connection, name: str, tag: str, first: Event) -> int:
        mark, schema = connection.placeholder, connection.schema
        if connection.execute(f"SELECT 1 FROM {schema}campaigns WHERE name = {mark}", (name,)):
            raise CampaignExists(f"name = {name!r}: this store has a campaign of that name; choose another")
        rows = connection.execute(
            f"INSERT INTO {schema}campaigns (name, tag, created_at, last_sequence, head) "
            f"VALUES ({mark}, {mark}, {mark}, {mark}, {mark}) RETURNING id",
            (name, tag, first.at, first.sequence, first.chain),
        )
        campaign_id = int(rows[0][0])
        connection.execute_many(_Statements(connection).insert, [(campaign_id, *first)])
        return campaign_id

    def campaigns(self) -> list[CampaignRow]:
        patience = Patience()
        while True:
            try:
                connection = self._opened()
                try:
                    schema = connection.schema
                    rows = connection.execute(f"SELECT id, name, tag, created_at FROM {schema}campaigns ORDER BY name")
                finally:
                    connection.close()
            except ConnectionLost as error:
                patience.wait(error)
            else:
                return [CampaignRow(id=row[0], name=row[1], tag=row[2], created_at=row[3]) for row in rows]

    def open_log(self, row: CampaignRow) -> Log:
        connection = self._opened()
        try:
            sql = f"SELECT name, tag FROM {connection.schema}campaigns WHERE id = {connection.placeholder}"
            found = connection.execute(sql, (row.id,))
            if found != [(row.name, row.tag)]:
                raise _not_the_same(row)
        except BaseException:
            connection.close()
            raise
        return SqlLog(connection, row)

    def close(self) -> None:
        """Connections belong to logs, and each closes its own."""


def _find_or_make(path: Path, *, create: bool) -> None:
    """A file that is there is looked at first: what is not ours is not touched."""
    if create:
        sqlite_file.make(path)
    sqlite_file.check_there(path)
    sqlite_file.look_into(path, migrating.REVISIONS)
