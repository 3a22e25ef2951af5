"""All campaigns at a glance: one line each, from the state of a campaign and never from its log, made once for all.

Only campaigns that have moved are looked at. Where there are more of them than a look has time for, those that somebody
is shown come first, and the next look goes on where this one ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TypeAlias

from doral.errors import DoralError
from doral.live.errors import ConnectionLost
from doral.live.events.event import IS_PENDING
from doral.live.runtime.session import Session
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.store import Store
from doral.live.views.text import pace_words
from doral.service.operations.metrics import in_turn

_EVERY_S = 1.0
_RESTS = 5.0  # times as long as looking took
_READING_S = 0.5  # that one look spends on campaigns that were not read yet
_SMALL_EVENTS = 1_000  # a log of so many is read anew: that takes a moment, and keeps nothing
_MOST_OPEN = 50  # campaigns that are kept ready only because somebody looks at the list
_TRY_AGAIN_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A campaign in one line.

    Attributes:
        name: Of the campaign.
        state: "open", "racing", "closed"; "reading": it was not looked at yet; "failed": it cannot be read.
        events: Number of the last one.
        total: Its budget.
        spent: Of it, on decisions that are over.
        reserved: For open ones.
        planned: That should be used by now.
        pace: Where it stands relative to that.
        arrivals: So far.
        reward: So far.
        pending: Open decisions.
        last_at: When the last event was written, in seconds since 1970.
        alarms: That are raised.
        words: The same as a sentence.
        trouble: Why it cannot be read.
    """

    name: str
    state: str
    events: int = -1
    total: float = 0.0
    spent: float = 0.0
    reserved: float = 0.0
    planned: float = 0.0
    pace: str = ""
    words: str = ""
    arrivals: int = 0
    reward: float = 0.0
    pending: int = 0
    last_at: float | None = None
    alarms: int = 0
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All campaigns at one moment.

    Attributes:
        lines: By name, in their order.
        version: Counted up with every change.
        changed: In which version each line became what it is.
        members: In which version the last campaign came or went.
    """

    lines: Mapping[str, Line]
    version: int
    changed: Mapping[str, int]
    members: int


Shown: TypeAlias = Callable[[Seen], Iterable[str]]


class Overview:
    """Of one process; whoever asks while somebody looks waits for it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._seen: Seen | None = None
        self._began_at, self._took_s = -1e9, 0.0
        self._failed_at: dict[str, float] = {}
        self._opened: dict[str, Session] = {}  # only because somebody looks at the list, the longest ago first
        self._shown: set[str] = set()  # to anybody since the last look
        self._last_small = self._last_large = ""  # that was read

    def look(self, shown: Shown | None = None, *, at_once: bool = False) -> Seen:
        """As it was a moment ago; `at_once`: nothing is older than the question. Who asks together looks together.

        Args:
            shown: Of what was seen, the names that whoever asks is going to show: they are read before all others.
            at_once: Whether to look now.
        """
        asked_at = time.monotonic()
        with self._lock:
            now = time.monotonic()
            if shown is not None and self._seen is not None:
                self._shown.update(shown(self._seen))
            wait_s = max(_EVERY_S, _RESTS * self._took_s)
            is_new = self._began_at >= asked_at if at_once else now < self._began_at + self._took_s + wait_s
            if self._seen is None or not is_new:
                self._seen = self._look(now)
                self._began_at, self._took_s = now, time.monotonic() - now
            return self._seen

    def _look(self, now: float) -> Seen:
        before = self._seen
        known = before.lines if before is not None else {}
        alarms: dict[str, int] = {}
        for row in self._store.books.alarms():
            alarms[row.campaign] = alarms.get(row.campaign, 0) + 1
        lines = self._read(known, now)
        lines = {name: replace(line, alarms=alarms.get(name, 0)) for name, line in lines.items()}
        version = 1 if before is None else before.version + 1
        same = before is not None and list(before.lines) == list(lines)
        changed = {
            name: before.changed[name] if before is not None and known.get(name) == line else version
            for name, line in lines.items()
        }
        members = before.members if same and before is not None else version
        return Seen(lines=lines, version=version, changed=changed, members=members)

    def _read(self, known: Mapping[str, Line], now: float) -> dict[str, Line]:
        """As they are, as far as there is time; half of it is for long logs, where some are due."""
        until = now + _READING_S
        with self._store.glimpses() as found:
            lines = {one.name: known.get(one.name) or Line(name=one.name, state="reading") for one in found}
            due = {one.name: one for one in found if self._is_due(lines[one.name], one.last_event, now)}
            large = {name: one.last_event for name, one in due.items() if one.last_event > _SMALL_EVENTS}
            until_large = now + _READING_S / 2 if large else until
            for name in self._in_turn(due.keys() - large.keys(), self._last_small):
                if time.monotonic() > until_large:
                    break
                one, self._last_small = due[name], name
                lines[name] = self._tried(name, one.last_event, now, partial(one.read, partial(_line, name)))
        for name in self._in_turn(large, self._last_large):
            if time.monotonic() > until:
                break
            self._last_large = name
            lines[name] = self._tried(name, large[name], now, partial(self._read_open, name))
        self._shown.clear()
        return lines

    def _in_turn(self, names: Iterable[str], last: str) -> list[str]:
        """Those that somebody sees first; among these, and among the others, from where the last look ended."""
        return sorted(in_turn(names, after=last), key=lambda name: name not in self._shown)

    def _is_due(self, line: Line, last: int, now: float) -> bool:
        if line.state == "failed":
            return now - self._failed_at.get(line.name, -1e9) > _TRY_AGAIN_S
        return line.events != last

    def _tried(self, name: str, last: int, now: float, read: Callable[[], Line]) -> Line:
        try:
            return read()
        except ConnectionLost:
            raise
        except DoralError as error:
            self._failed_at[name] = now
            return Line(name=name, state="failed", events=last, trouble=str(error))

    def _read_open(self, name: str) -> Line:
        """Of a campaign whose state is kept, so that only new events are read; of those not used otherwise, some."""
        session = self._store.campaign(name).session
        if not session.is_open or name in self._opened:
            self._opened.pop(name, None)
            self._opened[name] = session
        line = session.read(partial(_line, name))
        while len(self._opened) > _MOST_OPEN:
            self._opened.pop(next(iter(self._opened))).close()  # each has its state, and in SQLite a connection
        return line


def _line(name: str, log: Log, now: CampaignState) -> Line:
    ledger = now.ledger
    last = log.events([now.sequence]).get(now.sequence)
    pace = now.pace(time.time() - now.definition.epoch if now.engine.until is not None else None)
    return Line(
        name=name,
        state=now.stage,
        events=now.sequence,
        total=float(ledger.total),
        spent=float(ledger.spent),
        reserved=float(ledger.reserved),
        planned=pace.planned,
        pace=pace.status,
        words=pace_words(pace, currency=now.problem.currency, share_gone=now.time_share),
        arrivals=now.round,
        reward=float(now.counts.reward),
        pending=now.counts.states[IS_PENDING],
        last_at=None if last is None else last.place.at,
    )
