"""A decision that requests are about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from doral.errors import InvalidValue, shown
from doral.live.decision import Decision, is_released, make_decision, make_id, state_of
from doral.live.drafts import Moment
from doral.live.errors import UnknownDecision, WrongState
from doral.live.events import ANSWERED, CORRECTED, IS_EXPIRED, IS_PENDING, MAKES_DECISION, Event, known
from doral.live.fold import Fold
from doral.live.ledger import exact, minus
from doral.live.storage.contract import Log


class Subject:
    """Its events so far, planned ones included."""

    __slots__ = ("decided", "fold", "later")

    def __init__(self, fold: Fold, decided: Event | None, later: Sequence[Event], sequence: int) -> None:
        if decided is None or decided.kind not in MAKES_DECISION:
            raise UnknownDecision(
                f"decision_id = {shown(make_id(fold.names.tag, sequence))}: this campaign has no such decision"
            )
        self.fold, self.decided, self.later = fold, decided, list(later)

    @classmethod
    def find(cls, log: Log, fold: Fold, sequence: int) -> Subject:
        decided = log.events([sequence]).get(sequence)
        return cls(fold, decided, log.about([sequence]).get(sequence, ()), sequence)

    @property
    def id(self) -> str:
        return make_id(self.fold.names.tag, self.decided.sequence)

    @property
    def state(self) -> int:
        return state_of(self.decided, self.later, self.fold.expiries)

    @property
    def context(self) -> int:
        return known(self.decided.context)

    def age_at(self, moment: Moment) -> float:
        """How old it is by then; nothing can happen to it before it was made."""
        made = self.fold.names.own_time(self.decided)
        age = moment.own - made
        if age < 0 and moment.happened is not None:
            epoch = self.fold.names.epoch
            raise InvalidValue("at", epoch + moment.happened, f"is before decision {self.id}, made at {epoch + made!r}")
        return max(age, 0.0)

    def is_late(self, age: float, *, is_told: bool) -> bool:
        """Whether an answer at this age comes too late to count; `is_told`: the caller said when it came.

        Without a deadline the policy's cut-off decides, and what has expired by it stays so.
        """
        own = self.decided.deadline
        if age > self.fold.age_limit(self.context, own):
            return True
        has_deadline = own is not None or self.fold.problem.deadlines[self.context] < math.inf
        return self.state == IS_EXPIRED and not has_deadline and not is_told

    @property
    def outcome(self) -> int | None:
        """What the engine made of the answer."""
        return next(event.outcome for event in reversed(self.later) if event.kind in (ANSWERED, CORRECTED))

    @property
    def reward(self) -> float | None:
        answers = [event for event in self.later if event.kind in (ANSWERED, CORRECTED)]
        return answers[-1].reward if answers else None

    @property
    def reserved(self) -> float:
        """What it may cost the campaign at most."""
        return known(self.decided.cost)

    @property
    def actual_cost(self) -> float:
        """What it costs the campaign as far as is known."""
        said = [event.actual_cost for event in self.later if event.actual_cost is not None]
        if said:
            return said[-1]
        return 0.0 if is_released(self.decided, self.later, self.fold.expiries) else self.reserved

    def implied_cost(self, *, is_late: bool) -> float | None:
        """What an answer costs that does not say it; None: what is booked for the decision.

        Where costs are paid on answer, that goes by when it came: nothing if too late, the list price if in time, also
        where that is told only after its reservation came back.
        """
        if self.fold.problem.paid == "always":
            return None
        if is_late:
            return 0.0 if self.state == IS_PENDING else None
        return self.reserved if self.actual_cost != self.reserved else None

    def is_past(self, moment: Moment) -> bool:
        """Whether the engine has been told of later things by then: the decision may be gone, and has to say who it is
        for.
        """
        return moment.own < self.fold.engine.clock or known(self.decided.number) < self.fold.swept

    def check_cost(self, actual_cost: float | None, left: Decimal) -> None:
        """It costs at most what was reserved for it; and if more than it was taken to cost, there must be budget left
        by then.
        """
        if actual_cost is None:
            return
        if actual_cost > self.reserved:
            raise self.refuse(f"reserved {self.reserved!r}: its actual_cost can be at most that, not {actual_cost!r}")
        more = minus(exact(actual_cost), exact(self.actual_cost))
        if more > left and not self.fold.ledger.may_overdraw:
            remedy = f"the budget has only {left} left; say what was paid with actual_cost"
            raise self.refuse(f"cannot cost {actual_cost!r}: {remedy}")

    def decision(self) -> Decision:
        """As it stands."""
        return make_decision(self.fold.names, self.decided, self.later, self.fold.expiries)

    def refuse(self, problem: str) -> WrongState:
        return WrongState(f"decision {self.id} {problem}")

    def draft(self, kind: int, **columns: object) -> Event:
        """An event about this decision; its place in the log and on the clock comes later."""
        decided = self.decided
        return Event(
            0, kind, 0.0, 0.0, 0, decision=decided.sequence, number=decided.number, context=decided.context,
            arm=decided.arm, cost=decided.cost, reason=decided.reason, was=self.state, weight=decided.weight,
            deadline=decided.deadline, **columns,  # type: ignore[arg-type]
        )  # fmt: skip
