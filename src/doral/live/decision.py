"""A decision as people see it, put together from its events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doral.errors import shown
from doral.live.errors import BrokenLog, UnknownDecision
from doral.live.events import (
    ANSWERED,
    CANCELLED,
    CORRECTED,
    IS_EXPIRED,
    IS_PENDING,
    IS_SKIPPED,
    RECORDED,
    STATE_NAMES,
    Event,
    known,
)
from doral.live.expiries import Expiries
from doral.live.people import read_person
from doral.live.reasons import in_words
from doral.live.shown_decision import decision_card, decision_words

_STATES = range(len(STATE_NAMES))
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

    Times are when things happened, as the caller said or the clock showed: in seconds since 1970, or in rounds.
    `probability` is that of this very choice (this arm, or to skip), so that other policies can be evaluated on the log
    later; None where a decision was made elsewhere and nobody said it. Where the baseline of the problem is observed,
    whoever is skipped is pending like all others, until it is known what became of them; where it is an arm, they get
    that. Of those who are skipped, `base` and `effects` are about the arm that was thought best for them.

    Attributes:
        id: By which answers are given.
        state: Skipped, pending, returned, expired, late or cancelled.
        context: The name of its context.
        arm: The name of the arm; None: nobody was served.
        cost: What is reserved, unless it is not in the ledger; 0 when skipped.
        value: What a use of the arm seemed worth; of a skip, of the arm that was thought of.
        price: What a unit of budget seemed to bring elsewhere; 0 where nothing competed for it.
        probability: That of this very choice; None where nobody said it.
        reason: Why, in words.
        round: How many had arrived, this one included.
        decided_at: When, in seconds since 1970, or in rounds.
        key: That the caller gave the request; None: none, or it was forgotten.
        reward: What came of it; None while there is no answer.
        answered_at: When the answer came, as `decided_at`.
        actual_cost: What it cost in the end; None while it is open.
        available: Names of the arms that could be had; None: all.
        is_recorded: Whether it was made elsewhere.
        is_in_ledger: Whether its cost is paid from the campaign's budget.
        features: What was known of the person, where the problem says so; None where it was forgotten.
        weight: Of this one request; None: that of the context.
        deadline: Of this one request, in seconds or rounds; None: that of the context.
        base: What the arm was thought to bring an average one, in units of reward.
        effects: What each feature spoke for the arm (against it, below 0) beyond that.
    """

    id: str
    state: str
    context: str
    arm: str | None
    cost: float
    value: float
    price: float
    probability: float | None
    reason: str
    round: int
    decided_at: float
    key: str | None = None
    reward: float | None = None
    answered_at: float | None = None
    actual_cost: float | None = None
    available: tuple[str, ...] | None = None
    is_recorded: bool = False
    is_in_ledger: bool = True
    # Where the problem says what is known of people; None where it was forgotten.
    features: Mapping[str, float | str | None] | None = None
    weight: float | None = None
    deadline: float | None = None
    base: float | None = None
    effects: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        return f"<Decision {self.id}: {decision_words(self)}>"

    def _repr_html_(self) -> str:
        return decision_card(self)

    @property
    def delay(self) -> float | None:
        """How long the answer took."""
        return None if self.answered_at is None else self.answered_at - self.decided_at


class Names:
    """What turns the numbers of an event into names."""

    __slots__ = ("arms", "contexts", "epoch", "nothing", "person", "repairs", "tag", "unit_costs")

    def __init__(
        self,
        *,
        tag: str,
        epoch: float,
        contexts: Sequence[str],
        arms: Sequence[str],
        nothing: int | None = None,
        person: Sequence[str] = (),
        unit_costs: Sequence[float | None] | None = None,
    ) -> None:
        # What a use costs, by context, where all arms cost the same there; None where less than that may be paid.
        self.unit_costs = unit_costs
        self.tag, self.epoch, self.contexts, self.arms = tag, epoch, contexts, arms
        self.person = person  # features of people
        self.nothing = nothing  # the arm that means to do nothing, and that nobody has given
        self.repairs: list[tuple[int, float]] = []  # events that set the clock back, and to what

    def unit_cost(self, decided: Event) -> float | None:
        """By what its value has to be divided to compare with a price; None where nobody can say."""
        if self.unit_costs is None:
            return None
        return decided.cost or self.unit_costs[known(decided.context)]  # what those get who are skipped costs nothing

    def own_time(self, event: Event) -> float:
        """When something happened, on the campaign's clock: no later than what the clock was set back to after it."""
        own = event.own
        for sequence, clock in self.repairs:
            if event.sequence < sequence and own > clock:
                own = clock
        return own


def state_of(decided: Event, later: Sequence[Event], expiries: Expiries | None) -> int:
    """The state of a decision, given all later events about it and what has expired."""
    if decided.arm is None:
        return IS_SKIPPED
    if later:
        return _stored_state(later[-1])
    if decided.state is not None:  # it was too old already when it was recorded
        return _stored_state(decided)
    if expiries is None or not expiries.has(decided):
        return IS_PENDING
    return IS_EXPIRED


def is_released(decided: Event, later: Sequence[Event], expiries: Expiries | None) -> bool:
    """Whether what was reserved for it came back when it expired: not if it was answered, or too old, before that."""
    if expiries is None or decided.state is not None or (later and later[0].was != IS_EXPIRED):
        return False
    return expiries.is_released(decided)


def _stored_state(event: Event) -> int:
    state = known(event.state)
    if state not in _STATES:
        raise BrokenLog(f"event {event.sequence}: there is no state {state!r}")
    return state


def make_decision(
    names: Names, decided: Event, later: Sequence[Event] = (), expiries: Expiries | None = None
) -> Decision:
    """The decision whose events these are."""
    value, price = decided.value or 0.0, decided.price or 0.0
    cost, is_recorded, is_in_ledger = decided.cost or 0.0, False, True
    reason, context = known(decided.reason), known(decided.context)
    if decided.kind == RECORDED:
        is_recorded, said = True, json.loads(known(decided.data))
        cost, is_in_ledger = said["cost"], said["spend"]
    state = state_of(decided, later, expiries)
    reward = answered_at = actual_cost = None
    if state == IS_EXPIRED or later:
        actual_cost = 0.0 if is_released(decided, later, expiries) else cost
    if later:
        reward, answered_at, actual_cost = _outcome(names, actual_cost or 0.0, later)
    return Decision(
        id=make_id(names.tag, decided.sequence),
        state=STATE_NAMES[state],
        context=names.contexts[context],
        arm=None if decided.arm is None or decided.arm == names.nothing else names.arms[decided.arm],
        cost=cost,
        value=value,
        price=price,
        probability=decided.probability,
        reason=in_words(
            reason, value=value, price=price, probability=decided.probability, unit_cost=names.unit_cost(decided)
        ),
        round=known(decided.round),
        decided_at=names.epoch + names.own_time(decided),
        key=None if decided.key is None else decided.key[2:],
        reward=reward,
        answered_at=answered_at,
        actual_cost=actual_cost,
        available=None if decided.available is None else tuple(_named(names.arms, decided.available)),
        is_recorded=is_recorded,
        is_in_ledger=is_in_ledger,
        weight=decided.weight,
        deadline=decided.deadline,
        **_about_person(names, decided),
    )


def _about_person(names: Names, decided: Event) -> dict[str, Any]:
    if decided.person is None:
        return {}
    person = read_person(decided.person)
    said: dict[str, Any] = {"features": dict(zip(names.person, person.features, strict=True)), "base": person.base}
    if person.effects is not None:
        said["effects"] = dict(zip(names.person, person.effects, strict=True))
    return said


def _outcome(names: Names, cost: float, later: Sequence[Event]) -> tuple[float | None, float | None, float | None]:
    reward = answered_at = None
    actual = cost
    for event in later:
        if event.kind == CANCELLED:
            return None, None, 0.0
        if event.kind in (ANSWERED, CORRECTED):
            reward = event.reward
        if event.kind == ANSWERED:
            answered_at = names.epoch + names.own_time(event)
        if event.actual_cost is not None:
            actual = event.actual_cost
    return reward, answered_at, actual


def _named(arms: Sequence[str], available: bytes) -> list[str]:
    return [
        name for arm, name in enumerate(arms) if arm // 8 < len(available) and available[arm // 8] >> (7 - arm % 8) & 1
    ]
