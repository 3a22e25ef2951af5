"""Writers of one SQLite file take turns.

SQLite lets whoever happens to look first have the lock, with pauses that grow: the writer that has just finished is
nearly always first. Here one writer at a time, the holder of a lock on a small file beside the database, waits for
SQLite's own lock; the one that has just finished has to stand behind it. The kernel gives the lock back however a
process ends. Nothing but fairness depends on it: where there can be no such file, everybody waits for SQLite alone.
"""

from __future__ import annotations

import os
import time
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this platform
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

SUFFIX = "-queue"
_LOOK_S = 0.0003  # the same for all who wait, so that all have the same chance


class Turns:
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
                time.sleep(_LOOK_S)
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


_all: weakref.WeakSet[Turns] = weakref.WeakSet()


def _after_fork() -> None:
    """A child lets go of the parent's places: a lock that two processes hold would outlive the one that took it."""
    for one in list(_all):
        one.close()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
