"""A decision that requests are about."""

from __future__ import annotations

from collections.abc import Sequence

from doral.errors import shown
from doral.live.decision import Decision, make_decision, make_id, state_of
from doral.live.errors import UnknownDecision, WrongState
from doral.live.events import ANSWERED, CORRECTED, DECIDED, Event
from doral.live.fold import Fold
from doral.live.storage.contract import Log


class Subject:
    """Its events so far, planned ones included."""

    __slots__ = ("decided", "fold", "later")

    def __init__(self, fold: Fold, decided: Event | None, later: Sequence[Event], sequence: int) -> None:
        if decided is None or decided.kind != DECIDED:
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
        return state_of(self.decided, self.later, self.fold.expired_upto)

    @property
    def age_limit(self) -> float:
        assert self.decided.context is not None
        return self.fold.age_limit(self.decided.context)

    @property
    def outcome(self) -> int | None:
        """What the engine made of the answer."""
        return next(event.outcome for event in reversed(self.later) if event.kind in (ANSWERED, CORRECTED))

    @property
    def reward(self) -> float | None:
        answers = [event for event in self.later if event.kind in (ANSWERED, CORRECTED)]
        return answers[-1].reward if answers else None

    @property
    def actual_cost(self) -> float:
        """What it costs as far as is known."""
        assert self.decided.cost is not None
        said = [event.actual_cost for event in self.later if event.actual_cost is not None]
        return said[-1] if said else self.decided.cost

    def decision(self) -> Decision:
        """As it stands."""
        return make_decision(self.fold.names, self.decided, self.later, self.fold.expired_upto)

    def refuse(self, problem: str) -> WrongState:
        return WrongState(f"decision {self.id} {problem}")

    def draft(self, kind: int, **columns: object) -> Event:
        """An event about this decision; its place in the log and on the clock comes later."""
        decided = self.decided
        return Event(
            0, kind, 0.0, 0.0, 0, decision=decided.sequence, number=decided.number, context=decided.context,
            arm=decided.arm, cost=decided.cost, reason=decided.reason, was=self.state, **columns,  # type: ignore[arg-type]
        )  # fmt: skip
