"""A SQLite file as it is found: what is in it, whether it can be written to, and whether it is still the same one.

Nothing here opens the file but SQLite itself: a process that closes a file of its own opening loses the locks that
SQLite holds on it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from urllib.parse import quote

from doral.live.errors import NewerDatabase, OutcomeUnknown, StorageBusy, StorageError
from doral.live.storage.connection import Identity, open_briefly, refuse_inherited

_OURS = frozenset(("campaigns", "events", "alembic_version"))
_OUR_REVISION = re.compile(r"\d{4}")
_MOST_SHOWN = 5
_LOOKS, _LOOK_AGAIN_S = 5, 0.0005
_LOOK_BESIDE_S = 0.1
_SETTLED_S = 1.0  # for so long nobody has written to a file that is called overwritten
_one_maker = Lock()  # see the note above: nobody opens the file between its making and our closing of it


@dataclass(frozen=True, kw_only=True)
class Content:
    """Of a database that is ours, or empty."""

    revision: str | None


class View(NamedTuple):
    """A database as SQLite shows it, its write-ahead log included."""

    cookie: int  # grows with every change of the schema, and with every VACUUM
    size: int  # that the file has once all of the log is in it
    tags: dict[int, str]  # of the campaigns


def from_sqlite(error: sqlite3.Error, path: Path) -> StorageError:
    """What an error means, and what to do."""
    primary = primary_code(error)
    said = f"{path}: {error}"
    if is_busy(error):
        return StorageBusy(f"{said}; nothing was changed: try again")
    if primary == sqlite3.SQLITE_FULL:
        return StorageError(f"{said}; nothing was changed: free some space and try again")
    if primary == sqlite3.SQLITE_READONLY:
        return StorageError(f"{said}; nothing was changed: make the file and its folder writable")
    if primary == sqlite3.SQLITE_CANTOPEN and not has_no_log(path):
        return StorageError(
            f"{said}; its last changes are in {side(path, '-wal')}, which can only be read where files can be made "
            "beside it: copy both to a folder of your own, or ask whoever writes to it to close it"
        )
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StorageError(f"{said}; does its folder exist, and may it be written to?")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StorageError(f"{said}; the file is damaged or is no SQLite database: restore it from a backup")
    return StorageError(said)


def primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def side(path: Path, suffix: str) -> str:
    """A file beside the database; where that is a link, beside what it leads to, as SQLite has it."""
    return os.path.realpath(path) + suffix


def identity(path: str) -> Identity | None:
    """None where there is nothing."""
    try:
        found = os.stat(path)  # noqa: PTH116  (before and after every commit: a Path costs as much as the call)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def uri(path: Path, mode: str, *, immutable: bool = False) -> str:
    return f"file:{quote(str(path))}?mode={mode}" + ("&immutable=1" if immutable else "")


def make(path: Path) -> None:
    """An empty file for this user alone, whatever the umask; one that is there keeps its mode."""
    with _one_maker:
        try:
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileExistsError:
            return
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be made ({error.strerror}); does its folder exist, and may it be written to?"
            ) from None
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(made, 0o600)
        finally:
            os.close(made)


def check_there(path: Path) -> None:
    """A file, or the error that says what else."""
    refuse_inherited(identity(str(path)), path)
    with _one_maker:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise StorageError(
                f"{path}: there is no such file: is the path right? (Only `doral.open` with `create=True` makes one.)"
            ) from None
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror}); may its folder be entered?") from None
    if stat.S_ISDIR(mode):
        raise StorageError(f"{path}: is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise StorageError(f"{path}: is not a plain file; name one")


def has_no_log(path: Path) -> bool:
    """Whether all that is committed is in the file itself, so that it can be read without making files beside it."""
    for suffix in ("-wal", "-journal"):
        try:
            if os.stat(side(path, suffix)).st_size > 0:  # noqa: PTH116
                return False
        except OSError:
            continue
    return True


def can_write(path: Path) -> bool:
    """Whether this user may write to the database, with the files that SQLite needs beside it."""
    for _ in range(_LOOKS):  # the files beside it come and go while others connect
        beside = [Path(side(path, suffix)) for suffix in ("-wal", "-shm")]
        is_forbidden = not _may_write(path) or any(one.exists() and not _may_write(one) for one in beside)
        if not is_forbidden and (_may_write(path.resolve().parent) or all(one.exists() for one in beside)):
            return True
        time.sleep(_LOOK_AGAIN_S)
    return False


def _may_write(path: Path) -> bool:
    as_effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=as_effective)


def look_into(path: Path, known: tuple[str, ...]) -> Content:
    """What is in a file, without a trace left of having looked; a foreign or newer one is refused."""
    try:
        quietly = has_no_log(path)
        try:
            return _content(path, known, immutable=quietly)
        except (sqlite3.Error, StorageError, UnicodeDecodeError) as error:
            if _is_half_written(error) and can_write(path):
                return _content(path, known, mode="rw")  # SQLite undoes what a killed process left half done
            if not quietly or has_no_log(path):
                raise
            return _content(path, known)  # another process began to write to it meanwhile
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except UnicodeDecodeError as error:
        raise not_text(error, path) from error


def _is_half_written(error: Exception) -> bool:
    """Whether a rollback journal has to be played back first, which a reader may not do."""
    return isinstance(error, sqlite3.Error) and primary_code(error) == sqlite3.SQLITE_READONLY


def not_text(error: UnicodeDecodeError, path: Path) -> StorageError:
    """SQLite quotes what it finds in a damaged file, and Python cannot read the quotation."""
    found = bytes(error.object).decode(errors="backslashreplace")
    return StorageError(f"{path}: {found}; the file was damaged: restore a backup")


def _content(path: Path, known: tuple[str, ...], *, immutable: bool = False, mode: str = "ro") -> Content:
    address = uri(path, mode, immutable=immutable)
    with (
        open_briefly(identity(str(path))),
        closing(sqlite3.connect(address, uri=True, timeout=10.0)) as connection,
    ):
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return Content(revision=None)
        found = ""
        if tables >= _OURS:
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            found = str(rows[0][0]) if rows else ""
    if found in known:
        return Content(revision=found)
    if _OUR_REVISION.fullmatch(found):
        raise NewerDatabase(
            f"{path}: the database has schema {found!r}, and this doral knows {known[0]} to {known[-1]}: "
            "it was written by a newer version; install that one"
        )
    raise StorageError(
        f"{path}: belongs to another program (it has the tables {', '.join(sorted(tables)[:_MOST_SHOWN])}); "
        "nothing was changed: give campaigns a file of their own"
    )


def _tags(path: Path) -> tuple[dict[int, str] | None, int]:
    """Of the campaigns in the file itself, as far as they can be read without its log, None for no database at all;
    and a number that grows with every change of the schema and with every VACUUM.

    (By SQLite's own means: if we closed a file of ours, this process would lose SQLite's locks on it.)
    """
    try:
        address = uri(path, "ro", immutable=True)
        with closing(sqlite3.connect(address, uri=True)) as connection:
            tags = dict(connection.execute("SELECT id, tag FROM campaigns").fetchall())
            return tags, int(connection.execute("PRAGMA schema_version").fetchall()[0][0])
    except sqlite3.Error as error:
        return None if primary_code(error) == sqlite3.SQLITE_NOTADB else {}, 0


class Watched:
    """The file that a connection opened, and those beside it: still at their path, or gone?"""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.file = self._found(self._path)
        self._beside = (side(path, "-wal"), side(path, "-shm"))
        self._beside_was: tuple[Identity, ...] = ()
        self._seen_at = 0.0
        self._written_at = self._size = self._cookie = 0
        self._tags: dict[int, str] = {}

    def _found(self, name: str) -> Identity:
        found = identity(name)
        if found is None:
            raise self._gone(name)
        return found

    def watch_log(self) -> None:
        """From now on also the write-ahead log and its index: both stay as long as anybody is connected."""
        self._beside_was = tuple(self._found(name) for name in self._beside)

    def check_path(self) -> None:
        """Before anything is read."""
        if identity(self._path) != self.file:
            raise self._gone(self._path)

    def check(self, seen: Callable[[], View]) -> None:
        """Before anything is written, in the transaction that will do so: no checkpoint begins meanwhile.

        Without the index of the log, writers would not exclude each other.
        """
        try:
            found = os.stat(self._path)  # noqa: PTH116
        except OSError:
            raise self._gone(self._path) from None
        if (found.st_dev, found.st_ino) != self.file:
            raise self._gone(self._path)
        if found.st_mtime_ns != self._written_at:
            self._check_content(found.st_size, seen)
            self._written_at = found.st_mtime_ns
        gone = self._missing(self._beside)
        if gone is not None:
            raise self._gone(gone)

    def check_committed(self) -> None:
        """After a commit, before anybody is told. (The index can be made again.)"""
        if identity(self._path) == self.file and self._missing(self._beside[:1]) is None:
            return
        raise OutcomeUnknown(
            f"{self._path}: it or its write-ahead log was removed, moved or replaced during a commit; the change may "
            "be lost with it: put the file back or restore a backup, open the store again, and ask with the same key"
        )

    def _check_content(self, size: int, seen: Callable[[], View]) -> None:
        """The file was written to: by a checkpoint, after which it holds more than before, or by somebody's copy.

        Whoever copies an old file over one that is in use destroys what is written from then on. A checkpoint may leave
        anything else, but once it has ended no shorter file and no other tags; unless the whole file was written anew
        (VACUUM, after something was erased), which SQLite counts. What the file looks like while a checkpoint is under
        way says nothing: then the file is looked at again, until nobody has written to it for a while.
        """
        while True:
            tags, cookie = _tags(Path(self._path))
            is_other = tags is None or any(tags.get(number, tag) != tag for number, tag in self._tags.items())
            is_odd = tags is None or ((size < self._size or is_other) and cookie <= self._cookie)
            view = seen()  # with what is not in the file yet
            if not is_odd or view.cookie > self._cookie:
                self._size, self._tags, self._cookie = min(size, view.size), view.tags, view.cookie
                return
            found = os.stat(self._path)  # noqa: PTH116
            if time.time() - found.st_mtime > _SETTLED_S and found.st_size == size:
                raise StorageError(
                    f"{self._path}: was overwritten with something else while the campaign was open. Nothing was "
                    "changed: end all processes that use it, restore a backup, then open the store again"
                )
            size = found.st_size
            time.sleep(_LOOK_AGAIN_S)

    def _missing(self, names: tuple[str, ...]) -> str | None:
        """Whether they are there, every time; whether they are the same, now and then.

        What takes less than that, for another process to make a file anew that was removed, is not noticed at once.
        """
        for name in names:
            if not os.access(name, os.F_OK):
                return name
        now = time.monotonic()
        if now > self._seen_at + _LOOK_BESIDE_S:
            for name, was in zip(self._beside, self._beside_was, strict=True):
                if identity(name) != was:
                    return name
            self._seen_at = now
        return None

    def _gone(self, name: str) -> StorageError:
        what = "is gone" if identity(name) is None else "is another file now"
        return StorageError(
            f"{name}: {what}; it was removed, moved or replaced while the campaign was open. Nothing was changed: "
            "put the file back or restore a backup, then open the store again"
        )
