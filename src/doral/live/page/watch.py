"""Facts for somebody who asks again and again: what was read of a log is kept, and only what is new is read.

What is kept is given up, and the log read anew, where it would not be the same as reading all of it: where the clock
was set back, people were forgotten, or a backup took the place of the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from threading import Lock

from doral.live.events.codec import decode
from doral.live.events.event import Deciding
from doral.live.events.row import CLOCK_SET, FORGOTTEN, Row
from doral.live.page.facts import CampaignFacts
from doral.live.page.gather import Finish
from doral.live.page.history import History
from doral.live.runtime.session import Session
from doral.live.state.state import CampaignState
from doral.live.storage.contract import PAGE_EVENTS, Log
from doral.live.views.decision import Decision, make_decision
from doral.live.views.groups import Served, ServedTables

MOST_GROUPS = 20  # of a feature of people
_PAGE_DECISIONS = 1_000
_PER_OPEN_BYTES = 700  # a decision that waits for its answer
_REWRITES = (CLOCK_SET, FORGOTTEN)  # they change what events before them say


class _Kept:
    """What is known of a log up to an event."""

    def __init__(self, state: CampaignState) -> None:
        self.history = History(state)
        self.served = ServedTables(state.problem.person)
        self.sequence, self.head = 0, b""

    def restart(self) -> None:
        self.history.restart()
        self.served = ServedTables(self.served.person)
        self.sequence, self.head = 0, b""


class Watch:
    """Of one campaign; safe to share between threads, who then wait for each other.

    The log is read in parts, so that nobody who writes waits long; all is of the moment of the first.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: _Kept | None = None
        self._lock = Lock()
        session.watch_bytes, session.forget_watch = self._n_bytes, self._forget

    def _n_bytes(self) -> int:
        """What is kept beside the state, about."""
        kept = self._kept
        return 0 if kept is None else kept.served.n_bytes + _PER_OPEN_BYTES * kept.history.n_open

    def _forget(self) -> None:
        """The session is closed: whoever asks again reads the log anew."""
        self._kept = None

    def facts(self, *, now: float | None = None) -> CampaignFacts:
        """The campaign as it is.

        Args:
            now: By which clock open decisions are judged, in seconds since 1970; None: this host's.
        """
        self._session.refuse_child()
        wall = time.time() if now is None else now
        with self._lock:
            kept, finish, head = self._session.read(partial(self._begin, wall))
            self._kept = None  # until all is read
            history = kept.history
            is_new = kept.sequence == 0
            self._read_all(kept)
            history.settle()
            history.compare(pending=finish.pending, arrivals=finish.arrivals)
            if finish.person:
                self._read_served(kept, is_new=is_new or kept.sequence == 0)
            history.touched.clear()
            latest = self._session.read(lambda log, _: _made(log, history, list(history.latest)))
            kept.sequence, kept.head = history.upto, head
            self._kept = kept
            groups = tuple(_groups(finish.person, kept.served))
            return finish.facts(history, tuple(reversed(latest)), groups)

    def _begin(self, wall: float, log: Log, state: CampaignState) -> tuple[_Kept, Finish, bytes]:
        kept = self._kept
        if kept is not None and _leads_to(kept, log, state):
            kept.history.take(state)
        else:
            kept = _Kept(state)
        return kept, Finish(state, self._session.row.name, wall), state.head

    def _read_all(self, kept: _Kept) -> None:
        history, after, is_new = kept.history, kept.sequence, kept.sequence == 0
        while after < history.upto:
            rows = self._session.read(partial(_next, after, history.upto))
            if not is_new and any(row.kind in _REWRITES for row in rows):
                kept.restart()
                after, is_new = 0, True
                continue
            history.read(list(map(decode, rows)))
            after = rows[-1].sequence

    def _read_served(self, kept: _Kept, *, is_new: bool) -> None:
        if is_new:
            for page in self._all_decisions(kept.history):
                kept.served.read(page)
            return
        touched = sorted(kept.history.touched)
        for first in range(0, len(touched), _PAGE_DECISIONS):
            some = touched[first : first + _PAGE_DECISIONS]
            kept.served.read(self._session.read(partial(_about, kept.history, some)))

    def _all_decisions(self, history: History) -> Iterator[list[Decision]]:
        after = 0

        def page(log: Log, _: CampaignState) -> tuple[list[Decision], int]:
            decided = log.decided_after(after, upto=history.upto, limit=_PAGE_DECISIONS)
            return (_made(log, history, decided), decided[-1].sequence) if decided else ([], after)

        while True:
            made, after = self._session.read(page)
            if not made:
                return
            yield made


def _leads_to(kept: _Kept, log: Log, state: CampaignState) -> bool:
    """Whether the log goes on from what was read: one that was restored from a backup is the truth, too."""
    if kept.sequence > state.sequence:
        return False
    if kept.sequence == state.sequence:
        return kept.head == state.head
    last = log.events([kept.sequence]).get(kept.sequence)
    return last is not None and last.place.chain == kept.head


def _next(after: int, upto: int, log: Log, _: CampaignState) -> list[Row]:
    return log.following(after, upto=upto, limit=PAGE_EVENTS)


def _about(history: History, numbers: Sequence[int], log: Log, _: CampaignState) -> list[Decision]:
    found = log.events(numbers)
    return _made(log, history, [one for number in numbers if isinstance(one := found[number], Deciding)])


def _made(log: Log, history: History, decided: Sequence[Deciding]) -> list[Decision]:
    """As they stood after the last event that was read."""
    about = log.about(event.sequence for event in decided)
    return [
        make_decision(
            history.names,
            event,
            [one for one in about.get(event.sequence, ()) if one.sequence <= history.upto],
            history.expiries,
        )
        for event in decided
    ]


def _groups(person: Sequence[str], tables: ServedTables) -> Iterator[Served]:
    for feature in person:
        yield from tables.table(feature, 4)[:MOST_GROUPS]
