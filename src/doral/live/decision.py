"""A decision as people see it, put together from its events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from doral.errors import shown
from doral.live.errors import UnknownDecision
from doral.live.events import ANSWERED, CANCELLED, CORRECTED, IS_EXPIRED, IS_PENDING, IS_SKIPPED, STATE_NAMES, Event
from doral.live.reasons import in_words

_ID = re.compile(r"([0-9a-f]{8})-([1-9][0-9]{0,17})")


def make_id(tag: str, sequence: int) -> str:
    """An identifier that names its campaign too, so that a decision of another one is noticed."""
    return f"{tag}-{sequence}"


def read_id(tag: str, decision_id: object) -> int:
    """The sequence number of the decided event."""
    match = _ID.fullmatch(decision_id) if isinstance(decision_id, str) else None
    if match is None:
        raise UnknownDecision(f"decision_id = {shown(decision_id)}: give the id of a Decision, such as '{tag}-12'")
    if match[1] != tag:
        raise UnknownDecision(
            f"decision_id = {shown(decision_id)}: belongs to another campaign; this one's begin with {tag}-"
        )
    return int(match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for one arrival, and what became of it.

    Times are seconds since 1970, or rounds where the campaign's clock counts rounds. `probability` is that of this very
    choice (this arm, or to skip), so that other policies can be evaluated on the log later.
    """

    id: str
    state: str  # skipped, pending, returned, expired, late or cancelled
    context: str
    arm: str | None  # None: skipped
    cost: float  # reserved; 0 when skipped
    value: float  # what the arm seemed worth
    price: float  # what a unit of budget seemed worth
    probability: float
    reason: str
    round: int
    decided_at: float
    key: str | None = None
    reward: float | None = None
    answered_at: float | None = None
    actual_cost: float | None = None  # None while it is open
    available: tuple[str, ...] | None = None  # None: all arms

    @property
    def delay(self) -> float | None:
        """How long the answer took."""
        return None if self.answered_at is None else self.answered_at - self.decided_at


class Names:
    """What turns the numbers of an event into names."""

    __slots__ = ("arms", "contexts", "epoch", "tag")

    def __init__(self, *, tag: str, epoch: float, contexts: Sequence[str], arms: Sequence[str]) -> None:
        self.tag, self.epoch, self.contexts, self.arms = tag, epoch, contexts, arms


def state_of(decided: Event, later: Sequence[Event], expired_upto: Sequence[int] | None) -> int:
    """The state of a decision, given all later events about it and, by context, the last decision that has expired."""
    if decided.arm is None:
        return IS_SKIPPED
    if later:
        assert later[-1].state is not None
        return later[-1].state
    if expired_upto is None or decided.context is None or decided.sequence > expired_upto[decided.context]:
        return IS_PENDING
    return IS_EXPIRED


def make_decision(
    names: Names, decided: Event, later: Sequence[Event] = (), expired_upto: Sequence[int] | None = None
) -> Decision:
    """The decision whose events these are."""
    value, price, probability = decided.value or 0.0, decided.price or 0.0, decided.probability or 0.0
    cost = decided.cost or 0.0
    assert decided.context is not None
    assert decided.reason is not None
    assert decided.round is not None
    state = state_of(decided, later, expired_upto)
    reward = answered_at = actual_cost = None
    if later:
        reward, answered_at, actual_cost = _outcome(names, cost, later)
    elif state == IS_EXPIRED:
        actual_cost = cost
    return Decision(
        id=f"{names.tag}-{decided.sequence}",
        state=STATE_NAMES[state],
        context=names.contexts[decided.context],
        arm=None if decided.arm is None else names.arms[decided.arm],
        cost=cost,
        value=value,
        price=price,
        probability=probability,
        reason=in_words(decided.reason, value=value, price=price, probability=probability),
        round=decided.round,
        decided_at=names.epoch + decided.clock,
        key=None if decided.key is None else decided.key[2:],
        reward=reward,
        answered_at=answered_at,
        actual_cost=actual_cost,
        available=None if decided.available is None else tuple(_named(names.arms, decided.available)),
    )


def _outcome(names: Names, cost: float, later: Sequence[Event]) -> tuple[float | None, float | None, float | None]:
    reward = answered_at = None
    actual = cost
    for event in later:
        if event.kind == CANCELLED:
            return None, None, 0.0
        if event.kind in (ANSWERED, CORRECTED):
            reward = event.reward
        if event.kind == ANSWERED:
            answered_at = names.epoch + event.clock
        if event.actual_cost is not None:
            actual = event.actual_cost
    return reward, answered_at, actual


def _named(arms: Sequence[str], available: bytes) -> list[str]:
    return [
        name for arm, name in enumerate(arms) if arm // 8 < len(available) and available[arm // 8] >> (7 - arm % 8) & 1
    ]
