"""All campaigns at a glance: one line each, from the state of a campaign, made once for all.

Of a log only the amounts are read, once, for the line of spend against plan.

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
from doral.live.events.codec import decode
from doral.live.events.event import IS_PENDING, Expired
from doral.live.events.row import DECIDED, EXPIRED, MAKES_DECISION, Row
from doral.live.runtime.session import Session
from doral.live.state.plan import Pace, Plan, judge_pace
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
_PAGES, _PAGE_EVENTS = 2, 5_000  # of a log, that one look at it reads
_MOST_POINTS = 32  # of a line of spending
_MINUTE_S = 60.0
_NO_PACE = Pace("", 0.0, 0.0)


class Curve:
    """Spending of a campaign over its arrivals or its time, read on from where reading stopped."""

    def __init__(self) -> None:
        self.sequence = self.arrivals = 0
        self._used, self._step = 0.0, 0.0
        self._points: list[tuple[float, float]] = [(0.0, 0.0)]

    def read(self, log: Log, state: CampaignState) -> bool:
        """Read the next events; False where there are more than one look has time for."""
        for _ in range(_PAGES):
            if self.sequence >= state.sequence:
                return True
            rows = log.after(self.sequence, upto=state.sequence, limit=_PAGE_EVENTS)
            if not rows:
                return True
            for row in rows:
                self._count(row, by_date=state.engine.until is not None)
            self.sequence = rows[-1].sequence
        return self.sequence >= state.sequence

    def _count(self, row: Row, *, by_date: bool) -> None:
        if row.kind in MAKES_DECISION:
            self.arrivals += row.kind == DECIDED or bool(row.cost)
            self._used += row.cost or 0.0
        elif row.previous_cost is not None and row.actual_cost is not None:
            self._used += row.actual_cost - row.previous_cost
        elif row.kind == EXPIRED:
            event = decode(row)
            if isinstance(event, Expired) and event.is_released:
                self._used -= sum(cost * many for _, cost, many in event.counts)
        at = row.clock if by_date else float(self.arrivals)
        if at < self._points[-1][0] + self._step:
            return
        self._points.append((at, self._used))
        if len(self._points) > _MOST_POINTS:
            self._points = self._points[::2]
            self._step = max(self._step * 2.0, (self._points[-1][0] - self._points[0][0]) / _MOST_POINTS)

    def points(self, at: float, used: float) -> tuple[tuple[float, float], ...]:
        """Those that were sampled, and the last one as the ledger has it."""
        return (*(one for one in self._points if one[0] < at), (at, used))


@dataclass(frozen=True, kw_only=True)
class Line:
    """A campaign in one line.

    Attributes:
        name: Of the campaign.
        state: "open", "racing", "paused", "closed"; "reading": it was not looked at yet; "failed": it cannot be read.
        events: Number of the last one.
        total: Its budget.
        spent: Of it, on decisions that are settled.
        reserved: For open ones.
        pace: Spending relative to what was planned by now.
        curve: Spending so far.
        bend: Where the plan was bent last, and what was planned by then.
        ends_at: When the plan ends, where that is a date; seconds since 1970.
        epoch: When the campaign's clock showed 0, where its end is a date; None otherwise.
        dearest: Largest cost of a use.
        currency: Of the budget.
        outcome: Name of a reward of 1.
        arrivals: So far.
        reward: So far.
        pending: Open decisions.
        last_at: When the last event was written, in seconds since 1970.
        alarms: That are raised and not acknowledged.
        alarm: The newest of them, in words.
        is_partial: Whether more of the log is still to be read.
        trouble: Why it cannot be read.
    """

    name: str
    state: str
    events: int = -1
    total: float = 0.0
    spent: float = 0.0
    reserved: float = 0.0
    pace: Pace = _NO_PACE
    curve: tuple[tuple[float, float], ...] = ()
    bend: tuple[float, float] = (0.0, 0.0)
    ends_at: float | None = None
    epoch: float | None = None
    dearest: float = 0.0
    currency: str = ""
    outcome: str = ""
    arrivals: int = 0
    reward: float = 0.0
    pending: int = 0
    last_at: float | None = None
    alarms: int = 0
    alarm: str = ""
    is_partial: bool = False
    trouble: str = ""

    @property
    def words(self) -> str:
        """The pace as a sentence."""
        return pace_words(self.pace, currency=self.currency, share_gone=0.0)

    @property
    def needs_attention(self) -> bool:
        """Whether an operator should look at it."""
        is_off = self.state != "closed" and self.pace.status in ("ahead of plan", "behind plan", "used up")
        return self.alarms > 0 or self.state == "failed" or is_off

    def at(self, now: float) -> Line:
        """The same at a later moment: where the end is a date, the plan goes on while nobody comes."""
        if self.epoch is None or self.ends_at is None or self.state == "closed":
            return self
        clock, end = now // _MINUTE_S * _MINUTE_S - self.epoch, self.ends_at - self.epoch
        planned = Plan(*self.bend).by(max(clock, self.curve[-1][0]), end=end, total=self.total)
        pace = judge_pace(
            used=self.spent + self.reserved,
            planned=planned,
            total=self.total,
            dearest=self.dearest,
            arrivals=self.arrivals,
            share_gone=min(1.0, max(0.0, clock / end)),
            is_closed=False,
        )
        return replace(self, pace=pace)


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
        self._curves: dict[str, Curve] = {}
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
        alarms: dict[str, list[str]] = {}
        for row in self._store.books.alarms():
            if row.acknowledged_at is None:
                alarms.setdefault(row.campaign, []).append(row.words)
        lines = self._read(known, now)
        wall = time.time()
        for name, line in lines.items():
            words = alarms.get(name, [])
            told = line.at(wall)
            if (told.alarms, told.alarm) != (len(words), words[0] if words else ""):
                told = replace(told, alarms=len(words), alarm=words[0] if words else "")
            lines[name] = told
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
                lines[name] = self._tried(name, one.last_event, now, partial(one.read, partial(self._line, name)))
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
        return line.events != last or line.is_partial

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
        line = session.read(partial(self._line, name))
        while len(self._opened) > _MOST_OPEN:
            self._opened.pop(next(iter(self._opened))).close()  # each has its state, and in SQLite a connection
        return line

    def _line(self, name: str, log: Log, now: CampaignState) -> Line:
        curve = self._curves.get(name)
        if curve is None or curve.sequence > now.sequence:  # a backup may have taken its place
            curve = self._curves[name] = Curve()
        is_whole = curve.read(log, now)
        ledger, until, epoch = now.ledger, now.engine.until, now.definition.epoch
        last = log.events([now.sequence]).get(now.sequence)
        used = float(ledger.spent + ledger.reserved)
        return Line(
            name=name,
            state=now.stage,
            events=now.sequence,
            total=float(ledger.total),
            spent=float(ledger.spent),
            reserved=float(ledger.reserved),
            pace=now.pace(),
            curve=curve.points(now.clock if until is not None else float(now.round), used),
            bend=(now.plan.since, now.plan.planned),
            ends_at=None if until is None else epoch + until,
            epoch=None if until is None else epoch,
            dearest=now.dearest,
            currency=now.problem.currency,
            outcome=now.problem.outcome,
            arrivals=now.round,
            reward=float(now.counts.reward),
            pending=now.counts.states[IS_PENDING],
            last_at=None if last is None else last.place.at,
            is_partial=not is_whole,
        )
