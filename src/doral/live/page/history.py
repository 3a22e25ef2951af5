"""What a log tells about time: each event is read once, in memory that does not grow with finished decisions."""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.live.errors import BrokenLog
from doral.live.events.event import (
    IS_PENDING,
    MADE_ELSEWHERE,
    Answered,
    ArmAdded,
    ArmChanged,
    Arrived,
    Cancelled,
    ClockSet,
    Closed,
    Corrected,
    Decided,
    Deciding,
    Event,
    Expired,
    Extended,
    PauseChanged,
    Place,
    Recorded,
    Settled,
    ToppedUp,
)
from doral.live.kinds.answer import counts
from doral.live.page.facts import Point
from doral.live.state.definition import DAY_S
from doral.live.state.state import CampaignState

_SAMPLES = 240
_FIRST_STEP_S = 2.0**-6  # powers of two: multiples of a step are exact, and every second one is of the next
LATEST = 50
RECENT = 50  # arrivals of a context, of which it is told what they got
_MIXES = 48  # stretches at most, in which what the policy did is counted
SKIP = -1  # in the place of an arm
MOST_PERIODS = 92
_PERIODS_S = (60.0, 600.0, 3_600.0, DAY_S)  # a young campaign is shown by minutes or hours; each holds the one before
_CHANGES = (ToppedUp, Extended, ArmAdded, ArmChanged, PauseChanged, Closed, ClockSet)


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
    event: Decided  # as much of it as tells whether it has expired


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

    def __init__(self, state: CampaignState) -> None:
        problem = state.problem
        self.by_date = state.engine.until is not None
        self._epoch, self._in_seconds = state.definition.epoch, state.definition.is_in_seconds
        self._weights = problem.weights.tolist()
        self._problem = problem
        self._control = state.arms.control
        self.take(state)
        self.restart()

    def take(self, state: CampaignState) -> None:
        """What is needed of the state up to which events are read next: the state itself moves on."""
        self._now = state.clock if self.by_date else float(state.round)
        self._limits = [state.age_limit(context) for context in range(state.problem.n_contexts)]
        self._costs = state.arms.costs(0)
        self.expiries = copy.deepcopy(state.expiries)
        self.names = copy.copy(state.names)
        self.names.repairs = list(state.names.repairs)
        self.upto = state.sequence

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
        self.latest: deque[Deciding] = deque(maxlen=LATEST)
        self.recent = [deque[int](maxlen=RECENT) for _ in self._weights]
        self.mix_step = _FIRST_STEP_S if self.by_date else 1.0
        self.mixes: dict[int, dict[int, int]] = {}  # by stretch: arrivals by arm
        self.changes: list[tuple[float, Event]] = []

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self, events: Sequence[Event]) -> None:
        """Count the next events."""
        for event in events:
            if isinstance(event, Decided):
                self._decided(event)
            elif isinstance(event, Settled):
                self._settled(event)
            elif isinstance(event, Recorded):
                self._recorded(event)
            elif isinstance(event, Expired):
                self._expired(event)
            elif isinstance(event, _CHANGES):
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

    def _decided(self, event: Decided) -> None:
        if not self.by_date:
            self.round += 1
        self._pass(event)
        if self.by_date:
            self.round += 1
        self.latest.append(event)
        self.touched.add(event.sequence)
        self._arrived(event)
        if event.choice.arm is None:
            return
        self._reserved += event.choice.cost
        self._used(event.arrival.context, event.choice.arm).plays += 1
        self._wait(event)

    def _arrived(self, event: Deciding) -> None:
        """Count one more arrival, and what it was given."""
        came = self.contexts[event.arrival.context]
        came.arrivals += 1
        arm = SKIP if event.choice.arm is None else event.choice.arm
        self.recent[event.arrival.context].append(arm)
        self._mix(event, arm)
        self._bin(event).arrivals += 1
        if event.choice.arm is not None:
            came.spend += event.choice.cost
            came.served += event.choice.arm != self._control

    def _mix(self, event: Deciding, arm: int) -> None:
        """Count what the policy did, in stretches that double where they would be too many."""
        at = event.clock if self.by_date else max(0.0, self.round - 1.0)
        while at >= _MIXES * self.mix_step:
            self.mix_step *= 2.0
            merged: dict[int, dict[int, int]] = {}
            for place, stretch in self.mixes.items():
                into = merged.setdefault(place // 2, {})
                for one, many in stretch.items():
                    into[one] = into.get(one, 0) + many
            self.mixes = merged
        stretch = self.mixes.setdefault(int(at // self.mix_step), {})
        stretch[arm] = stretch.get(arm, 0) + 1

    def _wait(self, event: Deciding) -> None:
        if self.expiries.has(event):
            return
        context, own = event.arrival.context, event.arrival.deadline
        kept = Decided(Place(event.sequence, event.own, 0.0, 0), Arrived(context, None, None, own))
        made = self.names.own_time(event)
        cost = event.choice.cost
        self._waiting[event.sequence] = _Waits(made, context, math.nan if own is None else own, cost, kept)

    def _recorded(self, event: Recorded) -> None:
        self.round += event.is_ours
        self._pass(event)
        self.latest.append(event)
        if event.is_ours:
            self._arrived(event)
        if event.choice.arm is None:
            return
        self._used(event.arrival.context, event.choice.arm).plays += 1
        if event.is_overdue:
            self._spent += event.choice.cost
            return
        self._reserved += event.choice.cost
        self._wait(event)

    def _settled(self, event: Settled) -> None:
        self._pass(event)
        before, after = event.settlement.previous_cost, event.settlement.cost
        if event.settlement.was == IS_PENDING:
            self._reserved -= before
            self._spent += after
        else:
            self._spent -= before - after
        about = event.about
        self._waiting.pop(about.decision, None)
        self.touched.add(about.decision)
        came, uses = self.contexts[about.context], self._used(about.context, about.arm)
        came.spend -= before - after
        if isinstance(event, Cancelled):
            uses.plays -= 1
            is_ours = about.reason != MADE_ELSEWHERE or about.cost > 0.0
            came.served -= is_ours and about.arm != self._control
            return
        is_answer = isinstance(event, Answered)
        uses.answers += is_answer
        reward = event.reward - (event.previous if isinstance(event, Corrected) else 0.0)  # type: ignore[attr-defined]
        if not counts(self._problem, event):  # type: ignore[arg-type]
            return
        worth = reward * (self._weights[about.context] if about.weight is None else about.weight)
        uses.reward += worth
        period = self._bin(event)
        period.answers += is_answer
        if about.arm != self._control:
            came.reward += worth
            came.answers += is_answer
            period.reward += worth

    def _expired(self, event: Expired) -> None:
        self._pass(event)
        self._has_expired = True
        for context, cost, count in event.costs(self._costs):
            self._reserved -= cost * count
            if event.is_released:
                self.contexts[context].spend -= cost * count
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
    def n_open(self) -> int:
        """How many decisions wait for an answer."""
        return len(self._waiting)

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
