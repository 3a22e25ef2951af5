"""From a request about an existing decision to the event that it becomes; whatever is wrong is said here, before
anything changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from doral.errors import shown
from doral.live.decision import make_id, state_of
from doral.live.errors import KeyReused, UnknownDecision, WrongState
from doral.live.events import (
    ANSWERED,
    CANCELLED,
    CORRECTED,
    DECIDED,
    LATE,
    PENDING,
    RETURNED,
    SKIPPED,
    STATE_CANCELLED,
    STATE_EXPIRED,
    STATE_NAMES,
    Event,
)
from doral.live.fold import UNHEARD, UNHEARD_BEFORE, Fold
from doral.live.ledger import exact, minus


class Subject:
    """A decision that requests are about: its events so far, planned ones included."""

    __slots__ = ("decided", "fold", "outcomes")

    def __init__(self, fold: Fold, decided: Event | None, outcomes: Sequence[Event], sequence: int) -> None:
        if decided is None or decided.kind != DECIDED:
            raise UnknownDecision(
                f"decision_id = {shown(make_id(fold.names.tag, sequence))}: this campaign has no such decision"
            )
        self.fold, self.decided, self.outcomes = fold, decided, list(outcomes)

    @property
    def id(self) -> str:
        return make_id(self.fold.names.tag, self.decided.sequence)

    @property
    def state(self) -> int:
        return state_of(self.decided, self.outcomes, self.fold.expired_upto)

    @property
    def age_limit(self) -> float:
        assert self.decided.context is not None
        return self.fold.age_limit(self.decided.context)

    @property
    def outcome(self) -> int | None:
        """What the engine made of the answer."""
        return next(event.outcome for event in reversed(self.outcomes) if event.kind in (ANSWERED, CORRECTED))

    @property
    def reward(self) -> float | None:
        answers = [event for event in self.outcomes if event.kind in (ANSWERED, CORRECTED)]
        return answers[-1].reward if answers else None

    @property
    def actual_cost(self) -> float:
        """What it costs as far as is known."""
        assert self.decided.cost is not None
        said = [event.actual_cost for event in self.outcomes if event.actual_cost is not None]
        return said[-1] if said else self.decided.cost

    def refuse(self, problem: str) -> WrongState:
        return WrongState(f"decision {self.id} {problem}")

    def event(self, kind: int, **columns: object) -> Event:
        """A draft: sequence, clock and writer are filled in when it is appended."""
        decided = self.decided
        return Event(
            0, kind, 0.0, 0.0, 0, decision=decided.sequence, number=decided.number, context=decided.context,
            arm=decided.arm, cost=decided.cost, reason=decided.reason, was=self.state, **columns,  # type: ignore[arg-type]
        )  # fmt: skip


def plan_answer(
    subject: Subject, *, reward: float, actual_cost: float | None, key: str | None, clock: float
) -> Event | None:
    """The answer as an event, or None where it is known already."""
    state, decided = subject.state, subject.decided
    if state == SKIPPED:
        raise subject.refuse("was skipped: there is nothing that could be answered")
    if state == STATE_CANCELLED:
        raise subject.refuse("was cancelled: it takes no answer")
    if state in (RETURNED, LATE):
        first = next(event for event in subject.outcomes if event.kind == ANSWERED)
        is_same = reward in (first.reward, subject.reward)
        if is_same and actual_cost in (None, first.actual_cost, subject.actual_cost):
            return None
        raise subject.refuse(
            f"was answered already, with reward {subject.reward!r} at cost {subject.actual_cost!r}; "
            "to replace that, use correct()"
        )
    _check_cost(subject, actual_cost)
    is_late = state == STATE_EXPIRED or clock - decided.clock > subject.age_limit
    return subject.event(
        ANSWERED,
        key=key,
        reward=reward,
        actual_cost=actual_cost,
        previous_cost=decided.cost,
        state=LATE if is_late else RETURNED,
    )


def plan_correction(subject: Subject, *, reward: float, actual_cost: float | None, key: str | None) -> Event | None:
    """The correction as an event, or None where it changes nothing."""
    if subject.state not in (RETURNED, LATE):
        raise subject.refuse(
            f"is {STATE_NAMES[subject.state]}: only an answer can be corrected; use feedback() for the first"
        )
    if reward == subject.reward and actual_cost in (None, subject.actual_cost):
        return None
    _check_cost(subject, actual_cost)
    before = subject.actual_cost
    if actual_cost is not None and minus(exact(actual_cost), exact(before)) > subject.fold.book.left:
        raise subject.refuse(f"cannot cost {actual_cost!r}: the budget has only {subject.fold.book.left} left")
    return subject.event(
        CORRECTED,
        key=key,
        reward=reward,
        previous=subject.reward,
        actual_cost=actual_cost,
        previous_cost=before,
        state=subject.state,
        outcome=subject.outcome,
        data=UNHEARD_BEFORE if subject.outcome == UNHEARD else None,
    )


def plan_cancellation(subject: Subject, *, key: str | None) -> Event | None:
    """The cancellation as an event, or None where it is cancelled already."""
    if subject.state == STATE_CANCELLED:
        return None
    if subject.state == SKIPPED:
        raise subject.refuse("was skipped: nothing is reserved for it")
    if subject.state not in (PENDING, STATE_EXPIRED):
        raise subject.refuse(f"is {STATE_NAMES[subject.state]}: what has been answered cannot be cancelled")
    return subject.event(CANCELLED, key=key, actual_cost=0.0, previous_cost=subject.decided.cost, state=STATE_CANCELLED)


def _check_cost(subject: Subject, actual_cost: float | None) -> None:
    reserved = subject.decided.cost
    if actual_cost is not None and reserved is not None and actual_cost > reserved:
        raise subject.refuse(f"reserved {reserved!r}: its actual_cost can be at most that, not {actual_cost!r}")


def check_same(known: Event, draft_kind: int, decision: int, reward: float | None) -> None:
    """A key that was used before must have been used for the same thing."""
    if known.kind != draft_kind or known.decision != decision or known.reward != reward:
        said = "" if known.key is None else shown(known.key[2:])
        raise KeyReused(f"key = {said}: was used before with another content; make a new key for each request")
