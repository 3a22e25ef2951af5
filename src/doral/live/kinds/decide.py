"""Arrivals: the engine decides, and the cost is reserved. On replay, what was decided is taken as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Bits
from doral.engine.decide import SKIPPED_OVER, SKIPPED_UNAVAILABLE
from doral.engine.engine import NO_FEATURES, Who
from doral.engine.engine import Decided as Chosen
from doral.engine.explain import explain_effects
from doral.errors import DoralError, InvalidValue
from doral.live.errors import BrokenLog
from doral.live.events.codec import DecidedColumns
from doral.live.events.event import (
    DECIDE_SCOPE,
    UNDECIDED,
    WHILE_PAUSED,
    Arrived,
    Choice,
    Decided,
    Deciding,
    Event,
    known,
)
from doral.live.events.person import NOTHING_ASKED, Asked, asked_of, explained, person_for, who_of
from doral.live.events.row import hash_key
from doral.live.kinds.request import Request, check_same, read_all, scoped_key, used_keys
from doral.live.runtime.clock import Stamp
from doral.live.state.own_policy import OwnPolicy
from doral.live.state.parts import times
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision, make_decision
from doral.problem import MAX_ARMS, Problem

_ROUNDING = 1e-8  # of what is left: how far the engine's floats may be from it
_ALL_TO_ONE: Bits = np.zeros((1, 0), dtype=np.uint8)  # one arrival to which all arms are offered


class Arrival(NamedTuple):
    """What a caller says of an arrival."""

    context: str | None
    available: list[str] | None = None
    key: str | None = None
    at: object = None
    who: Asked = NOTHING_ASKED


def make_arrival(
    context: str | None = None,
    available: Iterable[str] | None = None,
    key: str | None = None,
    at: object = None,
    *,
    features: object = None,
    weight: float | None = None,
    deadline: float | None = None,
) -> Arrival:
    """Return what was said, checked as far as that can be done without the campaign."""
    if available is not None:
        available = read_all("available", available, "must be a list of names of arms", at_most=MAX_ARMS)
    is_plain = features is None and weight is None and deadline is None
    who = NOTHING_ASKED if is_plain else asked_of(features, weight, deadline)
    return Arrival(context, available, None if key is None else scoped_key(DECIDE_SCOPE, key), at, who)


def arrival_of(one: object) -> Arrival:
    """Return the same of the name of a context, or of a mapping with the arguments of `decide`."""
    if isinstance(one, str):
        return Arrival(one)
    optional = ("context", "available", "key", "at", *Asked._fields)
    return make_arrival(**_check.keys("arrival", one, required=(), optional=optional))


def context_for(problem: Problem, name: str | None) -> int:
    """Return the number of a context; where there is only one it need not be said."""
    if name is not None:
        return problem.context_index(name)
    if problem.n_contexts > 1:
        raise InvalidValue("context", None, f"say which: {', '.join(problem.context_names[:10])}")
    return 0


# --- requests ---------------------------------------------------------------------------------------------------------


class Decide(Request[Decision]):
    """One arrival; the short way, for it is asked most."""

    __slots__ = ("arrival",)

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        context, available, key, at, who = self.arrival
        if key is not None and log.by_keys((hash_key(state.salt, key),)):
            return DecideMany([self.arrival]).validate(state, log, stamp)
        arrived = _arrived(state, context, available, who)
        place = stamp.placed(state.sequence + 1, stamp.moment(state, at), key)
        if state.closed:
            state.refuse_if_closed()
        return (Decided(place, arrived),), None

    def view(self, state: CampaignState, log: Log, events: Sequence[Decided], found: Any) -> Decision:
        if found is not None:
            return DecideMany([self.arrival]).view(state, log, events, found)[0]
        return make_decision(state.names, events[0], (), state.expiries)


class DecideMany(Request[list[Decision]]):
    """Arrivals in their order; those whose keys are known are only looked up.

    All or none; `is_each`: what is wrong with one does not keep the others out, and the error stands in its place.
    """

    is_many = True

    def __init__(self, arrivals: Sequence[Arrival], *, is_each: bool = False) -> None:
        self.arrivals, self.is_each = arrivals, is_each

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        used = used_keys(log, state, (one.key for one in self.arrivals))
        events: list[Decided] = []
        places: list[int | Event | DoralError] = []  # an event of the log, or the index of a new one
        mine: dict[str, int] = {}
        clock = state.clock
        for asked in self.arrivals:
            key, at = asked.key, asked.at
            try:
                arrived = _arrived(state, asked.context, asked.available, asked.who)
                if key is not None and (key in used or key in mine):
                    place = used[key] if key in used else mine[key]
                    before = place if isinstance(place, Event) else events[place]
                    again = Decided(before.place._replace(happened=stamp.said(state, at, clock=clock)), arrived)
                    check_same(before, again.request(), key)
                    places.append(place)
                    continue
                moment = stamp.moment(state, at, len(events), clock)
                state.refuse_if_closed()
            except DoralError as error:
                if not self.is_each:
                    raise
                places.append(error)
                continue
            clock = moment.clock
            if key is not None:
                mine[key] = len(events)
            places.append(len(events))
            events.append(Decided(stamp.placed(state.sequence + 1 + len(events), moment, key), arrived))
        return events, places

    def view(self, state: CampaignState, log: Log, events: Sequence[Decided], found: Any) -> list[Any]:
        names, expiries = state.names, state.expiries
        old = [place.sequence for place in found if isinstance(place, Event)]
        about = log.about(old) if old else {}
        return [
            make_decision(names, events[place], (), expiries)
            if isinstance(place, int)
            else place
            if isinstance(place, DoralError)
            else make_decision(names, place, about.get(place.sequence, ()), expiries)
            for place in found
        ]


def _arrived(state: CampaignState, context: str | None, available: Sequence[str] | None, who: Asked) -> Arrived:
    """Return what an event says of an arrival; whatever is wrong with it is said here."""
    if state.definition.own is not None:
        state.refuse_without_policy()
    person = None
    if who is not NOTHING_ASKED or state.problem.person:
        person = person_for(state.problem, who)
    mask = None if available is None else state.arms.mask(available)
    return Arrived(context_for(state.problem, context), mask, who.weight, who.deadline, person)


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_decisions(state: CampaignState, events: Sequence[Decided]) -> list[Decided]:
    """Decide for new arrivals, or take in what the log says; return events with what the engine chose.

    Together where that is the same as one by one: the budget pays for all, and no race can end on the way. A decision
    for a person is explained, which is looked up after each.
    """
    if state.own is not None:
        return [_apply_own(state, state.own, event) for event in events]
    if len(events) == 1:
        return [_apply_one(state, events[0])]
    if _has_to_go_one_by_one(state, len(events), is_new=events[0].choice is UNDECIDED):
        return [_apply_one(state, event) for event in events]
    if not _pays_for_all(state, len(events)):
        half = len(events) // 2
        return apply_decisions(state, events[:half]) + apply_decisions(state, events[half:])
    _keep_retired_out(state)
    return _apply_many(state, events, state.arms.off)


def _has_to_go_one_by_one(state: CampaignState, n: int, *, is_new: bool) -> bool:
    is_explained = state.problem.person and is_new
    return bool(n == 1 or is_explained or (state.arms.retired and state.engine.is_racing))


def _pays_for_all(state: CampaignState, n: int) -> bool:
    return state.ledger.left >= times(state.arms.dearest, n)


def _apply_many(state: CampaignState, events: Sequence[Decided], off: Sequence[int]) -> list[Decided]:
    facts = None
    if events[0].choice is not UNDECIDED:
        check_choices(state, events)
        facts = [(-1 if one.choice.arm is None else one.choice.arm, one.choice.cost) for one in events]
    chosen = state.engine.decide_many(
        [event.arrival.context for event in events],
        state.arms.offered([event.arrival.available for event in events], off),
        [event.clock for event in events],
        times=[event.own for event in events],
        recorded=facts,
        who=[who_for(state, event) for event in events] if state.problem.person else None,
    )
    enter = _enter if facts is None else _adopt
    made = [enter(state, event, one) for event, one in zip(events, chosen, strict=True)]
    kept = made if facts is None else events
    state.reserve([one.choice.arm for one in kept], [one.choice.cost for one in kept])
    return made


def _apply_one(state: CampaignState, event: Decided) -> Decided:
    """Decide for one arrival; the short way."""
    arms, place, arrival = state.arms, event.place, event.arrival
    off = arms.off
    if arms.retired:
        _keep_retired_out(state)
    left = state.ledger.left
    if left < arms.dearest and not state.ledger.may_overdraw:
        off = off + _beyond_budget(state, arrival.context, left)
    if event.choice is not UNDECIDED:
        return _apply_many(state, [event], off)[0]
    offered = _ALL_TO_ONE if arrival.available is None and not off else arms.offered((arrival.available,), off)
    who = who_for(state, event) if state.problem.person else NO_FEATURES
    chosen = state.engine.decide(arrival.context, offered, place.clock, time=place.happened, who=who)
    if arrival.person is not None:
        effects = explain_effects(state.engine.state, state.problem, who.traits, arrival.context, chosen.arm)
        event = Decided(place, arrival._replace(person=explained(arrival.person, effects)))
    made = _enter(state, event, chosen)
    if made.choice.arm is not None:
        state.ledger.reserve(arms.exact_costs(arrival.context)[made.choice.arm])
    return made


def _apply_own(state: CampaignState, own: OwnPolicy, event: Decided) -> Decided:
    """Have the campaign's own policy choose; the engine follows, as it does on replay."""
    if state.arms.is_paused:  # it is not asked, live or on replay
        return _apply_many(state, [event], state.arms.off)[0]
    choice = own.choose(state, event)
    made = Decided(event.place, event.arrival, choice)
    fact = made if event.choice is UNDECIDED else event
    _apply_many(state, [fact], state.arms.off)
    own.note(fact, choice)
    return made


def who_for(state: CampaignState, event: Deciding) -> Who:
    """Return whom a decision is for, as the engine wants it; BrokenLog where the event does not say it."""
    if event.arrival.person is None and event.arrival.person_hash is None:
        raise BrokenLog(f"event {event.sequence}: does not say whom it is for")
    return who_of(state.problem, state.levels, event.arrival)


def _keep_retired_out(state: CampaignState) -> None:
    """The end of a race lets all accepted arms into stage 2: keep out those that were retired meanwhile."""
    if state.arms.retired and not state.engine.is_racing:
        for arm in state.arms.retired:
            state.engine.retire(arm)


def _beyond_budget(state: CampaignState, context: int, left: Decimal) -> list[int]:
    """Return arms that would overdraw the ledger: the engine counts in pairs of floats, and might offer them."""
    floats = state.engine.budget_left * (1.0 + _ROUNDING)
    costs = zip(state.arms.costs(context), state.arms.exact_costs(context), strict=True)
    return [arm for arm, (cost, exact_cost) in enumerate(costs) if cost <= floats and exact_cost > left]


def _enter(state: CampaignState, event: Decided, chosen: Chosen) -> Decided:
    """Count a new decision; return the event with what was chosen."""
    state.advance(event)
    state.round = chosen.round
    choice = _choice(state, event.arrival.context, chosen)
    if choice.arm is None:
        state.counts.skip(choice.reason)
    else:
        state.counts.play(choice.arm, choice.reason)
    return Decided(event.place, event.arrival, choice)


def _choice(state: CampaignState, context: int, chosen: Chosen) -> Choice:
    """Return what is done: where the problem has a control arm, a skip means that arm, except after the end."""
    arm, reason, round_, number, probability, value, price = chosen
    if state.arms.is_paused and reason == SKIPPED_UNAVAILABLE:
        reason = WHILE_PAUSED
    if arm < 0 and state.arms.control is not None and reason != SKIPPED_OVER:
        arm = state.arms.control
    if arm < 0:
        return Choice(None, None, 0.0, round_, reason, value, price, probability)
    return Choice(number, arm, state.arms.costs(context)[arm], round_, reason, value, price, probability)


def _adopt(state: CampaignState, event: Decided, chosen: Chosen) -> Decided:
    """Count a decision as it was made; return the event with what today's engine would have chosen."""
    state.advance(event)
    fact = event.choice
    if fact.round != chosen.round or (fact.arm is not None and fact.number != chosen.number):
        raise BrokenLog(f"event {event.sequence}: round {fact.round} and number {fact.number} do not follow")
    state.round = chosen.round
    if fact.arm is None:
        state.counts.skip(fact.reason)
    else:
        state.counts.play(fact.arm, fact.reason)
    return Decided(event.place, event.arrival, _choice(state, event.arrival.context, chosen))


def check_choices(state: CampaignState, events: Sequence[Deciding]) -> None:
    """BrokenLog for a context or an arm that does not exist, or a choice without a reason or a cost."""
    for event in events:
        known(event.choice.reason), known(event.choice.cost)
        arm = event.choice.arm
        state.check_place(event.sequence, event.arrival, 0 if arm is None else arm)


def replay_decisions(state: CampaignState, columns: DecidedColumns, persons: Sequence[Decided] | None) -> bool:
    """Take in decisions of the log in half the time, where nobody asks what today's engine would have chosen.

    Args:
        state: Before them.
        columns: Of decisions that follow each other.
        persons: The decisions themselves, where the problem knows features of people.

    Returns:
        Whether that was done. What is not plain has to be applied, which says what is wrong.
    """
    n = len(columns.sequence)
    is_plain = state.is_next(columns) and None not in columns.reason
    if not is_plain or _has_to_go_one_by_one(state, n, is_new=False) or not _pays_for_all(state, n):
        return False
    _keep_retired_out(state)
    for sequence, context, arm in zip(columns.sequence, columns.context, columns.arm, strict=True):
        state.check_place(sequence, Arrived(context), 0 if arm is None else arm)
    arms = [-1 if arm is None else arm for arm in columns.arm]
    own = zip(columns.clock, columns.happened, strict=True)
    is_told_when = any(happened is not None for happened in columns.happened)
    decided = state.engine.adopt_many(
        columns.context,
        state.arms.offered(columns.available, state.arms.off),
        columns.clock,
        times=[clock if happened is None else happened for clock, happened in own] if is_told_when else None,
        arms=arms,
        costs=columns.cost,
        who=None if persons is None else [who_for(state, event) for event in persons],
    )
    numbers = decided["number"].tolist()
    played = tuple(None if arm < 0 else number for arm, number in zip(arms, numbers, strict=True))
    if tuple(decided["round"].tolist()) != columns.round or played != columns.number:
        first, last = columns.sequence[0], columns.sequence[-1]
        raise BrokenLog(f"events {first} to {last}: rounds or numbers do not follow")
    state.advance_all(columns)
    state.round = columns.round[-1]
    for (arm, reason), count in Counter(zip(columns.arm, columns.reason, strict=True)).items():
        if arm is None:
            state.counts.skip(reason, count)
        else:
            state.counts.play(arm, reason, count)
    state.reserve(columns.arm, columns.cost)
    return True
