"""Logs in SQLite and PostgreSQL: the same tables, the same statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from doral.live.errors import CampaignExists, ConnectionLost, OutcomeUnknown, StorageError
from doral.live.events import COLUMNS, DECIDED, Event
from doral.live.storage import migrating, sqlite_file
from doral.live.storage.connection import SCHEMA_LOCK, Connection, Timeouts
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Storage
from doral.live.storage.patience import Patience
from doral.live.storage.sqlite import SqliteConnection
from doral.live.storage.urls import PostgresDatabase, SqliteFile, read_postgres, read_sqlite

_BY_DECISION, _BY_KEY = "events_by_decision", "events_by_key"
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
        self.last = f"SELECT coalesce(max(sequence), 0) FROM {schema}events WHERE campaign_id = {mark}"
        self.select = f"SELECT {columns} FROM {schema}events{{}} WHERE campaign_id = {mark}"
        self.overdue_last = (
            f"SELECT coalesce(max(sequence), 0) FROM {schema}events "
            f"WHERE campaign_id = {mark} AND sequence > {mark} AND kind = {DECIDED} AND {mark} - clock > {mark}{{}}"
        )
        self.overdue = (
            f"SELECT arm, count(*) FROM {schema}events AS made "
            f"WHERE campaign_id = {mark} AND sequence > {mark} AND sequence <= {mark} "
            f"AND kind = {DECIDED} AND arm IS NOT NULL{{}} AND NOT EXISTS "
            f"(SELECT 1 FROM {schema}events AS later "
            "WHERE later.campaign_id = made.campaign_id AND later.decision = made.sequence) "
            "GROUP BY arm ORDER BY arm"
        )


class SqlLog(Log):
    def __init__(self, connection: Connection, campaign_id: int) -> None:
        self._connection, self._id = connection, campaign_id
        self._sql = _Statements(connection)

    def begin(self, *, within_s: float | None = None) -> None:
        self._connection.begin(self._id, within_s=within_s)

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def last_sequence(self) -> int:
        return int(self._connection.execute(self._sql.last, (self._id,))[0][0])

    def append(self, events: Sequence[Event]) -> None:
        head = (self._id,)
        self._connection.execute_many(self._sql.insert, [head + event for event in events])

    def _select(self, condition: str, *parameters: object, index: str = "") -> list[Event]:
        sql = f"{self._sql.select} AND {condition} ORDER BY sequence".replace("?", self._sql.mark)
        hint = self._connection.index_hint(index) if index else ""
        return list(map(Event._make, self._connection.execute(sql.format(hint), (self._id, *parameters))))

    def _select_in(self, column: str, values: Iterable[object], index: str = "") -> list[Event]:
        wanted = list(values)
        found: list[Event] = []
        for start in range(0, len(wanted), _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            condition = f"{column} IS NOT NULL AND {column} IN ({', '.join('?' * len(some))})"
            found += self._select(condition, *some, index=index)
        return found

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        last = sequence + limit if upto is None else min(upto, sequence + limit)
        return self._select("sequence > ? AND sequence <= ?", sequence, last)

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        return {event.sequence: event for event in self._select_in("sequence", sequences)}

    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        return _by_decision(self._select_in("decision", decisions, _BY_DECISION))

    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        return _by_decision(self._select("decision >= ? AND decision <= ?", first, last, index=_BY_DECISION))

    def by_keys(self, keys: Iterable[str]) -> dict[str, Event]:
        return {event.key: event for event in self._select_in("key", keys, _BY_KEY) if event.key is not None}

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        # Decided events are dense: a page of any events that is long enough holds the next decided ones.
        found: list[Event] = []
        while sequence < upto and len(found) < limit:
            last = min(upto, sequence + limit)
            found += self._select(f"sequence > ? AND sequence <= ? AND kind = {DECIDED}", sequence, last)
            sequence = last
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return self._select_in("kind", kinds)

    def overdue(
        self, *, after: int, clock: float, age_limit: float, contexts: Sequence[int] | None = None
    ) -> tuple[int, list[tuple[int, int]]]:
        run = self._connection.execute
        only = "" if contexts is None else f" AND context IN ({', '.join(str(int(one)) for one in contexts)})"
        last = int(run(self._sql.overdue_last.format(only), (self._id, after, clock, age_limit))[0][0])
        if last == 0:
            return after, []
        return last, [(arm, count) for arm, count in run(self._sql.overdue.format(only), (self._id, after, last))]

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
            f"INSERT INTO {schema}campaigns (name, tag, created_at) VALUES ({mark}, {mark}, {mark}) RETURNING id",
            (name, tag, first.at),
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
                raise StorageError(
                    f"campaign {row.name!r} of {self.url} is not the one that was opened: the database was replaced or "
                    "restored since; open the store again"
                )
        except BaseException:
            connection.close()
            raise
        return SqlLog(connection, row.id)

    def close(self) -> None:
        """Connections belong to logs, and each closes its own."""


def _find_or_make(path: Path, *, create: bool) -> None:
    """A file that is there is looked at first: what is not ours is not touched."""
    if create:
        sqlite_file.make(path)
    sqlite_file.check_there(path)
    sqlite_file.look_into(path, migrating.REVISIONS)
