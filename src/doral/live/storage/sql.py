"""Stores in SQLite and PostgreSQL: connections, and the campaigns of a database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageError
from doral.live.events.row import Row
from doral.live.storage import old_archives, sqlite_file
from doral.live.storage.connection import SCHEMA_LOCK, Connection, Retry, Timeouts, refuse_child
from doral.live.storage.contract import CampaignRow, Log, Pages, Storage
from doral.live.storage.schema import HEAD, REVISIONS, bring_up_to_date
from doral.live.storage.service_tables import ActRow, Books, SqlBooks, note_in
from doral.live.storage.sql_log import SqlLog, gone, put_in, rows_of
from doral.live.storage.sqlite import SqliteConnection
from doral.live.storage.urls import PostgresDatabase, SqliteFile, read_postgres, read_sqlite

if TYPE_CHECKING:
    from doral.live.storage.postgres import PostgresPool


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


class SqlStorage(Storage):
    """A database, brought up to date when it is opened."""

    def __init__(self, url: str, *, create: bool = True, timeouts: Timeouts | None = None) -> None:
        self._place = _read_url(url)
        self._timeouts = timeouts or Timeouts()
        self.url = self._place.shown
        self._pid = os.getpid()
        if isinstance(self._place, SqliteFile):
            _find_or_make(self._place.path, create=create)
        connection = _connect(self._place, self._timeouts)
        try:
            bring_up_to_date(self._place, connection, self._timeouts)
            if not connection.is_read_only:
                old_archives.bring_back(connection)
        finally:
            connection.close()
        self._books = SqlBooks(self._connected)  # always open: keys are looked up for every request
        self._pool: PostgresPool | None = None
        if not isinstance(self._place, SqliteFile):
            from doral.live.storage.postgres import PostgresPool

            self._pool = PostgresPool(self._place, self._timeouts)
            self.shares_connections = True

    def lend_at_most(self, connections: int) -> None:
        if self._pool is not None:
            self._pool.lend_at_most(connections)

    def _opened(self) -> Connection:
        """A connection for one request; where they are shared, one that may have been used before."""
        refuse_child(self._pid)
        if self._pool is None or isinstance(self._place, SqliteFile):
            return self._connected()
        from doral.live.storage.postgres import PostgresConnection

        return PostgresConnection(self._place, self._timeouts, self._pool)

    def _connected(self) -> Connection:
        """Another connection to what was opened; a file that has become something else since is not touched."""
        if isinstance(self._place, SqliteFile):
            sqlite_file.check_there(self._place.path)
            found = sqlite_file.look_into(self._place.path, REVISIONS).revision
            if found != HEAD:
                raise StorageError(
                    f"{self._place.path}: is not the database that was opened, which had schema {HEAD} "
                    f"(this one: {found or 'none'}); nothing was changed: put it back, or open the store again"
                )
        return _connect(self._place, self._timeouts)

    def create(self, *, name: str, tag: str, first: Row, act: ActRow | None = None) -> CampaignRow:
        row = CampaignRow(id=0, name=name, tag=tag, created_at=first.at)
        retry = Retry()
        is_open = False  # whether an attempt of ours may have been stored
        while True:
            try:
                connection = self._opened()
                try:
                    connection.begin(SCHEMA_LOCK, within_s=retry.left_s)
                    try:
                        campaign_id = self._find(connection, name, tag) if is_open else None
                        if campaign_id is None:
                            campaign_id = put_in(connection, row, lambda: iter([[first]]), if_taken="choose another")
                            if act is not None:
                                note_in(connection, act)
                        is_open = True
                        connection.commit()
                    except BaseException:
                        connection.rollback()
                        raise
                finally:
                    connection.close()
            except ConnectionLost as error:
                try:
                    retry.wait(error)
                except ConnectionLost:
                    if not is_open:
                        raise
                    raise OutcomeUnknown(
                        f"{error}; whether campaign {name!r} was made is not known: see whether the store lists it"
                    ) from error
            else:
                return replace(row, id=campaign_id)

    def _find(self, connection: Connection, name: str, tag: str) -> int | None:
        """The campaign that an attempt of ours has made, though its answer was lost."""
        mark, schema = connection.placeholder, connection.schema
        sql = f"SELECT id FROM {schema}campaigns WHERE name = {mark} AND tag = {mark}"
        rows = connection.execute(sql, (name, tag))
        return int(rows[0][0]) if rows else None

    def campaigns(self) -> list[CampaignRow]:
        return self._looked(rows_of)

    def find(self, name: str) -> CampaignRow | None:
        return next(iter(self._looked(lambda connection: rows_of(connection, name))), None)

    def heads(self) -> dict[str, int]:
        return {row.name: row.last_event or 0 for row in self._looked(_rows_with_heads)}

    def _looked(self, look: Callable[[Connection], list[CampaignRow]]) -> list[CampaignRow]:
        retry = Retry()
        while True:
            try:
                connection = self._opened()
                try:
                    return look(connection)
                finally:
                    connection.close()
            except ConnectionLost as error:
                retry.wait(error)

    def open_log(self, row: CampaignRow) -> Log:
        connection = self._opened()
        try:
            # By its tag: a campaign that was restored has another number than before.
            now = self._find(connection, row.name, row.tag)
            if now is None:
                raise gone(row)
        except BaseException:
            connection.close()
            raise
        return SqlLog(connection, replace(row, id=now))

    @contextmanager
    def reading(self) -> Iterator[list[tuple[CampaignRow, Log]]]:
        connection = self._opened()
        try:
            connection.begin_reading()
            yield [(row, SqlLog(connection, row)) for row in _rows_with_heads(connection)]
            connection.end_reading()
        finally:
            connection.close()

    def restore(self, campaigns: Sequence[tuple[CampaignRow, Pages]]) -> None:
        connection = self._opened()
        try:
            connection.begin(SCHEMA_LOCK)
            try:
                for row, pages in campaigns:
                    put_in(connection, row, pages)
            except BaseException:
                connection.rollback()
                raise
            try:
                connection.commit()
            except ConnectionLost as error:
                raise OutcomeUnknown(
                    f"{error}; whether the campaigns were restored is not known: see whether the store lists them"
                ) from error
            except BaseException:
                connection.rollback()
                raise
        finally:
            connection.close()

    def delete(self, row: CampaignRow) -> None:
        log = self.open_log(row)
        try:
            with log.writing():
                log.remove_all()
            log.wipe()
        finally:
            log.close()

    def books(self) -> Books:
        return self._books

    def close(self) -> None:
        """A connection that belongs to a log is closed by that."""
        self._books.close()
        if self._pool is not None:
            self._pool.close()


def _rows_with_heads(connection: Connection) -> list[CampaignRow]:
    """All campaigns by name, each with its last event: one statement, however many they are."""
    schema = connection.schema
    sql = (
        "SELECT one.id, one.name, one.tag, one.created_at, one.last_sequence, "
        f"(SELECT max(sequence) FROM {schema}events WHERE campaign_id = one.id) "
        f"FROM {schema}campaigns AS one ORDER BY one.name"
    )
    return [
        CampaignRow(id=id_, name=name, tag=tag, created_at=at, last_event=last if last == stored else -1)
        for id_, name, tag, at, last, stored in connection.execute(sql)
    ]


def _find_or_make(path: Path, *, create: bool) -> None:
    """A file that is there is looked at first: what is not ours is not touched."""
    if create:
        sqlite_file.make(path)
    sqlite_file.check_there(path)
    sqlite_file.look_into(path, REVISIONS)
