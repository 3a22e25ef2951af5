"""From arrivals to drafts of decisions; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from doral.live.decision import Decision, make_decision
from doral.live.drafts import Planned, moment
from doral.live.errors import KeyReused
from doral.live.events import DECIDED, Event
from doral.live.fold import Fold
from doral.live.requests import ArrivalRequest
from doral.live.storage.contract import Log


def plan_decision(log: Log, fold: Fold, arrival: ArrivalRequest, writer: int) -> Planned[Decision]:
    """One decision; the short way, for it is asked most."""
    if arrival.key is not None and log.by_keys((arrival.key,)):
        drafts, answer_all = plan_decisions(log, fold, [arrival], writer)
        return drafts, lambda events: answer_all(events)[0]
    context, available = _numbers(fold, arrival)
    clock, at = moment(fold, arrival.at, time.time())
    fold.refuse_if_closed()
    head = (fold.sequence + 1, DECIDED, clock, at, writer, arrival.key)
    draft = Event(*head, context=context, available=available)
    names = fold.names
    return [draft], lambda events: make_decision(names, events[0])


def plan_decisions(log: Log, fold: Fold, arrivals: Sequence[ArrivalRequest], writer: int) -> Planned[list[Decision]]:
    """Decisions in their order; those whose keys are known are only looked up."""
    keys = [arrival.key for arrival in arrivals if arrival.key is not None]
    known = log.by_keys(keys) if keys else {}
    drafts: list[Event] = []
    planned: dict[str, int] = {}
    places: list[int | Event] = []  # per arrival: an event of the log, or the index of a draft
    wall, clock = time.time(), fold.clock
    for arrival in arrivals:
        key, index = arrival.key, len(drafts)
        context, available = _numbers(fold, arrival)
        if key is not None and (key in known or key in planned):
            place = known[key] if key in known else planned[key]
            _check_same(fold, key, context, place if isinstance(place, Event) else drafts[place])
            places.append(place)
            continue
        reading, at = moment(fold, arrival.at, wall, index)
        clock = max(clock, reading)
        head = (fold.sequence + 1 + index, DECIDED, clock, at, writer, key)
        drafts.append(Event(*head, context=context, available=available))
        places.append(index)
        if key is not None:
            planned[key] = index
    if drafts:
        fold.refuse_if_closed()
    about = log.about(event.sequence for event in known.values()) if known else {}
    return drafts, lambda events: _decisions(fold, places, events, about)


def _numbers(fold: Fold, arrival: ArrivalRequest) -> tuple[int, bytes | None]:
    """Context and available arms, by number."""
    context = fold.problem.context_index(arrival.context)
    return context, None if arrival.available is None else fold.roster.mask(arrival.available)


def _check_same(fold: Fold, key: str, context: int, before: Event) -> None:
    """A key that was used before must have been used for the same context."""
    if before.context != context:
        said = fold.names.contexts[before.context or 0]
        raise KeyReused(f"key = {key[2:]!r}: was used before for context {said!r}")


def _decisions(
    fold: Fold,
    places: Sequence[int | Event],
    events: Sequence[Event],
    about: Mapping[int, Sequence[Event]],
) -> list[Decision]:
    names = fold.names
    return [
        make_decision(names, place, about.get(place.sequence, ()), fold.expired_upto)
        if isinstance(place, Event)
        else make_decision(names, events[place])
        for place in places
    ]
