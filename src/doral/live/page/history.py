"""What a log tells about time: each event is read once, in memory that does not grow with finished decisions."""

from __future__ import annotations

import copy
import json
import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.live.errors import BrokenLog
from doral.live.events import (
    ANSWERED,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CLOCK_SET,
    CLOSED,
    CORRECTED,
    DECIDED,
    EXPIRED,
    EXTENDED,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    RECORDED,
    TOPPED_UP,
    Event,
    known,
)
from doral.live.fold import Fold
from doral.live.page.facts import Point
from doral.live.reasons import MADE_ELSEWHERE
from doral.live.weeks import DAY_S

_SAMPLES = 240
_FIRST_STEP_S = 2.0**-6  # powers of two: multiples of a step are exact, and every second one is of the next
LATEST = 50
MOST_PERIODS = 92
_PERIODS_S = (60.0, 600.0, 3_600.0, DAY_S)  # a young campaign is shown by minutes or hours; each holds the one before
_CHANGES = (TOPPED_UP, EXTENDED, ARM_ADDED, ARM_PAUSED, ARM_RESUMED, ARM_RETIRED, CLOSED, CLOCK_SET)


class Open(NamedTuple):
    """Decisions of which nothing has become yet, in their order."""

    made: Floats  # on the campaign's clock
    expires: Floats
    cost: Floats


class _Waits(NamedTuple):
    """One of them."""

    made: float
    context: int
    own: float  # its own deadline; not a number where it has none
    cost: float
    event: Event  # as much of it as tells whether it has expired


class Uses:
    """Of an arm in a context."""

    __slots__ = ("answers", "plays", "reward")

    def __init__(self) -> None:
        self.plays, self.answers, self.reward = 0, 0, 0.0


class Came:
    """Those of one context."""

    __slots__ = ("answers", "arrivals", "reward", "served", "spend")

    def __init__(self) -> None:
        self.arrivals, self.served, self.answers, self.reward, self.spend = 0, 0, 0, 0.0, 0.0


class Bin:
    """What happened in a minute, an hour or a day."""

    __slots__ = ("answers", "arrivals", "reward")

    def __init__(self) -> None:
        self.arrivals, self.answers, self.reward = 0, 0, 0.0

    def add(self, other: Bin) -> None:
        self.arrivals += other.arrivals
        self.answers += other.answers
        self.reward += other.reward


class History:
    """Counts while events are read. All follows from the events and their order, and not from where reading paused:
    samples of the money lie on a grid that is thinned out as time goes on, and so do periods.
    """

    def __init__(self, fold: Fold) -> None:
        problem = fold.problem
        self.by_date = fold.engine.until is not None
        self._epoch, self._in_seconds = fold.definition.epoch, fold.definition.is_in_seconds
        self._weights = problem.weights.tolist()
        self._deadlines = problem.deadlines.tolist()
        self._control = fold.roster.control
        self.take(fold)
        self.restart()

    def take(self, fold: Fold) -> None:
        """What is needed of the state up to which events are read next: the state itself moves on."""
        self._now = fold.clock if self.by_date else float(fold.round)
        self._limits = [fold.age_limit(context) for context in range(fold.problem.n_contexts)]
        self._costs = fold.roster.costs(0)
        self.expiries = copy.deepcopy(fold.expiries)
        self.names = copy.copy(fold.names)
        self.names.repairs = list(fold.names.repairs)
        self.upto = fold.sequence

    def restart(self) -> None:
        """Nothing was read, or what was read before is to be left out."""
        self._spent = self._reserved = 0.0
        self._step = _FIRST_STEP_S if self.by_date else 1.0
        self.round = 0
        self._points: list[Point] = []  # at the multiples of a step, from 0 on
        self._waiting: dict[int, _Waits] = {}  # open decisions, by number
        self._has_expired = False
        self.touched: set[int] = set()  # decisions that were made or changed since somebody emptied it
        self.uses: dict[tuple[int, int], Uses] = {}
        self.contexts = [Came() for _ in self._weights]
        self.bins: dict[int, Bin] = {}
        self.bin_s = _PERIODS_S[0]
        self.latest: deque[Event] = deque(maxlen=LATEST)
        self.changes: list[tuple[float, Event]] = []

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self, events: Sequence[Event]) -> None:
        for event in events:
            kind = event.kind
            if kind == DECIDED:
                self._decided(event)
            elif kind in (ANSWERED, CORRECTED, CANCELLED):
                self._settled(event)
            elif kind == RECORDED:
                self._recorded(event)
            elif kind == EXPIRED:
                self._expired(event)
            elif kind in _CHANGES:
                self._pass(event)
                self.changes.append((self._place(event), event))

    def _place(self, event: Event) -> float:
        return event.clock if self.by_date else float(self.round)

    def _pass(self, event: Event) -> None:
        """Note where the money was at the samples that lie before this event."""
        self._step = self._sampled(self._points, self._step, self._place(event))

    def _sampled(self, points: list[Point], step: float, upto: float) -> float:
        """Add those before this place; where they would be too many, only every second one stays. The step by then."""
        while upto > step * _SAMPLES:
            step *= 2.0
            del points[1::2]
        while (at := len(points) * step) < upto:
            points.append(Point(at=at, spent=self._spent, reserved=self._reserved))
        return step

    def _bin(self, event: Event) -> Bin:
        at = self._epoch + self.names.own_time(event) if self._in_seconds else 0.0
        place = int(at // self.bin_s)
        found = self.bins.get(place)
        if found is None:
            found = self.bins[place] = Bin()
            while self.bin_s < DAY_S and max(self.bins) - min(self.bins) >= MOST_PERIODS:
                self._coarsen()
            found = self.bins[int(at // self.bin_s)]
        return found

    def _coarsen(self) -> None:
        longer = _PERIODS_S[_PERIODS_S.index(self.bin_s) + 1]
        merged: dict[int, Bin] = {}
        for place, one in sorted(self.bins.items()):
            merged.setdefault(int(place * self.bin_s // longer), Bin()).add(one)
        self.bins, self.bin_s = merged, longer

    def _used(self, context: int, arm: int) -> Uses:
        found = self.uses.get((context, arm))
        if found is None:
            found = self.uses[context, arm] = Uses()
        return found

    def _decided(self, event: Event) -> None:
        if not self.by_date:
            self.round += 1
        self._pass(event)
        if self.by_date:
            self.round += 1
        self.latest.append(event)
        self.touched.add(event.sequence)
        self._arrived(event)
        if event.arm is None:
            return
        cost = known(event.cost)
        self._reserved += cost
        self._used(known(event.context), event.arm).plays += 1
        self._wait(event, cost)

    def _arrived(self, event: Event) -> None:
        """One more who came, and what that person was given."""
        came = self.contexts[known(event.context)]
        came.arrivals += 1
        self._bin(event).arrivals += 1
        if event.arm is not None:
            came.spend += known(event.cost)
            came.served += event.arm != self._control

    def _wait(self, event: Event, cost: float) -> None:
        if self.expiries.has(event):
            return
        context, own = known(event.context), event.deadline
        kept = Event(event.sequence, DECIDED, event.own, 0.0, 0, context=context, deadline=own)
        made = self.names.own_time(event)
        self._waiting[event.sequence] = _Waits(made, context, math.nan if own is None else own, cost, kept)

    def _recorded(self, event: Event) -> None:
        is_ours = bool(json.loads(known(event.data))["spend"])
        self.round += is_ours
        self._pass(event)
        self.latest.append(event)
        if is_ours:
            self._arrived(event)
        if event.arm is None:
            return
        cost = known(event.cost)
        self._used(known(event.context), event.arm).plays += 1
        if event.state == IS_EXPIRED:
            self._spent += cost
            return
        self._reserved += cost
        self._wait(event, cost)

    def _settled(self, event: Event) -> None:
        self._pass(event)
        before = known(event.previous_cost)
        after = before if event.actual_cost is None else event.actual_cost
        if event.was == IS_PENDING:
            self._reserved -= before
            self._spent += after
        else:
            self._spent -= before - after
        self._waiting.pop(known(event.decision), None)
        self.touched.add(known(event.decision))
        context, arm = known(event.context), known(event.arm)
        came, uses = self.contexts[context], self._used(context, arm)
        came.spend -= before - after
        if event.kind == CANCELLED:
            uses.plays -= 1
            is_ours = event.reason != MADE_ELSEWHERE or known(event.cost) > 0.0
            came.served -= is_ours and arm != self._control
            return
        reward = known(event.reward)
        if event.kind == ANSWERED:
            uses.answers += 1
        else:
            reward -= known(event.previous)
        if not self._counts(event, context):
            return
        worth = reward * (self._weights[context] if event.weight is None else event.weight)
        uses.reward += worth
        period = self._bin(event)
        is_answer = event.kind == ANSWERED
        period.answers += is_answer
        if arm != self._control:
            came.reward += worth
            came.answers += is_answer
            period.reward += worth

    def _counts(self, event: Event, context: int) -> bool:
        if event.state == IS_RETURNED:
            return True
        return event.state == IS_LATE and event.deadline is None and self._deadlines[context] == math.inf

    def _expired(self, event: Event) -> None:
        self._pass(event)
        self._has_expired = True
        said = json.loads(known(event.data))
        releases = said.get("release", False)
        if "by_arm" in said:  # as version 0.1 counted
            found = [(0, self._costs[int(arm)], count) for arm, count in said["by_arm"]]
        else:
            found = said["expired"]
        for context, cost, count in found:
            self._reserved -= cost * count
            if releases:
                self.contexts[int(context)].spend -= cost * count
            else:
                self._spent += cost * count

    # --- the end ----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """After the last event that is to be read: what has expired by then is not open any more."""
        if self._has_expired:
            gone = [number for number, one in self._waiting.items() if self.expiries.has(one.event)]
            for number in gone:
                del self._waiting[number]
            self.touched.update(gone)
            self._has_expired = False

    @property
    def open(self) -> Open:
        """Decisions of which nothing has become yet."""
        waits, many = self._waiting.values(), len(self._waiting)
        made = np.fromiter((one.made for one in waits), np.float64, many)
        own = np.fromiter((one.own for one in waits), np.float64, many)
        contexts = np.fromiter((one.context for one in waits), np.int64, many)
        limits = np.where(np.isnan(own), np.asarray(self._limits, dtype=np.float64)[contexts], own)
        return Open(made, made + limits, np.fromiter((one.cost for one in waits), np.float64, many))

    def points(self, *, spent: float, reserved: float) -> list[Point]:
        """The samples, moved to where the ledger has the last one: by what was not read, and by the errors of
        floats.
        """
        found = list(self._points)
        self._sampled(found, self._step, self._now)
        more, held = spent - self._spent, reserved - self._reserved
        scale = 1e-9 * max(1.0, abs(spent))
        moved = [
            Point(
                at=one.at,
                spent=one.spent + (more if abs(more) > scale else 0.0),
                reserved=max(0.0, one.reserved + (held if abs(held) > scale else 0.0)),
            )
            for one in found
            if one.at < self._now  # later ones were seen before the clock was set back
        ]
        return [*moved, Point(at=self._now, spent=spent, reserved=reserved)]

    def compare(self, *, pending: int, arrivals: int) -> None:
        """BrokenLog where what was read is not what the state stands for."""
        if len(self._waiting) != pending or self.round != arrivals:
            raise BrokenLog(
                f"the log has {len(self._waiting):,} open decisions of {self.round:,} arrivals, and should have "
                f"{pending:,} of {arrivals:,}: events are missing or were changed; restore a backup, and see `doral "
                "campaign verify`"
            )
