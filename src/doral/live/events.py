"""The log: append-only events with a strictly increasing sequence per campaign. Everything else is a fold over them.

An event carries all that its fold needs, so that a log is read once, from first to last, in constant memory: an answer
repeats the number, context, arm and cost of the decision that it answers. What an event says is a fact: whoever reads
it later takes it as it is, and does not ask what he would have decided himself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from doral.live.errors import BrokenLog

Value = TypeVar("Value")

# Kinds. The numbers are stored: never change or reuse one.
CREATED = 1
DECIDED = 2
ANSWERED = 3
CORRECTED = 4
CANCELLED = 5
EXPIRED = 6
ARM_ADDED = 7
ARM_PAUSED = 8
ARM_RESUMED = 9
ARM_RETIRED = 10
TOPPED_UP = 11
EXTENDED = 12
CLOSED = 13
ENGINE_JOINED = 14  # an engine writes to this log for the first time
RECORDED = 15  # a decision that was made elsewhere
CLOCK_SET = 16  # the campaign's clock had been carried away, and was set back
FORGOTTEN = 17  # the keys of some events were erased, and what was known of people
NOTED = 18  # a request with a key of its own that changed nothing, because it had been granted before
LEASED = 19  # a writer may spend so much without asking the others
LEASE_ENDED = 20  # what is left of that came back

MAKES_DECISION = (DECIDED, RECORDED)
# After these, whoever has a lease may go on with a state that has not heard of them: arms, budget, end and clock are as
# they were.
LEAVE_LEASES = (DECIDED, ANSWERED, CORRECTED, CANCELLED, EXPIRED, RECORDED, NOTED, LEASED, LEASE_ENDED)

# States of a decision. Stored as well.
IS_SKIPPED, IS_PENDING, IS_RETURNED, IS_EXPIRED, IS_LATE, IS_CANCELLED = 0, 1, 2, 3, 4, 5
STATE_NAMES = ("skipped", "pending", "returned", "expired", "late", "cancelled")

UNHEARD = -1  # in the place of an outcome: the engine was not told of the answer
UNHEARD_BEFORE = '{"unheard": true}'  # data of a correction of such an answer
IMPLIED_COST = '{"implied": true}'  # data of an answer that did not say what it cost: when it came says it

# Keys of different operations live apart: a visit's key may serve its decision and its answer.
DECIDE_SCOPE, ANSWER_SCOPE, CHANGE_SCOPE = "d:", "a:", "c:"


class Event(NamedTuple):
    """One row of the log; what a kind does not use is None."""

    sequence: int
    kind: int
    clock: float  # what the campaign's clock shows; it goes back only when it is set
    at: float  # wall clock of the host when it was written, in seconds since 1970
    writer: int  # who appended it: settles whether a commit of unknown outcome happened
    key: str | None = None  # with the scope in front
    decision: int | None = None  # sequence of the decided event that this one is about
    number: int | None = None  # of the decision in the engine, which counts only those that were played
    context: int | None = None
    arm: int | None = None
    cost: float | None = None  # reserved; 0 where it does not enter the ledger
    round: int | None = None
    reason: int | None = None
    value: float | None = None
    price: float | None = None
    probability: float | None = None
    available: bytes | None = None  # one bit per arm; None: all
    reward: float | None = None
    previous: float | None = None  # the reward that a correction replaces
    actual_cost: float | None = None  # where an answer or a correction says it
    previous_cost: float | None = None  # what it was taken to cost before; the rest is given back
    was: int | None = None  # state of the decision before
    state: int | None = None  # and after
    outcome: int | None = None  # what the engine made of an answer
    data: str | None = None  # JSON, for events that are rare
    engine: int | None = None  # who wrote it: sequence of the event with which that engine joined; None: version 0.1
    happened: float | None = None  # on the campaign's clock, where the caller said when
    delay: float | None = None  # of an answer
    key_hash: bytes | None = None  # of the key, which may be erased
    chain: bytes | None = None  # checksum of this event and all before it; None: a draft
    # Of problems that know features of people; repeated by events about the decision.
    weight: float | None = None  # what a unit of this one's reward is worth, where the caller said it
    deadline: float | None = None  # likewise
    person_hash: bytes | None = None  # of what follows, which may be erased
    person: str | None = None  # who it is for, see `people`

    @property
    def own(self) -> float:
        """When it happened, on the campaign's clock: as the caller said, or as the clock showed."""
        return self.clock if self.happened is None else self.happened


COLUMNS = Event._fields
# What the engine adds to an arrival, and to an answer.
_CHOICE = slice(COLUMNS.index("number"), COLUMNS.index("available"))
_BEFORE_CHOICE, _AFTER_CHOICE = slice(_CHOICE.start), slice(_CHOICE.stop, None)
_OUTCOME = COLUMNS.index("outcome")
_BEFORE_OUTCOME, _AFTER_OUTCOME = slice(_OUTCOME), slice(_OUTCOME + 1, None)
_BEFORE_ENGINE = slice(COLUMNS.index("engine"))

# Every decision and every answer comes through here: keywords and `_replace` would take three times as long.


def arrival(
    sequence: int, clock: float, happened: float | None, at: float, writer: int, key: str | None, context: int,
    available: bytes | None, weight: float | None = None, deadline: float | None = None, person: str | None = None,
) -> Event:  # fmt: skip
    """A decision that the engine has not made yet."""
    return tuple.__new__(Event, (
        sequence, DECIDED, clock, at, writer, key, None, None, context, None, None, None, None, None, None, None,
        available, None, None, None, None, None, None, None, None, None, happened, None, None, None,
        weight, deadline, None, person,
    ))  # fmt: skip


def with_choice(draft: Event, *choice: float | None) -> Event:
    """An arrival with the columns from `number` to `probability`; on replay, mostly itself."""
    row: tuple[Any, ...] = draft
    if row[_CHOICE] == choice:
        return draft
    return tuple.__new__(Event, row[_BEFORE_CHOICE] + choice + row[_AFTER_CHOICE])


def with_outcome(draft: Event, outcome: int) -> Event:
    """An answer with what the engine made of it; on replay, mostly itself."""
    row: tuple[Any, ...] = draft
    if row[_OUTCOME] == outcome:
        return draft
    return tuple.__new__(Event, (*row[_BEFORE_OUTCOME], outcome, *row[_AFTER_OUTCOME]))


def sealed(event: Event, engine: int, key_hash: bytes | None, chain: bytes | None, person_hash: bytes | None) -> Event:
    """The event with who wrote it, and with its place in the chain."""
    row: tuple[Any, ...] = event
    own = (
        engine,
        event.happened,
        event.delay,
        key_hash,
        chain,
        event.weight,
        event.deadline,
        person_hash,
        event.person,
    )
    return tuple.__new__(Event, row[_BEFORE_ENGINE] + own)


_TYPES = {"sequence": int, "writer": int, "decision": int, "number": int, "round": int, "engine": int,
          "kind": int, "context": int, "arm": int, "reason": int, "was": int, "state": int, "outcome": int,
          "key": str, "data": str, "available": bytes, "key_hash": bytes, "chain": bytes,
          "person_hash": bytes, "person": str}  # fmt: skip
_OPTIONAL = [(_TYPES.get(name, float), type(None)) for name in COLUMNS]


def has_types(row: Sequence[object]) -> bool:
    """Whether each column holds what it should: SQLite takes anything anywhere."""
    return all(map(isinstance, row, _OPTIONAL))


def known(value: Value | None) -> Value:
    """A column that this kind of event always has."""
    if value is None:
        raise BrokenLog("an event lacks a value that its kind always has")
    return value
