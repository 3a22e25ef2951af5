"""Campaigns in a SQLite file, whose writers queue for its lock."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from doral.errors import InvalidValue
from doral.live.errors import BrokenLog, OutcomeUnknown, StorageBusy, StorageError
from doral.live.storage import sqlite_file
from doral.live.storage.connection import WORTH_A_LINE_S, Connection, Timeouts, note_closed, note_open, note_wait

try:
    import fcntl
except ImportError:  # not on this platform
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

SUFFIX = "-queue"
_QUEUE_LOOK_S = 0.0003  # the same for all who wait, so that all have the same chance

_LOOK_S = 0.0002
_READ_AGAIN = 20
T = TypeVar("T")
_FAULTS = (sqlite3.Error, UnicodeEncodeError, UnicodeDecodeError, OverflowError)


class SqliteConnection(Connection):
    """WAL and synchronous=FULL: a commit that was answered survives a killed process and a power cut.

    A file that this user may not write to is only read, and no file is made beside it. The file must exist.
    """

    placeholder = "?"
    schema = ""

    def __init__(self, path: Path, timeouts: Timeouts | None = None) -> None:
        self._path = path
        self._timeouts = timeouts or Timeouts()
        sqlite_file.check_there(path)
        self.is_read_only = not sqlite_file.can_write(path)
        self._stamp: tuple[object, ...] = ()
        self._queue: WriterQueue | None = None
        self._is_writing = False  # in a transaction
        self._open()
        try:
            if not self.is_read_only:
                self._retry(lambda: self._run("PRAGMA journal_mode = WAL").fetchall())
                self.execute("PRAGMA synchronous = FULL")
                self.execute("SELECT 1 FROM sqlite_master")  # makes the files beside it, if they are not there
                self._watched.watch_log()
                self._queue = WriterQueue(self._path)
        except BaseException:
            self._close()
            raise

    def _open(self) -> None:
        """Connect, to a file that is the same before and after."""
        self._stamp = self._state_of_file() if self.is_read_only and sqlite_file.has_no_log(self._path) else ()
        mode = "ro" if self.is_read_only else "rw"
        address = sqlite_file.uri(self._path, mode, immutable=bool(self._stamp))
        self._watched = sqlite_file.Watched(self._path)
        try:
            # Without SQLite's own waiting, which is neither fair nor bounded by what is left of a time-out.
            self._connection = sqlite3.connect(
                address, uri=True, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        except sqlite3.Error as error:
            raise sqlite_file.from_sqlite(error, self._path) from error
        note_open(self._watched.file, self)
        self._is_open = True
        self._run = self._connection.execute
        try:
            self._watched.check_path()
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        self._connection.close()
        if self._is_open:
            self._is_open = False
            note_closed(self._watched.file)

    def index_hint(self, index: str) -> str:
        # Without statistics SQLite prefers the primary key, and reads the whole campaign.
        return f" INDEXED BY {index}"

    def check_indexes(self) -> None:
        found = self.execute("PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            raise BrokenLog(
                f"{self._path}: {found[0][0]}; the file was damaged: restore a backup (where only an index is named, "
                "REINDEX in the program sqlite3 makes it anew)"
            )

    # --- writing ----------------------------------------------------------------------------------------------------

    def begin(self, campaign_id: int, *, within_s: float | None = None) -> None:
        if self.is_read_only:
            raise StorageError(
                f"{self._path}: is read-only here; nothing was changed: make the file and its folder writable, "
                "and open the store again"
            )
        assert self._queue is not None
        since = time.monotonic()
        until = since + self._timeouts.lock_s if within_s is None else since + min(within_s, self._timeouts.lock_s)
        if not self._queue.take(until):
            raise self._busy("others are waiting for it, too")
        try:
            self._run("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if not sqlite_file.is_busy(error):
                raise self._translated(error) from error
            self._retry(lambda: self._run("BEGIN IMMEDIATE"), until)
        finally:
            self._queue.leave()
        self._is_writing = True
        try:
            self._watched.check(self._view)
        except BaseException:
            self.rollback()
            raise
        if time.monotonic() - since > WORTH_A_LINE_S:
            note_wait(since, str(self._path))

    def _view(self) -> sqlite_file.View:
        def ask(sql: str) -> list[tuple[Any, ...]]:
            return self._translating(lambda: self._run(sql).fetchall())

        pages, page_size = ask("PRAGMA page_count")[0][0], ask("PRAGMA page_size")[0][0]
        cookie = int(ask("PRAGMA schema_version")[0][0])
        has_tables = ask("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'campaigns'")
        tags = dict(ask("SELECT id, tag FROM campaigns")) if has_tables else {}
        return sqlite_file.View(cookie, pages * page_size, tags)

    def begin_reading(self) -> None:
        self._watched.check_path()
        self._translating(lambda: self._retry(self._begin_reading))

    def _begin_reading(self) -> None:
        self._run("BEGIN")
        try:
            self._run("SELECT 1 FROM sqlite_master").fetchall()  # what is seen is fixed by the first look
        except sqlite3.Error:
            self.rollback()
            raise

    def end_reading(self) -> None:
        self.rollback()
        if self._stamp and self._state_of_file() != self._stamp:
            raise StorageBusy(f"{self._path}: was written to meanwhile, and cannot be locked here: try again")

    def be_thorough(self) -> None:
        self.execute("PRAGMA secure_delete = ON")

    def wipe(self) -> None:
        """Overwriting does not reach what was moved between pages before: the file is written anew, its log emptied.

        Where others are still reading what was there before, the log cannot be emptied.
        """
        until = time.monotonic() + self._timeouts.lock_s
        self._watched.check_path()

        def run(sql: str) -> list[tuple[Any, ...]]:
            return self._run(sql).fetchall()

        self._retry(lambda: run("VACUUM"), until)
        while True:
            busy = self._retry(lambda: run("PRAGMA wal_checkpoint(TRUNCATE)"), until)[0][0]
            if not busy:
                return
            if time.monotonic() > until:
                raise StorageBusy(
                    f"{self._path}: it is erased, but others who are reading keep traces of it in "
                    f"{sqlite_file.side(self._path, '-wal')}: ask again when they have finished"
                )
            time.sleep(_LOOK_S)

    def commit(self) -> None:
        try:
            self._run("COMMIT")
        except sqlite3.Error as error:
            if sqlite_file.primary_code(error) == sqlite3.SQLITE_IOERR:
                raise OutcomeUnknown(
                    f"{self._path}: {error} during a commit; whether the change was stored is not known: "
                    "check the disk, then ask again with the same key"
                ) from error
            raise self._translated(error) from error
        self._is_writing = False
        self._watched.check_committed()

    def rollback(self) -> None:
        try:
            if self._connection.in_transaction:  # one that only reads, too
                self._run("ROLLBACK")
        except sqlite3.Error:
            pass
        finally:
            self._is_writing = False

    # --- statements -------------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self._is_writing:
            try:
                return self._run(sql, parameters).fetchall()
            except _FAULTS as error:
                raise self._ours(error) from error

        def ask() -> list[tuple[Any, ...]]:
            return self._run(sql, parameters).fetchall()

        if self._stamp:
            return self._read_unlocked(ask)
        self._watched.check_path()
        return self._translating(lambda: self._retry(ask))

    def has_table(self, name: str) -> bool:
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        try:
            if len(rows) == 1:
                return self._run(sql, rows[0]).rowcount
            return self._connection.executemany(sql, rows).rowcount
        except _FAULTS as error:
            raise self._ours(error) from error

    def _read_unlocked(self, ask: Callable[[], T]) -> T:
        """Nothing can be locked where nothing can be written: read again if somebody wrote meanwhile."""
        for _ in range(_READ_AGAIN):
            stamp = self._stamp
            if stamp and self._state_of_file() != stamp:
                self._reopen()
                continue
            try:
                found = self._translating(ask)
            except StorageError:
                if not stamp or self._state_of_file() == stamp:
                    raise
                continue
            if not stamp or self._state_of_file() == stamp:
                return found
        raise StorageBusy(f"{self._path}: is being written to all the time, and cannot be locked here: try again")

    def _reopen(self) -> None:
        self._close()
        self._open()

    def _state_of_file(self) -> tuple[object, ...]:
        try:
            now = self._path.stat()
        except OSError:
            return ("gone",)
        return now.st_dev, now.st_ino, now.st_mtime_ns, now.st_size, sqlite_file.has_no_log(self._path)

    def _retry(self, call: Callable[[], T], until: float | None = None) -> T:
        while True:
            try:
                return call()
            except sqlite3.Error as error:
                if not sqlite_file.is_busy(error):
                    raise self._translated(error) from error
                if until is None:
                    until = time.monotonic() + self._timeouts.lock_s
                if time.monotonic() > until:
                    raise self._busy(str(error)) from error
            time.sleep(_LOOK_S)

    def _busy(self, why: str) -> StorageBusy:
        return StorageBusy(
            f"{self._path}: {why}; others have kept it locked for {self._timeouts.lock_s:g} s; nothing was changed: "
            "try again, or give `doral.open` a longer lock_timeout_s"
        )

    def _translating(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except _FAULTS as error:
            raise self._ours(error) from error

    def _ours(self, error: Exception) -> Exception:
        """Return our own error for one of SQLite, or of a value that it cannot hold."""
        if isinstance(error, sqlite3.Error):
            return self._translated(error)
        if isinstance(error, UnicodeEncodeError):
            return InvalidValue("text", error.object, "cannot be stored: it holds half a character")
        if isinstance(error, UnicodeDecodeError):
            return sqlite_file.not_text(error, self._path)
        return StorageError(f"{self._path}: {error}; nothing was changed")

    def _translated(self, error: sqlite3.Error) -> StorageError:
        if sqlite_file.is_busy(error):
            return self._busy(str(error))
        return sqlite_file.from_sqlite(error, self._path)

    # --- the end ----------------------------------------------------------------------------------------------------

    def inherited(self) -> object:
        """See `forks`."""
        return self._connection

    def close(self) -> None:
        self._close()
        self._is_writing = False
        if self._queue is not None:
            self._queue.close()


class WriterQueue:
    """One connection's place in the queue."""

    def __init__(self, database: Path) -> None:
        self._file = _opened(database)
        if self._file is not None:
            _all.add(self)

    def take(self, until: float) -> bool:
        """Wait to be the next; False if it takes too long."""
        if self._file is None:
            return True
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                time.sleep(_QUEUE_LOOK_S)
            except OSError:  # a file system without such locks
                self.close()
                return True
            else:
                return True

    def leave(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()


def _opened(database: Path) -> int | None:
    """The file, made with the mode of the database so that whoever may write to one may queue at the other."""
    if not HAS_LOCKS:
        return None
    name = os.path.realpath(database) + SUFFIX
    flags = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        mode = database.stat().st_mode & 0o666
        try:
            made = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(name, flags)
        os.fchmod(made, mode)
    except OSError:
        return None
    return made


_all: weakref.WeakSet[WriterQueue] = weakref.WeakSet()


def _after_fork() -> None:
    """A child lets go of the parent's places: a lock that two processes hold would outlive the one that took it."""
    for one in list(_all):
        one.close()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
