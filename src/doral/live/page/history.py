"""What a log tells about time: read once, from first to last, in memory that does not grow with finished decisions."""

from __future__ import annotations

import copy
import json
import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

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
LATEST = 50
_CHANGES = (TOPPED_UP, EXTENDED, ARM_ADDED, ARM_PAUSED, ARM_RESUMED, ARM_RETIRED, CLOSED, CLOCK_SET)


class Open(NamedTuple):
    """A decision of which nothing has become yet."""

    made: float  # on the campaign's clock
    expires: float
    cost: float


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


class Day:
    __slots__ = ("answers", "arrivals", "reward")

    def __init__(self) -> None:
        self.arrivals, self.answers, self.reward = 0, 0, 0.0


class History:
    """Counts while events are read. What it needs of the state is taken at the start: the state moves on."""

    def __init__(self, fold: Fold) -> None:
        problem = fold.problem
        self.by_date = fold.engine.until is not None
        self._now = fold.clock if self.by_date else float(fold.round)
        self._epoch, self._in_seconds = fold.definition.epoch, fold.definition.is_in_seconds
        self._weights = problem.weights.tolist()
        self._deadlines = problem.deadlines.tolist()
        self._limits = [fold.age_limit(context) for context in range(problem.n_contexts)]
        self._control = fold.roster.control
        self._costs = fold.roster.costs(0)
        self.expiries = copy.deepcopy(fold.expiries)
        self.names = copy.copy(fold.names)
        self.names.repairs = list(fold.names.repairs)
        self.upto = fold.sequence
        self.restart()

    def restart(self) -> None:
        """Nothing was read, or what was read before is to be left out."""
        self._spent = self._reserved = 0.0
        self._edge = 0
        self.round = 0
        self.points: list[Point] = []
        self.open: dict[int, Open] = {}
        self.uses: dict[tuple[int, int], Uses] = {}
        self.contexts = [Came() for _ in self._weights]
        self.days: dict[int, Day] = {}
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
        at = self._place(event)
        while self._edge < _SAMPLES and self._now * self._edge / _SAMPLES < at:
            self._note(self._now * self._edge / _SAMPLES)
            self._edge += 1

    def _note(self, at: float) -> None:
        self.points.append(Point(at=at, spent=self._spent, reserved=self._reserved))

    def _day(self, event: Event) -> Day:
        day = int((self._epoch + self.names.own_time(event)) // DAY_S) if self._in_seconds else 0
        found = self.days.get(day)
        if found is None:
            found = self.days[day] = Day()
        return found

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
        self._day(event).arrivals += 1
        if event.arm is not None:
            came.spend += known(event.cost)
            came.served += event.arm != self._control

    def _wait(self, event: Event, cost: float) -> None:
        if self.expiries.has(event):
            return
        context, made = known(event.context), self.names.own_time(event)
        own = event.deadline
        limit = self._limits[context] if own is None else own
        self.open[event.sequence] = Open(made, made + limit, cost)

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
        self.open.pop(known(event.decision), None)
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
        day = self._day(event)
        is_answer = event.kind == ANSWERED
        day.answers += is_answer
        if arm != self._control:
            came.reward += worth
            came.answers += is_answer
            day.reward += worth

    def _counts(self, event: Event, context: int) -> bool:
        if event.state == IS_RETURNED:
            return True
        return event.state == IS_LATE and event.deadline is None and self._deadlines[context] == math.inf

    def _expired(self, event: Event) -> None:
        self._pass(event)
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

    def finish(self, *, spent: float, reserved: float) -> list[Point]:
        """The points, moved to where the ledger has the last one: by what was not read, and by the errors of floats."""
        while self._edge < _SAMPLES:
            self._note(self._now * self._edge / _SAMPLES)
            self._edge += 1
        more, held = spent - self._spent, reserved - self._reserved
        scale = 1e-9 * max(1.0, abs(spent))
        moved = [
            Point(
                at=one.at,
                spent=one.spent + (more if abs(more) > scale else 0.0),
                reserved=max(0.0, one.reserved + (held if abs(held) > scale else 0.0)),
            )
            for one in self.points
        ]
        return [*moved, Point(at=self._now, spent=spent, reserved=reserved)]

    def compare(self, *, pending: int, arrivals: int) -> None:
        """BrokenLog where what was read is not what the state stands for."""
        if len(self.open) != pending or self.round != arrivals:
            raise BrokenLog(
                f"the log has {len(self.open):,} open decisions of {self.round:,} arrivals, and should have "
                f"{pending:,} of {arrivals:,}: events are missing or were changed; restore a backup, and see `doral "
                "campaign verify`"
            )
