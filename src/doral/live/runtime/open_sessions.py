"""How many campaigns of a store are kept ready at once: with a connection, or with their state in memory.

In SQLite each has a connection of its own, so that none waits for another. Where there are hundreds, that is more than
a process may open files: those that were not used for longest give theirs back, with their state, and make another
when they are asked again. In PostgreSQL connections are shared, and what is bounded is the memory that states take.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol

from doral.live.state.state import CampaignState

_FEWEST_EVENTS = 200  # after which a state is weighed again
_GROWTH = 8  # or when its log has grown by this part


class _Opened(Protocol):
    def close_if_idle(self) -> bool: ...


class _Weighed(NamedTuple):
    """How much a state took when somebody looked, and for how many events that is good enough."""

    n_bytes: int = 0
    since: int = 0
    until: int = -1


_NOTHING = _Weighed()


class OpenSessions:
    """Of one store. Those in use at the moment stay, whatever the limits are.

    Args:
        most: That are kept open; None: all.
        most_bytes: That the states of those that are kept take, about; None: whatever they need.
    """

    def __init__(self, most: int | None = None, most_bytes: int | None = None) -> None:
        self.most, self.most_bytes = most, most_bytes
        self._lock = Lock()
        self._order: OrderedDict[_Opened, _Weighed] = OrderedDict()  # the one that was used longest ago first
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._order)

    def used(self, session: _Opened) -> None:
        """This one is used now."""
        if self.most is None and self.most_bytes is None:
            return
        with self._lock:
            self._order[session] = _Weighed(*self._order.pop(session, _NOTHING))  # another one: it was used since
        self._close_some(but=session)

    def rested(self, session: _Opened, state: CampaignState, beside: Callable[[], int] = int) -> None:
        """It has this state now, and so many bytes beside it."""
        if self.most_bytes is None:
            return
        before = self._order.get(session, _NOTHING)
        if before.since <= state.sequence < before.until:
            return
        good_for = max(_FEWEST_EVENTS, state.sequence // _GROWTH)
        now = _Weighed(state.n_bytes + beside(), state.sequence, state.sequence + good_for)
        with self._lock:
            self.n_bytes += now.n_bytes - self._order.pop(session, _NOTHING).n_bytes
            self._order[session] = now
        self._close_some(but=session)

    def _close_some(self, *, but: _Opened) -> None:
        """As many as the limits ask for, but for those that are in use. Others may use, weigh or close any meanwhile:
        each stays where it is until it is closed, and then goes only if it is as it was found.
        """
        tried: set[_Opened] = set()
        while (found := self._next(tried)) is not None:
            one, weighed = found
            tried.add(one)
            if one is but or not one.close_if_idle():
                continue
            with self._lock:
                if self._order.get(one) is weighed:
                    del self._order[one]
                    self.n_bytes -= weighed.n_bytes

    def _next(self, tried: set[_Opened]) -> tuple[_Opened, _Weighed] | None:
        """The one that was used longest ago, where the limits ask for one."""
        with self._lock:
            in_use = sum(self._order.get(one, _NOTHING).n_bytes for one in tried)
            is_many = self.most is not None and len(self._order) > self.most
            if not is_many and (self.most_bytes is None or self.n_bytes - in_use <= self.most_bytes):
                return None
            return next(((one, weighed) for one, weighed in self._order.items() if one not in tried), None)

    def closed(self, session: _Opened) -> None:
        """This one has given its connection back, and has no state."""
        with self._lock:
            self.n_bytes -= self._order.pop(session, _NOTHING).n_bytes
