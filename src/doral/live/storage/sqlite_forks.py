"""SQLite and forks: while a process is forked, it has no connection to any of our files.

SQLite counts in memory which locks its process has. A child that inherits an open connection inherits that count, but
none of the locks: it would read and write without them, or wait for ever for a lock of a thread that it does not have.
So a fork waits until no other thread is in a transaction, and closes all connections before it happens; parent and
child make new ones when they need them.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident
from typing import Protocol

_MOST_S = 60.0  # that a fork waits


class Closable(Protocol):
    """A connection that can be closed before a fork."""

    def give_up(self) -> bool:
        """Close it; False where that cannot be done now."""

    def leave_to_parent(self) -> None:
        """In a child: it was not closed, and must not be closed here."""


class _Gate:
    """Who is inside SQLite, thread by thread."""

    def __init__(self) -> None:
        self.connections: weakref.WeakSet[Closable] = weakref.WeakSet()
        self.inherited: list[Closable] = []  # of the parent: closing one would undo what the parent is doing
        self._renew()

    def _renew(self) -> None:
        self._changed = Condition()
        self._inside: dict[int, int] = {}
        self._forking: int | None = None  # the thread that does

    def enter(self) -> None:
        me = get_ident()
        with self._changed:
            while self._forking not in (None, me) and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1

    def leave(self) -> None:
        me = get_ident()
        with self._changed:
            self._inside[me] -= 1
            if self._inside[me] == 0:
                del self._inside[me]
                if self._forking is not None:
                    self._changed.notify_all()

    def before_fork(self) -> None:
        until = time.monotonic() + _MOST_S
        with self._changed:
            while self._forking is not None:  # another thread forks, too
                self._changed.wait()
            self._forking = get_ident()
            while self._inside.keys() - {get_ident()} and time.monotonic() < until:
                self._changed.wait(until - time.monotonic())
            are_others_inside = bool(self._inside.keys() - {get_ident()})
        for one in list(self.connections):
            if are_others_inside or not one.give_up():
                self.inherited.append(one)

    def after_fork_in_parent(self) -> None:
        self.inherited.clear()
        with self._changed:
            self._forking = None
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        for one in self.inherited:
            one.leave_to_parent()
        self.connections = weakref.WeakSet()
        self._renew()


_gate = _Gate()
enter, leave = _gate.enter, _gate.leave


@contextmanager
def inside() -> Iterator[None]:
    """Nobody forks meanwhile."""
    enter()
    try:
        yield
    finally:
        leave()


def close_before_forks(connection: Closable) -> None:
    """From now on, as long as the object lives. Called inside."""
    _gate.connections.add(connection)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork,
        after_in_parent=_gate.after_fork_in_parent,
        after_in_child=_gate.after_fork_in_child,
    )
