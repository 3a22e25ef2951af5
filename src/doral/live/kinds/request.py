"""Requests: what a caller asks of a campaign, and the decision that a request is about.

Each kind of request says what events follow from it, and what its answer is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Generic, NoReturn, TypeVar

from doral import _check
from doral.errors import DoralError, InvalidValue, shown
from doral.live.errors import BrokenLog, KeyReused, UnknownDecision, WrongState
from doral.live.events.event import (
    IS_EXPIRED,
    IS_PENDING,
    About,
    Answered,
    Corrected,
    Deciding,
    Event,
    Noted,
    Settled,
    Settlement,
    known,
)
from doral.live.events.person import repeated
from doral.live.events.row import hash_key
from doral.live.runtime.clock import Moment, Stamp
from doral.live.state.parts import exact, make_id, minus
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision, make_decision, state_of

MAX_BATCH = 100_000

Result = TypeVar("Result")


class Request(ABC, Generic[Result]):
    """One request, or several of a kind that are stored together."""

    is_many = False

    @abstractmethod
    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        """Return the events that follow, or none, and what `view` needs beside them; a DoralError where it is wrong.

        Nothing changes. It is called again if the connection broke and nothing was stored.
        """

    @abstractmethod
    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Result:
        """Return the answer, given the events as they were applied."""


# --- keys -------------------------------------------------------------------------------------------------------------


def scoped_key(scope: str, key: str | None) -> str | None:
    """Return a key as events have it; InvalidValue where it is none."""
    return None if key is None else scope + _check.name("key", key)


def used_keys(log: Log, state: CampaignState, keys: Iterable[str | None]) -> dict[str, Event]:
    """Return the events that have used some of these keys, by key."""
    hashes = {hash_key(state.salt, key): key for key in keys if key is not None}
    if not hashes:
        return {}
    return {hashes[hashed]: event for hashed, event in log.by_keys(hashes).items()}


def granted(log: Log, state: CampaignState, key: str | None, said: Sequence[Any]) -> Event | None:
    """Return the event by which a key has served this request already; KeyReused where it served another one."""
    before = None if key is None else used_keys(log, state, [key]).get(key)
    if before is not None and key is not None:
        check_same(before, said, key)
    return before


def check_same(before: Event, said: Sequence[Any], key: str) -> None:
    """KeyReused unless the key was used before for the same, as far as that is not erased."""
    wanted = list(said)
    if isinstance(before, Deciding) and before.arrival.person is None and before.arrival.person_hash is not None:
        wanted[-1] = None
    if before.request() != wanted:
        refuse_reuse(key)


def refuse_reuse(key: str) -> NoReturn:
    """Raise the error of a key that was used for something else."""
    raise KeyReused(f"key = {shown(key[2:])}: was used before with another content; make a new key for each request")


def note(state: CampaignState, stamp: Stamp, key: str | None, said: Sequence[Any]) -> list[Event]:
    """Return what is stored of a request that changes nothing: its key, where it has one, and what it stands for."""
    return [] if key is None else [Noted(stamp.place(state, key), list(said))]


# --- batches ----------------------------------------------------------------------------------------------------------


def as_batch(field: str, given: Iterable[Any]) -> Sequence[Any]:
    """Return what a list, a generator or an array gives, at most 100,000."""
    return read_all(field, given, "must be a list", at_most=MAX_BATCH)


def read_all(field: str, given: object, remedy: str, *, at_most: int) -> list[Any]:
    """Return what a list, a set, an array or a generator gives; never more than is allowed, even if it would go on."""
    if isinstance(given, str | bytes | bytearray | Mapping):
        raise InvalidValue(field, given, remedy)
    try:
        found = iter(given)  # type: ignore[call-overload]
    except Exception as error:
        raise InvalidValue(field, given, remedy) from error
    try:
        batch = list(islice(found, at_most + 1))
    except DoralError:
        raise
    except Exception as error:  # a generator of the caller's
        said = f"could not be read to its end: {type(error).__name__}: {error}"
        raise InvalidValue(field, given, said) from error
    if len(batch) > at_most:
        raise InvalidValue(f"number of {field}", f"more than {at_most:,}", f"must be at most {at_most:,} at once")
    return batch


class Subject:
    """The events of a decision, those of the request at hand included."""

    __slots__ = ("decided", "later", "state")

    def __init__(self, state: CampaignState, decided: Event | None, later: Sequence[Settled], sequence: int) -> None:
        if decided is None and 0 < sequence <= state.sequence:
            raise BrokenLog(f"event {sequence} is missing: the log was damaged; restore a backup")
        if not isinstance(decided, Deciding):
            raise UnknownDecision(
                f"decision_id = {shown(make_id(state.names.tag, sequence))}: this campaign has no such decision"
            )
        self.state, self.decided, self.later = state, decided, list(later)

    @classmethod
    def find(cls, log: Log, state: CampaignState, sequence: int) -> Subject:
        """Return the decision that an event made; UnknownDecision where there is none."""
        decided = log.events([sequence]).get(sequence)
        return cls(state, decided, log.about([sequence]).get(sequence, ()), sequence)

    @property
    def id(self) -> str:
        """The identifier of the decision."""
        return make_id(self.state.names.tag, self.decided.sequence)

    @property
    def status(self) -> int:
        """The state of the decision."""
        return state_of(self.decided, self.later, self.state.expiries)

    def age_at(self, moment: Moment) -> float:
        """Return how old it is by then; nothing can happen to it before it was made."""
        made = self.state.names.own_time(self.decided)
        age = moment.own - made
        if age < 0 and moment.happened is not None:
            epoch = self.state.names.epoch
            raise InvalidValue("at", epoch + moment.happened, f"is before decision {self.id}, made at {epoch + made!r}")
        return max(age, 0.0)

    def is_late(self, age: float, *, is_told: bool) -> bool:
        """Whether an answer at this age comes too late to count; `is_told`: the caller said when it came.

        Without a deadline the policy's cut-off decides, and what has expired by it stays so.
        """
        arrival = self.decided.arrival
        if age > self.state.age_limit(arrival.context, arrival.deadline):
            return True
        has_deadline = arrival.deadline is not None or self.state.problem.deadlines[arrival.context] < math.inf
        return self.status == IS_EXPIRED and not has_deadline and not is_told

    @property
    def answer(self) -> Answered | Corrected:
        """The last event that says what came of it."""
        for event in reversed(self.later):
            if isinstance(event, Answered | Corrected):
                return event
        raise BrokenLog(f"decision {self.id}: its answer is missing: the log was damaged; restore a backup")

    @property
    def reserved(self) -> float:
        """What it may cost the campaign at most."""
        return known(self.decided.choice.cost)

    @property
    def actual_cost(self) -> float:
        """What it costs the campaign as far as is known."""
        for event in reversed(self.later):
            if event.settlement.actual_cost is not None:
                return event.settlement.actual_cost
        return 0.0 if self.state.expiries.is_released(self.decided, self.later) else self.reserved

    def implied_cost(self, *, is_late: bool) -> float | None:
        """Return what an answer costs that does not say it; None: what is booked for the decision.

        Where costs are paid on answer, that goes by when it came: nothing if too late, the list price if in time, also
        where that is told only after its reservation came back.
        """
        if self.state.problem.paid == "always":
            return None
        if is_late:
            return 0.0 if self.status == IS_PENDING else None
        return self.reserved if self.actual_cost != self.reserved else None

    def check_cost(self, actual_cost: float | None, left: Decimal) -> None:
        """WrongState where it would cost more than was reserved for it, or more than there is budget left by then."""
        if actual_cost is None:
            return
        if actual_cost > self.reserved:
            raise self.refuse(f"reserved {self.reserved!r}: its actual_cost can be at most that, not {actual_cost!r}")
        more = minus(exact(actual_cost), exact(self.actual_cost))
        if more > left and not self.state.ledger.may_overdraw:
            remedy = f"the budget has only {left} left; say what was paid with actual_cost"
            raise self.refuse(f"cannot cost {actual_cost!r}: {remedy}")

    def decision(self) -> Decision:
        """Return it as it stands."""
        return make_decision(self.state.names, self.decided, self.later, self.state.expiries)

    def refuse(self, problem: str) -> WrongState:
        """Return the error of a request that does not fit."""
        return WrongState(f"decision {self.id} {problem}")

    def about(self, *, has_person: bool) -> About:
        """Return what an event about it repeats."""
        decided, arrival, choice = self.decided.sequence, self.decided.arrival, self.decided.choice
        person = repeated(arrival.person) if has_person else None
        return About(
            decided, known(choice.number), arrival.context, known(choice.arm), choice.cost, choice.reason,
            arrival.weight, arrival.deadline, person,
        )  # fmt: skip

    def becomes(self, status: int, actual_cost: float | None) -> Settlement:
        """Return the settlement of an event that changes its state."""
        return Settlement(self.status, status, self.actual_cost, actual_cost)
