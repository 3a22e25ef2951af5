"""Copies of campaigns in a SQLite file of their own: written by one process, or only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from doral.errors import InvalidValue
from doral.live.errors import StorageError
from doral.live.storage import sqlite_file
from doral.live.storage.connection import Connection
from doral.live.storage.contract import CampaignRow, Log, Pages
from doral.live.storage.schema import COPIED_SINCE, REVISIONS, upgrade
from doral.live.storage.service_tables import KeyRow, SqlBooks, put_keys_in
from doral.live.storage.sql_log import SqlLog, put_in, rows_of
from doral.live.storage.urls import SqliteFile


def prepare_copy(path: Path) -> None:
    """Tables, in a file that is there and empty."""
    upgrade(SqliteFile(path=path))


def write_copy(path: Path, campaigns: Sequence[tuple[CampaignRow, Pages]], keys: Sequence[KeyRow] = ()) -> None:
    """Into a file that was prepared, and that nobody else knows yet: no journal is needed."""
    copy = PlainSqlite(path, sqlite_file.uri(path, "rw"))
    try:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        copy.begin(0)
        for row, pages in campaigns:
            put_in(copy, row, pages)
        put_keys_in(copy, keys)
        copy.commit()
        copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()


def copied_keys(path: Path) -> list[KeyRow]:
    """The keys that a backup holds, the oldest first."""
    copy = PlainSqlite(path, sqlite_file.uri(path, "ro", immutable=sqlite_file.has_no_log(path)))
    books = SqlBooks(lambda: copy, has_one_connection=True)
    try:
        return books.all_keys()
    finally:
        books.close()


@contextmanager
def reading_copy(path: Path) -> Iterator[list[tuple[CampaignRow, Log]]]:
    """All campaigns of a file by name, as they are at one moment; no trace is left of having looked."""
    sqlite_file.check_there(path)
    found = sqlite_file.look_into(path, REVISIONS).revision
    if found is None:
        raise StorageError(f"{path}: holds no campaigns: is it a backup?")
    if found < COPIED_SINCE:
        raise StorageError(
            f"{path}: its tables are of an older version ({found}): open it once with doral.open(), which brings it up "
            "to date, and then restore it"
        )
    copy = PlainSqlite(path, sqlite_file.uri(path, "ro", immutable=sqlite_file.has_no_log(path)))
    try:
        copy.begin_reading()
        yield [(row, SqlLog(copy, row)) for row in rows_of(copy)]
    finally:
        copy.close()


class PlainSqlite(Connection):
    """A database that no other process writes to: no waiting, and no files beside it."""

    placeholder = "?"
    schema = ""

    def __init__(self, path: Path, address: str) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(
                address, uri=True, timeout=10.0, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise sqlite_file.from_sqlite(error, path) from error

    def index_hint(self, index: str) -> str:
        return f" INDEXED BY {index}"

    def begin(self, campaign_id: int, *, within_s: float | None = None) -> None:
        del campaign_id, within_s
        self.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        self.execute("BEGIN")

    def run_script(self, sql: str) -> None:
        """Several statements."""
        self._connection.executescript(sql)

    def wipe(self) -> None:
        """Nothing is ever deleted from a copy."""

    def be_thorough(self) -> None:
        """See `wipe`."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise sqlite_file.from_sqlite(error, self._path) from error

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        try:
            return self._connection.executemany(sql, rows).rowcount
        except sqlite3.Error as error:
            raise sqlite_file.from_sqlite(error, self._path) from error
        except UnicodeEncodeError as error:
            raise InvalidValue("text", error.object, "cannot be stored: it holds half a character") from None

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()

    def close(self) -> None:
        self._connection.close()
