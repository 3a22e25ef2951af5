"""Facts for somebody who asks again and again: what was read of a log is kept, and only what is new is read.

What is kept is given up, and the log read anew, where it would not be the same as reading all of it: where the clock
was set back, people were forgotten, a backup took the place of the log, or an archive went away or came back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from threading import Lock

from doral._forks import renew_in_child
from doral.live.decision import Decision, make_decision
from doral.live.errors import StorageError
from doral.live.events import CLOCK_SET, FORGOTTEN, Event
from doral.live.fold import Fold
from doral.live.page.facts import CampaignFacts
from doral.live.page.gather import Finish
from doral.live.page.history import History
from doral.live.served import Served, ServedTables
from doral.live.session import Session
from doral.live.storage.contract import PAGE_EVENTS, Log

MOST_GROUPS = 20  # of a feature of people
_PAGE_DECISIONS = 1_000
_REWRITES = (CLOCK_SET, FORGOTTEN)  # they change what events before them say


class _Kept:
    """What is known of a log up to an event."""

    def __init__(self, fold: Fold, archives: tuple[bool, ...]) -> None:
        self.history = History(fold)
        self.served = ServedTables(fold.problem.person)
        self.archives = archives  # which of the files were there
        self.sequence, self.head = 0, b""
        self.is_partial = False

    def restart(self, *, after: int = 0) -> None:
        self.history.restart()
        self.served = ServedTables(self.served.person)
        self.sequence, self.head = after, b""


class Watch:
    """Of one campaign; safe to share between threads, who then wait for each other.

    The log is read in parts, so that nobody who writes waits long; all is of the moment of the first.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: _Kept | None = None
        self._lock = Lock()
        renew_in_child(self)

    def renew(self) -> None:
        """In a forked child: what the parent was at may be half done."""
        self._lock, self._kept = Lock(), None

    def facts(self, *, now: float | None = None) -> CampaignFacts:
        """The campaign as it is.

        Args:
            now: By which clock open decisions are judged, in seconds since 1970; None: this host's.
        """
        wall = time.time() if now is None else now
        with self._lock:
            kept, finish, head, archived = self._session.read(partial(self._begin, wall))
            self._kept = None  # until all is read
            history = kept.history
            is_new = kept.sequence == 0
            self._read_all(kept, archived)
            history.settle()
            if not kept.is_partial:
                history.compare(pending=finish.pending, arrivals=finish.arrivals)
            if finish.person:
                self._read_served(kept, is_new=is_new or kept.sequence == 0, archived=archived)
            history.touched.clear()
            latest = self._session.read(lambda log, _: _made(log, history, list(history.latest)))
            kept.sequence, kept.head = history.upto, head
            self._kept = kept
            groups = tuple(_groups(finish.person, kept.served))
            return finish.facts(history, tuple(reversed(latest)), groups, is_partial=kept.is_partial)

    def _begin(self, wall: float, log: Log, fold: Fold) -> tuple[_Kept, Finish, bytes, int]:
        archives = tuple(file.path.exists() for file in log.archives()) if log.archived else ()
        kept = self._kept
        if kept is not None and kept.archives == archives and _leads_to(kept, log, fold):
            kept.history.take(fold)
        else:
            kept = _Kept(fold, archives)
        return kept, Finish(fold, self._session.row.name, wall), fold.head, log.archived

    def _read_all(self, kept: _Kept, archived: int) -> None:
        """An archive that is not where it was is left out."""
        history, after, is_new = kept.history, kept.sequence, kept.sequence == 0
        while after < history.upto:
            try:
                events = self._session.read(partial(_next, after, history.upto))
            except StorageError:
                if after >= archived or kept.is_partial:
                    raise
                kept.restart()
                after, kept.is_partial, is_new = archived, True, True
                continue
            if not is_new and any(event.kind in _REWRITES for event in events):
                kept.restart()
                after, kept.is_partial, is_new = 0, False, True
                continue
            history.read(events)
            after = events[-1].sequence

    def _read_served(self, kept: _Kept, *, is_new: bool, archived: int) -> None:
        if is_new:
            for page in self._all_decisions(kept.history, archived if kept.is_partial else 0):
                kept.served.read(page)
            return
        touched = sorted(kept.history.touched)
        for first in range(0, len(touched), _PAGE_DECISIONS):
            some = touched[first : first + _PAGE_DECISIONS]
            kept.served.read(self._session.read(partial(_about, kept.history, some)))

    def _all_decisions(self, history: History, after: int) -> Iterator[list[Decision]]:
        def page(log: Log, _: Fold) -> tuple[list[Decision], int]:
            decided = log.decided_after(after, upto=history.upto, limit=_PAGE_DECISIONS)
            return (_made(log, history, decided), decided[-1].sequence) if decided else ([], after)

        while True:
            made, after = self._session.read(page)
            if not made:
                return
            yield made


def _leads_to(kept: _Kept, log: Log, fold: Fold) -> bool:
    """Whether the log goes on from what was read: one that was restored from a backup is the truth, too."""
    if kept.sequence > fold.sequence:
        return False
    if kept.sequence == fold.sequence:
        return kept.head == fold.head
    last = log.events([kept.sequence]).get(kept.sequence)
    return last is not None and last.chain == kept.head


def _next(after: int, upto: int, log: Log, _: Fold) -> list[Event]:
    return log.following(after, upto=upto, limit=PAGE_EVENTS)


def _about(history: History, numbers: Sequence[int], log: Log, _: Fold) -> list[Decision]:
    found = log.events(numbers)
    return _made(log, history, [found[number] for number in numbers])


def _made(log: Log, history: History, decided: Sequence[Event]) -> list[Decision]:
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
