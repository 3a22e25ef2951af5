"""A dataclass for each kind of event. What an event says is a fact: later readers take it as it is.

What the engine adds to an event, the choice for an arrival and the outcome of an answer, is missing until the event is
applied to the state of the campaign.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

from doral.engine.engine import ASK
from doral.live.errors import BrokenLog
from doral.live.events import row
from doral.live.events.person import features_of
from doral.problem import Arm
from doral.problem.arm import arm_to_dict

Value = TypeVar("Value")

# States of a decision. Stored: never change or reuse one.
IS_SKIPPED, IS_PENDING, IS_RETURNED, IS_EXPIRED, IS_LATE, IS_CANCELLED = 0, 1, 2, 3, 4, 5
STATE_NAMES = ("skipped", "pending", "returned", "expired", "late", "cancelled")

# In the place of a reason of the engine.
MADE_ELSEWHERE, OWN_CHOICE, OWN_SKIP, WHILE_PAUSED = 100, 101, 102, 103
UNHEARD = -1  # in the place of an outcome: the engine does not hear of the answer

# Keys of different operations live apart: a visit's key may serve its decision and its answer.
DECIDE_SCOPE, ANSWER_SCOPE, CHANGE_SCOPE = "d:", "a:", "c:"

ARM_IS_ACTIVE, ARM_IS_PAUSED, ARM_IS_RETIRED = 0, 1, 2
ARM_STATUS_NAMES = ("active", "paused", "retired")


def known(value: Value | None) -> Value:
    """Return a value that this kind of event always has; BrokenLog where it is missing."""
    if value is None:
        raise BrokenLog("an event lacks a value that its kind always has")
    return value


class Place(NamedTuple):
    """Where an event stands in the log and on the clock, and who wrote it."""

    sequence: int
    clock: float
    at: float
    writer: int
    happened: float | None = None
    key: str | None = None
    key_hash: bytes | None = None
    engine: int | None = None
    chain: bytes | None = None  # None: not stored yet


class Arrived(NamedTuple):
    """What a request says of an arrival."""

    context: int
    available: bytes | None = None
    weight: float | None = None
    deadline: float | None = None
    person: str | None = None
    person_hash: bytes | None = None


class Choice(NamedTuple):
    """What was decided for it."""

    number: int | None
    arm: int | None  # None: a skip
    cost: float
    round: int
    reason: int
    value: float | None
    price: float | None
    probability: float | None


UNDECIDED = Choice(None, None, 0.0, 0, 0, None, None, None)  # what is wanted of the engine


class About(NamedTuple):
    """What an event repeats of the decision that it is about."""

    decision: int
    number: int
    context: int
    arm: int
    cost: float  # reserved
    reason: int
    weight: float | None = None
    deadline: float | None = None
    person: str | None = None
    person_hash: bytes | None = None


class Settlement(NamedTuple):
    """How an event changes the state of a decision, and what it is taken to cost."""

    was: int
    state: int
    previous_cost: float
    actual_cost: float | None  # None: as before

    @property
    def cost(self) -> float:
        """What the decision costs from then on."""
        return self.previous_cost if self.actual_cost is None else self.actual_cost


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a campaign."""

    place: Place
    KIND: ClassVar[int] = 0

    @property
    def kind(self) -> int:
        """The number under which its kind is stored."""
        return self.KIND

    @property
    def sequence(self) -> int:
        """Its place in the log."""
        return self.place.sequence

    @property
    def clock(self) -> float:
        """What the campaign's clock shows by then."""
        return self.place.clock

    @property
    def own(self) -> float:
        """When it happened, on the campaign's clock: as the caller said, or as the clock showed."""
        return self.place.clock if self.place.happened is None else self.place.happened

    @property
    def is_keyless(self) -> bool:
        """Whether it had a key that was erased."""
        return self.place.key is None and self.place.key_hash is not None

    def request(self) -> list[Any]:
        """Return what the request said, in plain values: a key stands for that, and for nothing else."""
        return [self.kind, None, None]


@dataclass(frozen=True, slots=True)
class Created(Event):
    """The campaign begins."""

    KIND = row.CREATED
    definition: str  # JSON, see `state.definition`


@dataclass(frozen=True, slots=True)
class Deciding(Event):
    """An arrival and what was decided for it, here or elsewhere."""

    arrival: Arrived
    choice: Choice

    @property
    def state_then(self) -> int:
        """The state of the decision after this event."""
        return IS_SKIPPED if self.choice.arm is None else IS_PENDING

    def _who(self) -> list[Any]:
        person, hashed = self.arrival.person, self.arrival.person_hash
        if person is None and hashed is None:
            return []
        return [self.arrival.weight, self.arrival.deadline, features_of(person)]


@dataclass(frozen=True, slots=True)
class Decided(Deciding):
    """The policy decided."""

    KIND = row.DECIDED
    choice: Choice = UNDECIDED

    def request(self) -> list[Any]:
        # An arm that was added later is not available to an earlier request.
        available = None if self.arrival.available is None else self.arrival.available.rstrip(b"\0").hex()
        return [self.kind, self.arrival.context, available, self.place.happened, *self._who()]


@dataclass(frozen=True, slots=True)
class Recorded(Deciding):
    """A decision was made elsewhere."""

    KIND = row.RECORDED
    is_ours: bool  # the campaign's budget pays for it, and it is one of its arrivals
    list_cost: float  # what it cost, whoever paid
    is_implied: bool  # nobody said the cost
    reward: float | None
    answered: float | None  # on the campaign's clock
    is_overdue: bool  # it was too old for an answer when it was recorded

    @property
    def state_then(self) -> int:
        if self.choice.arm is None:
            return IS_SKIPPED
        return IS_EXPIRED if self.is_overdue else IS_PENDING

    def request(self) -> list[Any]:
        cost = None if self.is_implied else self.list_cost
        said = [self.is_ours, cost, self.reward, self.answered]
        chosen = [self.choice.arm, self.place.happened, self.choice.probability]
        return [self.kind, self.arrival.context, *chosen, *said, *self._who()]


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """Something became of a decision."""

    about: About
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class Answered(Settled):
    """The first answer came."""

    KIND = row.ANSWERED
    reward: float
    delay: float | None
    is_cost_implied: bool = False  # when it came says what it cost
    list_cost: float | None = None  # of a decision made elsewhere that costs the campaign nothing
    outcome: int = ASK  # what the engine made of it

    def request(self) -> list[Any]:
        said = None if self.is_cost_implied else self.settlement.actual_cost
        return [self.kind, self.about.decision, self.reward, said, self.place.happened]


@dataclass(frozen=True, slots=True)
class Corrected(Settled):
    """A better value took the place of an answer."""

    KIND = row.CORRECTED
    reward: float
    previous: float
    outcome: int  # what the engine made of the answer
    is_first: bool = False  # the engine has not heard of the answer: to it, this is the first one
    delay: float | None = None  # then

    def request(self) -> list[Any]:
        return [self.kind, self.about.decision, self.reward, self.settlement.actual_cost, self.place.happened]


@dataclass(frozen=True, slots=True)
class Cancelled(Settled):
    """A decision was not carried out."""

    KIND = row.CANCELLED

    def request(self) -> list[Any]:
        return [self.kind, self.about.decision, None, None, self.place.happened]


@dataclass(frozen=True, slots=True)
class Expired(Event):
    """Decisions were too old for an answer."""

    KIND = row.EXPIRED
    upto: tuple[int, ...]  # by context: sequence of the last event up to which decisions have expired
    counts: tuple[tuple[int, float, int], ...]  # context, cost, how many
    is_released: bool  # their cost came back
    own_upto: int | None = None  # as `upto`, for decisions with deadlines of their own
    by_arm: tuple[tuple[int, int], ...] = ()  # arm, how many: in place of `counts` in version 0.1

    @property
    def n_decisions(self) -> int:
        """How many have expired."""
        return sum(count for _, _, count in self.counts) + sum(count for _, count in self.by_arm)

    def costs(self, of_arms: list[float]) -> tuple[tuple[int, float, int], ...]:
        """Return context, cost and number; version 0.1 knew one context, and counted by arm."""
        return self.counts + tuple((0, of_arms[arm], count) for arm, count in self.by_arm)

    def request(self) -> list[Any]:
        return [self.kind, self.place.happened]


@dataclass(frozen=True, slots=True)
class ArmAdded(Event):
    """A new arm."""

    KIND = row.ARM_ADDED
    arm: Arm

    def request(self) -> list[Any]:
        return [self.kind, None, json.dumps(arm_to_dict(self.arm))]


@dataclass(frozen=True, slots=True)
class ArmChanged(Event):
    """An arm was paused, resumed or retired."""

    arm: int
    status: int

    KINDS: ClassVar[dict[int, int]] = {
        ARM_IS_PAUSED: row.ARM_PAUSED, ARM_IS_ACTIVE: row.ARM_RESUMED, ARM_IS_RETIRED: row.ARM_RETIRED
    }  # fmt: skip

    @property
    def kind(self) -> int:
        return self.KINDS[self.status]

    def request(self) -> list[Any]:
        return [self.kind, None, None, self.arm]


@dataclass(frozen=True, slots=True)
class ToppedUp(Event):
    """More budget."""

    KIND = row.TOPPED_UP
    amount: float

    def request(self) -> list[Any]:
        return [self.kind, self.amount, None]


@dataclass(frozen=True, slots=True)
class Extended(Event):
    """More arrivals, or a later end."""

    KIND = row.EXTENDED
    rounds: int | None = None
    until: float | None = None  # on the campaign's clock

    def said(self) -> dict[str, float]:
        """Return what is stored of it."""
        return {"rounds": known(self.rounds)} if self.until is None else {"until": self.until}

    def request(self) -> list[Any]:
        return [self.kind, None, json.dumps(self.said())]


@dataclass(frozen=True, slots=True)
class PauseChanged(Event):
    """The campaign was paused, so that all arrivals are skipped, or resumed."""

    is_paused: bool

    @property
    def kind(self) -> int:
        return row.PAUSED if self.is_paused else row.RESUMED


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """No more decisions."""

    KIND = row.CLOSED


@dataclass(frozen=True, slots=True)
class EngineJoined(Event):
    """An engine writes to this log for the first time."""

    KIND = row.ENGINE_JOINED
    name: str


@dataclass(frozen=True, slots=True)
class ClockSet(Event):
    """The campaign's clock had been carried away, and was set back."""

    KIND = row.CLOCK_SET

    def request(self) -> list[Any]:
        return [self.kind, self.place.happened]


@dataclass(frozen=True, slots=True)
class Forgotten(Event):
    """The keys of some events were erased, and the people of others."""

    KIND = row.FORGOTTEN
    keys: tuple[int, ...]
    people: tuple[int, ...] = ()
    asked: str | None = None  # digest of the keys that were asked for, where the request has a key

    def request(self) -> list[Any]:
        return [self.kind, self.asked]


@dataclass(frozen=True, slots=True)
class Noted(Event):
    """A request with a key of its own changed nothing."""

    KIND = row.NOTED
    content: list[Any]

    def request(self) -> list[Any]:
        return self.content


@dataclass(frozen=True, slots=True)
class Leased(Event):
    """A budget lease began, in an earlier version."""

    KIND = row.LEASED
    amount: str


@dataclass(frozen=True, slots=True)
class LeaseEnded(Event):
    """It ended."""

    KIND = row.LEASE_ENDED
    lease: int  # the event with which it began
    left: str
    why: str
