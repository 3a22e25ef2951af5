"""The state of a campaign: what its log adds up to.

`apply` changes it, event by event; everybody else only looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from doral.engine.engine import Engine
from doral.engine.setup import Blueprint
from doral.live.counts import Counts
from doral.live.decision import Names
from doral.live.definition import Definition
from doral.live.engine_name import engine_name
from doral.live.errors import BrokenLog, CampaignClosed
from doral.live.events import CLOCK_SET, IS_SKIPPED, Event
from doral.live.expiries import Expiries
from doral.live.leases.book import Leases
from doral.live.ledger import Ledger, LikelyLedger, exact, plus, times
from doral.live.roster import Roster
from doral.live.weeks import DAY_S, time_of_week
from doral.person import Category, Levels
from doral.problem import OBSERVED, Problem

_BUDGET_DRIFT = 1e-9  # of the budget: how far the engine's floats may be from the exact ledger


class Fold:
    """Everything that a campaign knows, after the event `sequence`."""

    def __init__(self, definition: Definition, tag: str, *, run: int = 0) -> None:
        problem = definition.problem
        self.definition = definition
        self._is_in_seconds = definition.is_in_seconds
        self.roster = Roster(problem)
        self.engine = Engine(_blueprint(definition, problem, run))
        budget = exact(problem.budget)
        self.ledger = _ledger_class(problem)(total=budget, left=budget)
        self.leases = Leases(self.ledger)
        self.counts = Counts()
        for _ in problem.arms:
            self.counts.add_arm()
        self.names = Names(
            tag=tag,
            epoch=definition.epoch,
            contexts=problem.context_names,
            arms=problem.arm_names,
            nothing=problem.control if problem.baseline == OBSERVED else None,
            person=problem.person_names,
            unit_costs=self.roster.unit_costs,
        )
        self.levels = Levels(problem.person)  # of categories, in the order of the log
        self.sequence = 1
        self.head = b""  # checksum of the last event
        self.salt = b""  # that of the first: keys are hashed with it
        self.clock = 0.0
        self.round = 0
        self.expiries = Expiries(problem.n_contexts, self.names.repairs)
        self.closed = False
        self.engines = {definition.engine: 1}  # who wrote, and since which event
        # Decisions up to this number of the engine were made before the clock was set back: what silence has taught of
        # them may be wrong.
        self.swept = 0
        # What today's engine made of an answer, by decision, where the log says that another made something else of it.
        self.made_otherwise: dict[int, int] = {}
        self.erased: set[int] = set()  # events whose key is gone, until the log says that it was erased on purpose
        self.faceless: set[int] = set()  # the same for features of people
        self.forgotten: frozenset[int] = frozenset()  # events of which nobody is to know any more whom they were for
        self.knows_forgotten = False  # people were forgotten of whom this state knows: it has to be made anew

    @property
    def problem(self) -> Problem:
        """With the arms that were added."""
        return self.roster.problem

    def age_limit(self, context: int, own: float | None = None) -> float:
        """The age after which an answer is late: the deadline, or where there is none the engine's cut-off."""
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

    def may_spend(self, writer: int) -> Decimal:
        """What is left, but for what others have leased."""
        return self.ledger.left if not self.leases else self.leases.may_spend(writer)

    def reserve(self, decided: Sequence[Event]) -> None:
        """What these decisions cost, out of the leases of those who made them, where they have some."""
        if self.leases:
            for writer, some in groupby(decided, key=attrgetter("writer")):
                own = list(some)
                self.leases.arrive(writer, len(own), _cost_of(own), own[-1].at)
        self.ledger.reserve(_cost_of(decided))

    def refuse_if_closed(self) -> None:
        if self.closed:
            raise CampaignClosed("the campaign is closed: it takes answers, and nothing else")

    @property
    def is_new_engine(self) -> bool:
        """Whether this process's engine has not written to the log yet."""
        return engine_name() not in self.engines

    def check_arm(self, event: Event, *, may_skip: bool = False) -> None:
        """Compiled code checks no index: an event that would lead it astray is refused."""
        self.check_arms((event,), may_skip=may_skip)

    def check_arms(self, events: Sequence[Event], *, may_skip: bool = False) -> None:
        """The same for many."""
        n_contexts, n_arms = self.problem.n_contexts, self.problem.n_arms
        for event in events:
            context, arm = event.context, event.arm
            if not (isinstance(context, int) and 0 <= context < n_contexts):
                raise BrokenLog(f"event {event.sequence}: there is no context {context!r}")
            if not ((may_skip and arm is None) or (isinstance(arm, int) and 0 <= arm < n_arms)):
                raise BrokenLog(f"event {event.sequence}: there is no arm {arm!r}")

    def is_behind(self, event: Event) -> bool:
        """Whether the clock of the host that wrote it was behind the campaign's."""
        return event.at - self.definition.created_at < event.clock

    def advance(self, event: Event) -> None:
        """This event is next: its place in the log and on the clock."""
        if event.sequence != self.sequence + 1:
            raise BrokenLog(f"event {event.sequence} follows event {self.sequence}: the log has a gap")
        if not 0.0 <= event.clock < math.inf or (event.clock < self.clock and event.kind != CLOCK_SET):
            raise BrokenLog(f"event {event.sequence}: its clock {event.clock} does not follow {self.clock}")
        if self._is_in_seconds and self.is_behind(event):
            self.counts.clock_went_back += 1
        self.counts.about += event.decision is not None
        self.counts.keyed += event.key is not None or event.key_hash is not None
        self.sequence = event.sequence
        self.clock = event.clock

    def is_next(self, columns: Any) -> bool:
        """Whether events follow, as `advance` asks of each; `columns` is an `Event` that holds those of all."""
        clocks = np.array(columns.clock)
        first = self.sequence + 1
        if columns.sequence != tuple(range(first, first + clocks.size)):
            return False
        return bool(self.clock <= clocks[0] and clocks[-1] < math.inf and (clocks[1:] >= clocks[:-1]).all())

    def advance_all(self, columns: Any) -> None:
        """As `advance`, for all of these, after it is known that they follow."""
        if self._is_in_seconds:
            behind = np.array(columns.at) - self.definition.created_at < np.array(columns.clock)
            self.counts.clock_went_back += int(np.count_nonzero(behind))
        self.counts.about += sum(decision is not None for decision in columns.decision)
        keys = zip(columns.key, columns.key_hash, strict=True)
        self.counts.keyed += sum(key is not None or hash_ is not None for key, hash_ in keys)
        self.sequence, self.clock = columns.sequence[-1], columns.clock[-1]

    # --- snapshots --------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Everything but the engine's state, in plain values."""
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
            "leases": self.leases.to_json(),
            "counts": self.counts.to_json(),
            "arms": self.roster.to_json(),
            "own_expiries": self.expiries.own_to_json(),
            "levels": [list(self.levels.names(one.name)) for one in self.problem.person if isinstance(one, Category)],
        }

    @classmethod
    def from_json(cls, definition: Definition, tag: str, stored: dict[str, Any], *, run: int = 0) -> Fold:
        """The fold that `to_json` described, its engine still without knowledge; its coin falls otherwise in another
        run.
        """
        fold = cls(definition, tag, run=run)
        fold.roster = Roster.from_json(definition.problem, stored["arms"])
        # One by one, as they were added: what follows from the number of arms at the start must not change.
        for problem in fold.roster.as_it_grew():
            fold.engine.add_arm(problem)
        fold.names.arms, fold.names.unit_costs = fold.problem.arm_names, fold.roster.unit_costs
        fold.sequence, fold.clock, fold.round = stored["sequence"], stored["clock"], stored["round"]
        fold.head, fold.salt = bytes.fromhex(stored["head"]), bytes.fromhex(stored["salt"])
        fold.closed, fold.engines, fold.swept = stored["closed"], dict(stored["engines"]), stored["swept"]
        fold.names.repairs += [(sequence, clock) for sequence, clock in stored["repairs"]]
        fold.expiries.read_json(stored["expiries"], stored["own_expiries"])
        categories = [one.name for one in fold.problem.person if isinstance(one, Category)]
        for category, levels in zip(categories, stored["levels"], strict=True):
            for level in levels:
                fold.levels.code(category, level)
        fold.made_otherwise = dict(stored["made_otherwise"])
        fold.ledger = _ledger_class(definition.problem).from_json(stored["ledger"])
        fold.leases = Leases.from_json(fold.ledger, stored["leases"])
        fold.counts = Counts.from_json(stored["counts"])
        return fold

    def check(self) -> None:
        """Assertions over the whole state: the ledger, the counts and the engine agree."""
        states = self.counts.states
        played = sum(states) - states[IS_SKIPPED]
        if self.round != self.counts.arrivals or self.engine.played != played:
            raise BrokenLog(f"counts disagree: {self.round} arrivals, {states} decisions by state")
        drift = abs(self.engine.budget_left - float(self.ledger.left))
        if drift > _BUDGET_DRIFT * float(self.ledger.total) or self.ledger.left > self.ledger.total:
            raise BrokenLog(f"the engine's budget is {drift} away from the ledger")
        self.leases.check()


def _cost_of(decided: Sequence[Event]) -> Decimal:
    """Of all together. They cost one of a few prices: each of them is made exact once."""
    counts: dict[float, int] = {}
    for event in decided:
        if event.arm is not None and event.cost is not None:
            counts[event.cost] = counts.get(event.cost, 0) + 1
    total = Decimal(0)
    for cost, count in counts.items():
        total = plus(total, times(exact(cost), count))
    return total


def _ledger_class(problem: Problem) -> type[Ledger]:
    return LikelyLedger if problem.reserve < 1.0 else Ledger


def _blueprint(definition: Definition, problem: Problem, run: int = 0) -> Blueprint:
    """The policy of a campaign, for the arms that it has by now."""
    if problem.until is None:
        return Blueprint(options=definition.policy, problem=problem, seed=definition.seed, run=run)
    began = time_of_week(definition.epoch)
    return Blueprint(
        options=definition.policy, problem=problem, seed=definition.seed, run=run, day=DAY_S, time_of_week=began
    )
