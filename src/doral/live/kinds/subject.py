"""A decision that requests are about, with what became of it so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from doral.errors import InvalidValue, shown
from doral.live.errors import BrokenLog, UnknownDecision, WrongState
from doral.live.events.event import (
    IS_EXPIRED,
    IS_PENDING,
    About,
    Answered,
    Corrected,
    Deciding,
    Event,
    Settled,
    Settlement,
    known,
)
from doral.live.events.person import repeated
from doral.live.runtime.clock import Moment
from doral.live.state.ledger import exact, minus
from doral.live.state.names import make_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision, make_decision, state_of


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
