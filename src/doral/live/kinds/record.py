"""Decisions that were made elsewhere. They are entered in the order in which things happened, decisions and answers
alike, as if they had been made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from doral import _check
from doral.engine.engine import NO_FEATURES
from doral.errors import InvalidValue
from doral.live.errors import BrokenLog
from doral.live.events.event import (
    DECIDE_SCOPE,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    MADE_ELSEWHERE,
    About,
    Answered,
    Arrived,
    Choice,
    Event,
    Place,
    Recorded,
    Settlement,
    known,
)
from doral.live.events.person import Asked, asked_of, person_for, repeated
from doral.live.kinds.decide import context_for, who_for
from doral.live.kinds.request import Request, Subject, check_same, scoped_key, used_keys
from doral.live.runtime.clock import Stamp
from doral.live.state.parts import exact, minus
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision


class Elsewhere(NamedTuple):
    """What a caller says of a decision that was made elsewhere."""

    context: str | None
    arm: str | None
    at: object
    reward: float | None
    answered_at: object
    cost: float | None
    probability: float | None
    spend: bool
    key: str | None
    who: Asked


def make_record(
    context: str | None,
    arm: str | None,
    at: object,
    reward: float | None = None,
    answered_at: object = None,
    cost: float | None = None,
    probability: float | None = None,
    spend: bool = False,
    key: str | None = None,
    *,
    features: object = None,
    weight: float | None = None,
    deadline: float | None = None,
) -> Elsewhere:
    """Return what was said, checked as far as that can be done without the campaign."""
    if not isinstance(spend, bool):
        raise InvalidValue("spend", spend, "must be True or False")
    if probability is not None:
        probability = _check.finite_number("probability", probability, above=0, at_most=1)
    return Elsewhere(
        context,
        arm,
        at,
        None if reward is None else _check.finite_number("reward", reward) + 0.0,
        answered_at,
        None if cost is None else _check.finite_number("cost", cost, at_least=0) + 0.0,
        probability,
        spend,
        scoped_key(DECIDE_SCOPE, key),
        asked_of(features, weight, deadline),
    )


def record_of(one: object) -> Elsewhere:
    """Return the same of a mapping with the arguments of `record`."""
    optional = ("context", "reward", "answered_at", "cost", "probability", "spend", "key", *Asked._fields)
    given = _check.keys("record", one, required=("arm", "at"), optional=optional)
    return make_record(given.pop("context", None), **given)


# --- the request ------------------------------------------------------------------------------------------------------


class Record(Request[list[Decision]]):
    """Decisions, each with its answer, if one is said; those whose keys are known are only looked up."""

    is_many = True

    def __init__(self, records: Sequence[Elsewhere]) -> None:
        self.records = records

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        used = used_keys(log, state, (one.key for one in self.records))
        entries: list[Recorded] = []
        mine: dict[str, int] = {}
        places: list[int | Event] = []  # of each record: an event of the log, or the index of an entry
        for asked in self.records:
            entry, key = _entry(state, asked, stamp), asked.key
            if key is not None and (key in used or key in mine):
                place = used[key] if key in used else mine[key]
                check_same(place if isinstance(place, Event) else entries[place], entry.request(), key)
                places.append(place)
                continue
            if key is not None:
                mine[key] = len(entries)
            places.append(len(entries))
            entries.append(entry)
        if entries:
            state.refuse_if_closed()
            _refuse_overdraft(state, entries)
        events, made_at = _in_order(state, entries)
        return events, [place if isinstance(place, Event) else made_at[place] for place in places]

    def view(self, state: CampaignState, log: Log, events: Sequence[Event], found: Any) -> list[Decision]:
        made = {event.sequence: event for event in events if isinstance(event, Recorded)}
        later = {event.about.decision: [event] for event in events if isinstance(event, Answered)}
        old = [place.sequence for place in found if isinstance(place, Event)]
        about = log.about(old) if old else {}
        return [
            Subject(state, place, about.get(place.sequence, ()), place.sequence).decision()
            if isinstance(place, Event)
            else Subject(state, made[place], later.get(place, ()), place).decision()
            for place in found
        ]


def _entry(state: CampaignState, asked: Elsewhere, stamp: Stamp) -> Recorded:
    """Return the event of a record, its number and its place in the log still open."""
    problem = state.problem
    context, person = context_for(problem, asked.context), person_for(problem, asked.who)
    arm = problem.control if asked.arm is None else problem.arm_index(asked.arm)
    if asked.reward is not None:
        problem.check_reward(asked.reward)
    made = stamp.said(state, asked.at)
    answered = stamp.said(state, asked.answered_at, field="answered_at")
    if made is None:
        raise InvalidValue("at", None, "say when the decision was made")
    if (answered is None) != (asked.reward is None) or (arm is None and answered is not None):
        remedy = "give reward and answered_at together, for a decision with an arm; or neither"
        raise InvalidValue("answered_at", asked.answered_at, remedy)
    if answered is not None and answered < made:
        raise InvalidValue("answered_at", asked.answered_at, f"is before the decision, made at {asked.at!r}")
    age = _now(state, stamp) - made if answered is None else answered - made
    is_overdue = age > state.age_limit(context, asked.who.deadline)
    cost = asked.cost if asked.cost is not None and arm is not None else _usual_cost(state, context, arm, is_overdue)
    return Recorded(
        Place(0, 0.0, stamp.wall, stamp.writer, made, asked.key),
        Arrived(context, None, asked.who.weight, asked.who.deadline, person),
        Choice(None, arm, cost if asked.spend else 0.0, 0, MADE_ELSEWHERE, None, None, asked.probability),
        asked.spend,
        cost,
        # Implied by when it is told: the same request may imply another cost later.
        asked.cost is None and problem.paid == "on_answer",
        asked.reward,
        answered,
        arm is not None and answered is None and is_overdue,
    )


def _usual_cost(state: CampaignState, context: int, arm: int | None, is_overdue: bool) -> float:
    """Return what a decision cost where nobody says it: where costs are paid on answer, nothing without one in time."""
    if arm is None or (is_overdue and state.problem.paid == "on_answer"):
        return 0.0
    return state.arms.costs(context)[arm]


def _now(state: CampaignState, stamp: Stamp) -> float:
    definition = state.definition
    return max(state.clock, stamp.wall - definition.epoch) if definition.is_in_seconds else state.clock


def _refuse_overdraft(state: CampaignState, entries: Sequence[Recorded]) -> None:
    left = budget = state.ledger.left
    for entry in entries:
        cost = entry.choice.cost
        left = minus(left, exact(cost))
        if left < 0 and cost > 0.0:
            raise InvalidValue("cost", cost, f"the budget has only {budget} left; or record with spend=False")


def _in_order(state: CampaignState, entries: Sequence[Recorded]) -> tuple[list[Event], list[int]]:
    """Return events in the order in which things happened, and the sequence number that each entry gets."""
    steps: list[tuple[float, bool, int]] = []  # when, whether it is the answer, of which entry
    for index, entry in enumerate(entries):
        steps.append((known(entry.place.happened), False, index))
        if entry.answered is not None:
            steps.append((entry.answered, True, index))
    steps.sort(key=lambda step: step[0])  # stable: an answer follows its decision
    events: list[Event] = []
    made: list[Any] = [None] * len(entries)
    clock, number, round_ = state.clock, state.engine.played, state.round
    for when, is_answer, index in steps:
        clock = max(clock, when)
        sequence = state.sequence + len(events) + 1
        if is_answer:
            events.append(_answer(state, made[index], sequence, clock))
            continue
        entry = entries[index]
        arm, round_ = entry.choice.arm, round_ + entry.is_ours
        choice = entry.choice._replace(number=None if arm is None else number, round=round_)
        number += arm is not None
        made[index] = Recorded(
            entry.place._replace(sequence=sequence, clock=clock), entry.arrival, choice, entry.is_ours,
            entry.list_cost, entry.is_implied, entry.reward, entry.answered, entry.is_overdue,
        )  # fmt: skip
        events.append(made[index])
    return events, [one.sequence for one in made]


def _answer(state: CampaignState, made: Recorded, sequence: int, clock: float) -> Answered:
    arrival, choice, answered = made.arrival, made.choice, known(made.answered)
    delay = answered - known(made.place.happened)
    is_late = delay > state.age_limit(arrival.context, arrival.deadline)
    person = repeated(arrival.person) if answered < clock else None  # by then the decision may be gone
    return Answered(
        Place(sequence, clock, made.place.at, made.place.writer, answered),
        About(
            made.sequence, known(choice.number), arrival.context, known(choice.arm), choice.cost, choice.reason,
            arrival.weight, arrival.deadline, person,
        ),
        Settlement(IS_PENDING, IS_LATE if is_late else IS_RETURNED, choice.cost, None),
        known(made.reward),
        delay,
        list_cost=None if made.is_ours else made.list_cost,
    )  # fmt: skip


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_record(state: CampaignState, event: Recorded) -> Recorded:
    """Have the engine learn of the decision; return the event with its round and number."""
    state.advance(event)
    arrival, choice = event.arrival, event.choice
    arm, cost, context = choice.arm, known(choice.cost), arrival.context
    state.check_place(event.sequence, arrival, 0 if arm is None else arm)
    reserved = cost
    if state.problem.paid == "on_answer" and arm is not None and (event.is_overdue or event.answered is not None):
        reserved = state.arms.costs(context)[arm]  # which share of it was paid is to be learned
    number = state.engine.record(
        context=context,
        arm=-1 if arm is None else arm,
        cost=reserved,
        time=event.own,
        clock=event.clock,
        is_arrival=event.is_ours,
        who=who_for(state, event) if state.problem.person else NO_FEATURES,
    )
    if reserved != cost:
        state.engine.give_back(context, float(minus(exact(reserved), exact(cost))))
    state.round += event.is_ours
    state.counts.outside += not event.is_ours
    if arm is None:
        state.counts.skip(known(choice.reason))
        return _made(event, state.round, None)
    state.counts.play(arm, known(choice.reason))
    state.ledger.reserve(exact(cost))
    if event.is_overdue:
        state.counts.move(IS_PENDING, IS_EXPIRED)
        state.ledger.spend(exact(cost))
    if choice.number is not None and choice.number != number:
        raise BrokenLog(f"event {event.sequence}: number {choice.number} does not follow")
    return _made(event, state.round, number)


def _made(event: Recorded, round_: int, number: int | None) -> Recorded:
    """Return it with its round and number, where the log says others."""
    if (event.choice.round, event.choice.number) == (round_, number):
        return event
    choice = event.choice._replace(round=round_, number=number)
    return Recorded(
        event.place, event.arrival, choice, event.is_ours, event.list_cost, event.is_implied, event.reward,
        event.answered, event.is_overdue,
    )  # fmt: skip
