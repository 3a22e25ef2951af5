"""Rows of a log: append-only, with a strictly increasing sequence per campaign. `codec` makes events of them.

A row carries all that its event needs, so that a log is read once, from first to last, in constant memory: an answer
repeats the number, context, arm and cost of the decision that it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
ENGINE_JOINED = 14
RECORDED = 15
CLOCK_SET = 16
FORGOTTEN = 17
NOTED = 18
LEASED = 19  # of budget leases, which are gone: written before, and read for ever
LEASE_ENDED = 20

MAKES_DECISION = (DECIDED, RECORDED)


class Row(NamedTuple):
    """One row of the log; what a kind does not use is None."""

    sequence: int
    kind: int
    clock: float  # what the campaign's clock shows; it goes back only when it is set
    at: float  # wall clock of the host when it was written, in seconds since 1970
    writer: int  # who appended it: settles whether a commit of unknown outcome happened
    key: str | None = None  # with the scope in front
    decision: int | None = None  # sequence of the decision that this one is about
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
    engine: int | None = None  # sequence of the event with which the engine that wrote it joined; None: version 0.1
    happened: float | None = None  # on the campaign's clock, where the caller said when
    delay: float | None = None  # of an answer
    key_hash: bytes | None = None  # of the key, which may be erased
    chain: bytes | None = None  # checksum of this row and all before it; None: not sealed yet
    # Of problems with features of people; repeated by events about the decision.
    weight: float | None = None  # what a unit of this one's reward is worth, where the caller said it
    deadline: float | None = None  # likewise
    person_hash: bytes | None = None  # of what follows, which may be erased
    person: str | None = None  # whom it is for, see `person`


COLUMNS = Row._fields
_BEFORE_ENGINE = slice(COLUMNS.index("engine"))
_TYPES = {"sequence": int, "writer": int, "decision": int, "number": int, "round": int, "engine": int,
          "kind": int, "context": int, "arm": int, "reason": int, "was": int, "state": int, "outcome": int,
          "key": str, "data": str, "available": bytes, "key_hash": bytes, "chain": bytes,
          "person_hash": bytes, "person": str}  # fmt: skip
_OPTIONAL = [(_TYPES.get(name, float), type(None)) for name in COLUMNS]


def sealed(row: Row, engine: int, key_hash: bytes | None, chain: bytes | None, person_hash: bytes | None) -> Row:
    """Return the row with the engine that wrote it, and with its place in the chain."""
    plain: tuple[Any, ...] = row
    own = (engine, row.happened, row.delay, key_hash, chain, row.weight, row.deadline, person_hash, row.person)
    return tuple.__new__(Row, plain[_BEFORE_ENGINE] + own)


def has_types(row: Sequence[object]) -> bool:
    """Whether each column holds what it should: SQLite takes anything anywhere."""
    return all(map(isinstance, row, _OPTIONAL))
