"""A folder in which one process at a time writes; the kernel gives it back however that one ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this platform: nobody can be told apart
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


@contextmanager
def only_one(folder: Path) -> Iterator[bool]:
    """Make the folder, and say whether nobody else writes there; who is told so has it until the block ends."""
    folder.mkdir(exist_ok=True)
    if not HAS_LOCKS:
        yield True
        return
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _is_locked(held) and _is_there(held, folder)
    finally:
        os.close(held)


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
