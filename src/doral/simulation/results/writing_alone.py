"""A folder in which one process at a time writes; the kernel gives it back however that one ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from doral._forks import renew_in_child

try:
    import fcntl
except ImportError:  # not on this platform: nobody can be told apart
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


class _Held:
    """A folder that is open. The kernel keeps a lock as long as anybody has it open, so a forked child closes it."""

    def __init__(self, folder: Path) -> None:
        self.number: int = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        self._is_open = True
        renew_in_child(self)

    def renew(self) -> None:
        self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.number)


@contextmanager
def only_one(folder: Path) -> Iterator[bool]:
    """Make the folder, and say whether nobody else writes there; who is told so has it until the block ends."""
    folder.mkdir(exist_ok=True)
    if not HAS_LOCKS:
        yield True
        return
    held = _Held(folder)
    try:
        yield _is_locked(held.number) and _is_there(held.number, folder)
    finally:
        held.close()


def _is_locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without such locks
        pass
    return True


def _is_there(held: int, folder: Path) -> bool:
    """Whoever had it may have finished and removed it, and somebody else made it anew."""
    try:
        return os.path.samestat(os.fstat(held), folder.stat())
    except FileNotFoundError:
        return False
