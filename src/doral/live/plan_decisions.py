"""From arrivals to drafts of decisions; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doral.live.chain import hash_key
from doral.live.decision import Decision, make_decision
from doral.live.drafts import Planned, Stamp
from doral.live.events import Event, arrival
from doral.live.fold import Fold
from doral.live.keys import check_same, used_keys
from doral.live.people import context_for, person_for
from doral.live.requests import ArrivalRequest
from doral.live.storage.contract import Log


def plan_decision(log: Log, fold: Fold, asked: ArrivalRequest, stamp: Stamp) -> Planned[Decision]:
    """One decision; the short way, for it is asked most."""
    if asked.key is not None and log.by_keys((hash_key(fold.salt, asked.key),)):
        drafts, answer_all = plan_decisions(log, fold, [asked], stamp)
        return drafts, lambda events: answer_all(events)[0]
    context, person = context_for(fold.problem, asked.context), person_for(fold.problem, asked.who)
    available = None if asked.available is None else fold.roster.mask(asked.available)
    clock, happened = stamp.moment(fold, asked.at)
    fold.refuse_if_closed()
    draft = arrival(
        fold.sequence + 1, clock, happened, stamp.wall, stamp.writer, asked.key, context, available,
        asked.who.weight, asked.who.deadline, person,
    )  # fmt: skip
    names = fold.names
    return [draft], lambda events: make_decision(names, events[0])


def plan_decisions(log: Log, fold: Fold, arrivals: Sequence[ArrivalRequest], stamp: Stamp) -> Planned[list[Decision]]:
    """Decisions in their order; those whose keys are known are only looked up."""
    used = used_keys(log, fold, (asked.key for asked in arrivals))
    drafts: list[Event] = []
    planned: dict[str, int] = {}
    places: list[int | Event] = []  # per arrival: an event of the log, or the index of a draft
    problem = fold.problem
    clock = fold.clock
    for asked in arrivals:
        key, index = asked.key, len(drafts)
        context, person = context_for(problem, asked.context), person_for(problem, asked.who)
        said = (asked.who.weight, asked.who.deadline, person)
        available = None if asked.available is None else fold.roster.mask(asked.available)
        if key is not None and (key in used or key in planned):
            happened = stamp.reading(fold, asked.at, clock)
            again = arrival(0, clock, happened, stamp.wall, stamp.writer, key, context, available, *said)
            place = used[key] if key in used else planned[key]
            check_same(place if isinstance(place, Event) else drafts[place], again, key)
            places.append(place)
            continue
        clock, happened = stamp.moment(fold, asked.at, index, clock)
        sequence = fold.sequence + 1 + index
        drafts.append(arrival(sequence, clock, happened, stamp.wall, stamp.writer, key, context, available, *said))
        places.append(index)
        if key is not None:
            planned[key] = index
    if drafts:
        fold.refuse_if_closed()
    about = log.about(event.sequence for event in used.values()) if used else {}
    return drafts, lambda events: _decisions(fold, places, events, about)


def _decisions(
    fold: Fold,
    places: Sequence[int | Event],
    events: Sequence[Event],
    about: Mapping[int, Sequence[Event]],
) -> list[Decision]:
    names = fold.names
    return [
        make_decision(names, place, about.get(place.sequence, ()), fold.expiries)
        if isinstance(place, Event)
        else make_decision(names, events[place])
        for place in places
    ]
