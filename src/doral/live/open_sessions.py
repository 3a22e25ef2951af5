"""How many campaigns of a store hold a connection at once.

Each has one of its own, so that none waits for another. Where there are hundreds, that is more than PostgreSQL gives to
everybody together (100, unless its operator says otherwise), or than a process may open files: those that were not used
for longest give theirs back, and make another when they are asked again.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Protocol

from doral._forks import renew_in_child


class _Opened(Protocol):
    def close_if_idle(self) -> bool: ...


class OpenSessions:
    """Of one store; `most` that are kept open, beyond those that are in use at the moment. None: all."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._lock = Lock()
        self._order: OrderedDict[_Opened, None] = OrderedDict()  # the one that was used longest ago first
        renew_in_child(self)

    def renew(self) -> None:
        """In a forked child, which has none."""
        self._lock = Lock()
        self._order = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def used(self, session: _Opened) -> None:
        """This one is used now."""
        if self.most is None:
            return
        with self._lock:
            self._order[session] = None
            self._order.move_to_end(session)
            too_many = [self._order.popitem(last=False)[0] for _ in range(len(self._order) - self.most)]
        for one in too_many:
            if one is session or not one.close_if_idle():
                with self._lock:
                    self._order[one] = None

    def closed(self, session: _Opened) -> None:
        """This one has given its connection back."""
        with self._lock:
            self._order.pop(session, None)
