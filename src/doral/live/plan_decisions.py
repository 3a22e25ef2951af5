"""From arrivals to drafts of decisions; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from doral.live.decision import Decision, make_decision
from doral.live.drafts import Planned, moment
from doral.live.errors import KeyReused
from doral.live.events import Event, arrival
from doral.live.fold import Fold
from doral.live.requests import ArrivalRequest
from doral.live.storage.contract import Log


def plan_decision(log: Log, fold: Fold, asked: ArrivalRequest, writer: int) -> Planned[Decision]:
    """One decision; the short way, for it is asked most."""
    if asked.key is not None and log.by_keys((asked.key,)):
        drafts, answer_all = plan_decisions(log, fold, [asked], writer)
        return drafts, lambda events: answer_all(events)[0]
    context = fold.problem.context_index(asked.context)
    available = None if asked.available is None else fold.roster.mask(asked.available)
    clock, at = moment(fold, asked.at, time.time())
    fold.refuse_if_closed()
    draft = arrival(fold.sequence + 1, clock, at, writer, asked.key, context, available)
    names = fold.names
    return [draft], lambda events: make_decision(names, events[0])


def plan_decisions(log: Log, fold: Fold, arrivals: Sequence[ArrivalRequest], writer: int) -> Planned[list[Decision]]:
    """Decisions in their order; those whose keys are known are only looked up."""
    keys = [asked.key for asked in arrivals if asked.key is not None]
    known = log.by_keys(keys) if keys else {}
    drafts: list[Event] = []
    planned: dict[str, int] = {}
    places: list[int | Event] = []  # per arrival: an event of the log, or the index of a draft
    context_index = fold.problem.context_index
    wall, clock = time.time(), fold.clock
    for asked in arrivals:
        key, index = asked.key, len(drafts)
        context = context_index(asked.context)
        available = None if asked.available is None else fold.roster.mask(asked.available)
        if key is not None and (key in known or key in planned):
            place = known[key] if key in known else planned[key]
            _check_same(fold, key, context, place if isinstance(place, Event) else drafts[place])
            places.append(place)
            continue
        reading, at = moment(fold, asked.at, wall, index)
        clock = max(clock, reading)
        drafts.append(arrival(fold.sequence + 1 + index, clock, at, writer, key, context, available))
        places.append(index)
        if key is not None:
            planned[key] = index
    if drafts:
        fold.refuse_if_closed()
    about = log.about(event.sequence for event in known.values()) if known else {}
    return drafts, lambda events: _decisions(fold, places, events, about)


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
