"""What a forked child has inherited: it can neither be used there, nor closed.

SQLite counts in memory which locks its process has. A child that inherits an open file inherits that count, but none of
the locks. So a file that was open when the process was forked stays closed to the child, and what the child inherited
is never closed: that would undo what the parent is doing.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from doral.live.errors import StorageError

Identity: TypeAlias = tuple[int, int]  # device and inode


class Inheritable(Protocol):
    """Something that holds a connection to a SQLite file."""

    def inherited(self) -> object:
        """The connection."""


_open: Counter[Identity] = Counter()  # files that this process has open
_inherited: set[Identity] = set()
_connections: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def opened(file: Identity, connection: Inheritable) -> None:
    """This process has the file open until `closed`."""
    _open[file] += 1
    _connections.add(connection)


def closed(file: Identity) -> None:
    """As often as `opened`."""
    _open[file] -= 1


@contextmanager
def open_briefly(file: Identity | None) -> Iterator[None]:
    """The file is open inside the block."""
    if file is None:
        yield
        return
    _open[file] += 1
    try:
        yield
    finally:
        _open[file] -= 1


def refuse_inherited(file: Identity | None, path: object) -> None:
    """StorageError where the parent of this process had the file open when it forked."""
    if file in _inherited:
        raise StorageError(
            f"{path}: was open in the process that this one was forked from, and SQLite cannot open it here: fork "
            "before the store is opened, or start processes with multiprocessing.get_context('spawn')"
        )


def refuse_child(opened_in: int) -> None:
    """StorageError where what was opened in the process of that number is used in another one."""
    if os.getpid() != opened_in:
        raise StorageError(
            "this store was opened in the process that this one was forked from: open it again here, with doral.open()"
        )


def _after_fork() -> None:
    for one in list(_connections):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one.inherited()))  # never closed, not even at the very end
    _connections.clear()
    _inherited.update(file for file, count in _open.items() if count > 0)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
