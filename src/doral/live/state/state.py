"""The state of a campaign: what its log adds up to. `kinds` changes it, event by event; everything else only looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from doral.engine.engine import Engine
from doral.engine.setup import Blueprint
from doral.live.errors import BrokenLog, CampaignClosed, PolicyFailed
from doral.live.events.codec import DecidedColumns
from doral.live.events.event import IS_SKIPPED, About, Arrived, ClockSet, Event, Settled
from doral.live.state.definition import DAY_S, Definition, engine_name, time_of_week
from doral.live.state.own_policy import OwnPolicy
from doral.live.state.parts import Arms, Counters, Expiries, Ledger, LikelyLedger, Names, exact, plus, times
from doral.live.state.plan import Pace, Plan, judge_pace
from doral.person import Category, Levels
from doral.problem import OBSERVED, Arm, Problem

_BUDGET_DRIFT = 1e-9  # of the budget: how far the engine's floats may be from the exact ledger

# Beside the arrays: their headers, the problem, names, counts, the ledger. Seen with `tracemalloc` for two and for
# forty arms; a test looks again.
_AROUND_BYTES = 36_000
_PER_ARM_BYTES = 1_500
_PER_LEVEL_BYTES = 200


class CampaignState:
    """Everything that is known of a campaign after the event `sequence`."""

    def __init__(self, definition: Definition, tag: str) -> None:
        problem = definition.problem
        self.definition = definition
        self.problem = problem  # with the arms that were added
        self._is_in_seconds = definition.is_in_seconds
        self.arms = Arms(problem)
        self.engine = Engine(_blueprint(definition, problem))
        budget = exact(problem.budget)
        self.ledger = _ledger_class(problem)(total=budget, left=budget)
        self.plan = Plan()
        self.counts = Counters()
        for _ in problem.arms:
            self.counts.add_arm()
        self.names = Names(
            tag=tag,
            epoch=definition.epoch,
            contexts=problem.context_names,
            arms=problem.arm_names,
            nothing=problem.control if problem.baseline == OBSERVED else None,
            person=problem.person_names,
            unit_costs=self.arms.unit_costs,
        )
        self.levels = Levels(problem.person)  # of categories, in the order of the log
        self.sequence = 1
        self.head = b""  # checksum of the last event
        self.salt = b""  # that of the first: keys are hashed with it
        self.clock = 0.0
        self.round = 0
        self.expiries = Expiries(problem.n_contexts, self.names.repairs)
        self.closed = False
        self.engines = {definition.engine: 1}  # which have written, and since which event
        # Decisions up to this number of the engine were made before the clock was set back: what silence has taught of
        # them may be wrong.
        self.swept = 0
        # What today's engine made of an answer, by decision, where the log says that another made something else of it.
        self.made_otherwise: dict[int, int] = {}
        self.erased: set[int] = set()  # events whose key is gone, until the log says that it was erased on purpose
        self.faceless: set[int] = set()  # the same for features of people
        self.forgotten: frozenset[int] = frozenset()  # events whose people were erased later on
        self.own: OwnPolicy | None = None  # where this process has the code of the campaign's own policy
        self.knows_forgotten = False  # people were forgotten of whom this state knows: the log has to be read anew

    def age_limit(self, context: int, own: float | None = None) -> float:
        """Return the age after which an answer is late: the deadline; without one, the engine's cut-off."""
        deadline = float(self.problem.deadlines[context]) if own is None else own
        return deadline if deadline < math.inf else self.engine.cutoff

    @property
    def longest_leap(self) -> float:
        """How far a clock that counts rounds may go ahead at once: all that are expected to arrive, and an answer."""
        deadlines = self.problem.deadlines
        longest = float(deadlines[deadlines < math.inf].max(initial=0.0))
        return self.engine.horizon + max(longest, self.engine.cutoff if self.engine.cutoff < math.inf else 0.0)

    @property
    def time_share(self) -> float:
        """How much of the campaign is over: of its arrivals, or of its time where the end is a date."""
        until = self.engine.until
        return self.round / self.engine.horizon if until is None else min(1.0, self.clock / until)

    @property
    def stage(self) -> str:
        """Return "open", "racing", "paused" or "closed"."""
        if self.closed:
            return "closed"
        if self.arms.is_paused:
            return "paused"
        return "racing" if self.engine.is_racing else "open"

    def bend_plan(self) -> None:
        """Plan anew from here on: the budget or the end is about to change."""
        until = self.engine.until
        now, end = (self.clock, until) if until is not None else (float(self.round), float(self.engine.horizon))
        self.plan.bend(now, end=end, total=float(self.ledger.total))

    @property
    def dearest(self) -> float:
        """Return the largest cost of a use."""
        return float(self.arms.dearest)

    def pace(self, clock: float | None = None) -> Pace:
        """Judge spending relative to what was planned by now.

        Args:
            clock: What the campaign's clock shows, where the end is a date; None: the time of the last event.
        """
        until = self.engine.until
        now, end = float(self.round), float(self.engine.horizon)
        if until is not None:
            now, end = max(self.clock, self.clock if clock is None else clock), until
        total = float(self.ledger.total)
        return judge_pace(
            used=total - float(self.ledger.left),
            planned=self.plan.by(now, end=end, total=total),
            total=total,
            dearest=self.dearest,
            arrivals=self.round,
            share_gone=min(1.0, now / end) if end > 0.0 else 1.0,
            is_closed=self.closed,
        )

    @property
    def n_bytes(self) -> int:
        """Memory that dropping this state would free, within a quarter or so. Takes some 40 microseconds."""
        arrays = sum(array.nbytes for _, array in self.engine.arrays())
        levels = sum(len(self.levels.names(one.name)) for one in self.problem.person if isinstance(one, Category))
        return arrays + _AROUND_BYTES + _PER_ARM_BYTES * self.problem.n_arms + _PER_LEVEL_BYTES * levels

    def refuse_if_closed(self) -> None:
        """CampaignClosed where it is."""
        if self.closed:
            raise CampaignClosed("the campaign is closed: it takes answers, and nothing else")

    def refuse_without_policy(self) -> None:
        """PolicyFailed where the campaign has a policy of its own and this process has not."""
        if self.definition.own is not None and self.own is None:
            raise PolicyFailed(
                f"this campaign decides by a policy of its own ({self.definition.own}), which this process does not "
                "have: name its code, as in doral.open(url, code={'campaign': 'package.module:Class'})"
            )

    @property
    def is_new_engine(self) -> bool:
        """Whether this process's engine has not written to the log yet."""
        return engine_name() not in self.engines

    def add_arm(self, arm: Arm) -> None:
        """Add an arm to all that knows arms."""
        self.arms.add(arm)
        self.problem = self.arms.problem
        self.engine.add_arm(self.problem)
        self.counts.add_arm()
        self.names.arms, self.names.unit_costs = self.problem.arm_names, self.arms.unit_costs

    def check_place(self, sequence: int, said: Arrived | About, arm: object) -> None:
        """BrokenLog for a context or an arm that does not exist: compiled code checks no index."""
        context: object = said.context
        if not (isinstance(context, int) and 0 <= context < len(self.names.contexts)):
            raise BrokenLog(f"event {sequence}: there is no context {context!r}")
        if not (isinstance(arm, int) and 0 <= arm < len(self.arms.status)):
            raise BrokenLog(f"event {sequence}: there is no arm {arm!r}")

    def check_number(self, event: Settled) -> int:
        """Return the number of the decision that an event is about; BrokenLog where the engine has not made it."""
        number: object = event.about.number
        if not (isinstance(number, int) and 0 <= number < self.engine.played):
            raise BrokenLog(f"event {event.sequence}: there is no decision of number {number}")
        return number

    def is_behind(self, event: Event) -> bool:
        """Whether the clock of the host that wrote it was behind the campaign's."""
        return event.place.at - self.definition.created_at < event.place.clock

    def advance(self, event: Event) -> None:
        """Take the event's place in the log and on the clock; BrokenLog where it does not follow."""
        place = event.place
        if place.sequence != self.sequence + 1:
            raise BrokenLog(f"event {place.sequence} follows event {self.sequence}: the log has a gap")
        if not 0.0 <= place.clock < math.inf or (place.clock < self.clock and not isinstance(event, ClockSet)):
            raise BrokenLog(f"event {place.sequence}: its clock {place.clock} does not follow {self.clock}")
        if self._is_in_seconds and self.is_behind(event):
            self.counts.clock_went_back += 1
        self.counts.about += isinstance(event, Settled)
        self.counts.keyed += place.key is not None or place.key_hash is not None
        self.sequence = place.sequence
        self.clock = place.clock

    def is_next(self, columns: DecidedColumns) -> bool:
        """Whether decisions follow, as `advance` asks of each."""
        clocks = np.array(columns.clock)
        first = self.sequence + 1
        if columns.sequence != tuple(range(first, first + clocks.size)):
            return False
        return bool(self.clock <= clocks[0] and clocks[-1] < math.inf and (clocks[1:] >= clocks[:-1]).all())

    def advance_all(self, columns: DecidedColumns) -> None:
        """Do as `advance`, for all of these, after it is known that they follow."""
        if self._is_in_seconds:
            behind = np.array(columns.at) - self.definition.created_at < np.array(columns.clock)
            self.counts.clock_went_back += int(np.count_nonzero(behind))
        self.counts.about += columns.n_about
        self.counts.keyed += columns.n_keyed
        self.sequence, self.clock = columns.sequence[-1], columns.clock[-1]

    def reserve(self, arms: Sequence[int | None], costs: Sequence[float]) -> None:
        """Reserve what decisions cost. They cost one of a few prices: each of these is made exact once."""
        numbers: dict[float, int] = {}
        for arm, cost in zip(arms, costs, strict=True):
            if arm is not None and cost is not None:
                numbers[cost] = numbers.get(cost, 0) + 1
        total = Decimal(0)
        for cost, count in numbers.items():
            total = plus(total, times(exact(cost), count))
        self.ledger.reserve(total)

    # --- snapshots --------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return everything but the engine's state, in plain values."""
        return {
            "sequence": self.sequence,
            "head": self.head.hex(),
            "salt": self.salt.hex(),
            "clock": self.clock,
            "round": self.round,
            "expiries": self.expiries.to_json(),
            "closed": self.closed,
            "engines": list(self.engines.items()),
            "swept": self.swept,
            "repairs": self.names.repairs,
            "made_otherwise": list(self.made_otherwise.items()),
            "ledger": self.ledger.to_json(),
            "counts": self.counts.to_json(),
            "plan": [self.plan.since, self.plan.planned],
            "arms": self.arms.to_json(),
            "own_expiries": self.expiries.own_to_json(),
            "levels": [list(self.levels.names(one.name)) for one in self.problem.person if isinstance(one, Category)],
        }

    @classmethod
    def from_json(cls, definition: Definition, tag: str, stored: dict[str, Any]) -> CampaignState:
        """Return the state that `to_json` described, its engine still without knowledge."""
        state = cls(definition, tag)
        state.arms = Arms.from_json(definition.problem, stored["arms"])
        state.problem = state.arms.problem
        # One by one, as they were added: what follows from the number of arms at the start must not change.
        for problem in state.arms.as_it_grew():
            state.engine.add_arm(problem)
        state.names.arms, state.names.unit_costs = state.problem.arm_names, state.arms.unit_costs
        state.sequence, state.clock, state.round = stored["sequence"], stored["clock"], stored["round"]
        state.head, state.salt = bytes.fromhex(stored["head"]), bytes.fromhex(stored["salt"])
        state.closed, state.engines, state.swept = stored["closed"], dict(stored["engines"]), stored["swept"]
        state.names.repairs += [(sequence, clock) for sequence, clock in stored["repairs"]]
        state.expiries.read_json(stored["expiries"], stored["own_expiries"])
        categories = [one.name for one in state.problem.person if isinstance(one, Category)]
        for category, levels in zip(categories, stored["levels"], strict=True):
            for level in levels:
                state.levels.code(category, level)
        state.made_otherwise = dict(stored["made_otherwise"])
        state.ledger = _ledger_class(definition.problem).from_json(stored["ledger"])
        state.counts = Counters.from_json(stored["counts"])
        state.plan = Plan(*map(float, stored["plan"]))
        return state

    def check(self) -> None:
        """BrokenLog where the ledger, the counts and the engine do not agree."""
        states = self.counts.states
        played = sum(states) - states[IS_SKIPPED]
        if self.round != self.counts.arrivals or self.engine.played != played:
            raise BrokenLog(f"counts disagree: {self.round} arrivals, {states} decisions by state")
        drift = abs(self.engine.budget_left - float(self.ledger.left))
        if drift > _BUDGET_DRIFT * float(self.ledger.total) or self.ledger.left > self.ledger.total:
            raise BrokenLog(f"the engine's budget is {drift} away from the ledger")


def _ledger_class(problem: Problem) -> type[Ledger]:
    return LikelyLedger if problem.reserve < 1.0 else Ledger


def _blueprint(definition: Definition, problem: Problem) -> Blueprint:
    """Return the policy of a campaign, for the arms that it has by now."""
    if problem.until is None:
        return Blueprint(options=definition.policy, problem=problem, seed=definition.seed)
    began = time_of_week(definition.epoch)
    return Blueprint(options=definition.policy, problem=problem, seed=definition.seed, day=DAY_S, time_of_week=began)
