"""What differs between SQLite and PostgreSQL: how to connect, how to lock a campaign, and what an error means."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from doral.errors import InvalidValue
from doral.live.errors import ConnectionLost, StorageBusy, StorageError

BUSY_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 10
_CAMPAIGN_LOCKS = 0x646F72  # PostgreSQL's advisory locks are shared by all programs of a database: these are ours
SCHEMA_LOCK = 0  # in the place of a campaign: taken while the schema is brought up to date


class Connection(ABC):
    """A DBAPI connection with explicit transactions and our errors."""

    placeholder: str
    schema = ""  # before the name of a table

    def index_hint(self, index: str) -> str:
        """What follows a table's name where this index has to be used."""
        del index
        return ""

    @abstractmethod
    def begin(self, campaign_id: int) -> None:
        """Start a transaction that excludes all other writers of the campaign."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None:
        """Never raises: what cannot be rolled back is gone anyway."""

    @abstractmethod
    def close(self) -> None: ...


# --- SQLite -------------------------------------------------------------------------------------------------------


def sqlite_path(url: str) -> Path:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or not path.startswith("/") or path == "/" or parts.query or parts.fragment:
        raise InvalidValue("url", url, "must be sqlite:///file.db, or sqlite:////full/path/file.db")
    return Path(path[1:])


def _from_sqlite(error: sqlite3.Error, path: Path) -> StorageError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    said = f"{path}: {error}"
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy(f"{said}; others have kept it locked for {BUSY_TIMEOUT_S:g} s: try again")
    if primary == sqlite3.SQLITE_FULL:
        return StorageError(f"{said}; nothing was changed: free some space and try again")
    if primary == sqlite3.SQLITE_READONLY:
        return StorageError(f"{said}; nothing was changed: make the file and its folder writable")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{said}; does its folder exist, and may it be written to?")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StorageError(f"{said}; the file is damaged or is no SQLite database: restore it from a backup")
    return StorageError(said)


class SqliteConnection(Connection):
    """WAL and synchronous=FULL: a commit that was answered survives a killed process and a power cut."""

    placeholder = "?"

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        except sqlite3.Error as error:
            raise _from_sqlite(error, path) from error
        self._run = self._connection.execute
        try:
            self._use_wal()
            self.execute("PRAGMA synchronous = FULL")
        except BaseException:
            self._connection.close()
            raise

    def _use_wal(self) -> None:
        """While others open the same new file, SQLite refuses this at once instead of waiting: so we wait."""
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                self.execute("PRAGMA journal_mode = WAL")
            except StorageBusy:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
            else:
                return

    def index_hint(self, index: str) -> str:
        # Without statistics SQLite prefers the primary key, and reads the whole campaign.
        return f" INDEXED BY {index}"

    def begin(self, campaign_id: int) -> None:
        try:
            self._run("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _from_sqlite(error, self._path) from error

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._run(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise _from_sqlite(error, self._path) from error

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            if len(rows) == 1:
                self._run(sql, rows[0])
            else:
                self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise _from_sqlite(error, self._path) from error

    def commit(self) -> None:
        try:
            self._run("COMMIT")
        except sqlite3.Error as error:
            raise _from_sqlite(error, self._path) from error

    def rollback(self) -> None:
        try:
            if self._connection.in_transaction:
                self._run("ROLLBACK")
        except sqlite3.Error:
            pass

    def close(self) -> None:
        self._connection.close()


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


def psycopg_url(url: str) -> str:
    """The form that psycopg itself takes."""
    return "postgresql://" + url.split("://", 1)[1]


def load_psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise StorageError("PostgreSQL needs its driver: pip install 'doral[postgres]'") from None
    return psycopg


class PostgresConnection(Connection):
    """One advisory lock per campaign and transaction: it goes with the transaction, however that ends."""

    placeholder = "%s"

    def __init__(self, url: str) -> None:
        self._psycopg = load_psycopg()
        try:
            self._connection = self._psycopg.connect(
                psycopg_url(url), autocommit=True, connect_timeout=CONNECT_TIMEOUT_S
            )
            self._connection.execute("SET synchronous_commit = on")
        except self._psycopg.Error as error:
            raise ConnectionLost(f"cannot reach PostgreSQL: {str(error).strip()}") from error

    def _translated(self, error: Exception) -> StorageError:
        said = str(error).strip() or type(error).__name__
        if self._connection.closed or isinstance(error, self._psycopg.InterfaceError):
            return ConnectionLost(f"the connection to PostgreSQL broke: {said}")
        if isinstance(error, self._psycopg.errors.DiskFull):
            return StorageError(f"PostgreSQL: {said}; nothing was changed: free some space and try again")
        if isinstance(error, self._psycopg.errors.ReadOnlySqlTransaction):
            return StorageError(f"PostgreSQL: {said}; nothing was changed: connect to the primary server")
        return StorageError(f"PostgreSQL: {said}")

    def begin(self, campaign_id: int) -> None:
        try:
            # In one message. Read committed: what is read after the lock was granted includes all that came before.
            self._connection.execute(
                "BEGIN ISOLATION LEVEL READ COMMITTED; "
                f"SELECT pg_advisory_xact_lock({_CAMPAIGN_LOCKS:d}, {campaign_id:d})",
                prepare=False,
            )
        except self._psycopg.Error as error:
            raise self._translated(error) from error

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self._connection.execute(sql, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
        except self._psycopg.Error as error:
            raise self._translated(error) from error
        return rows

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            with self._connection.cursor() as cursor:
                if len(rows) == 1:
                    cursor.execute(sql, rows[0])
                else:
                    cursor.executemany(sql, rows)
        except self._psycopg.Error as error:
            raise self._translated(error) from error

    def commit(self) -> None:
        try:
            self._connection.execute("COMMIT", prepare=False)
        except self._psycopg.Error as error:
            raise self._translated(error) from error

    def rollback(self) -> None:
        if self._connection.closed:
            return
        try:
            self._connection.execute("ROLLBACK", prepare=False)
        except self._psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        self._connection.close()
