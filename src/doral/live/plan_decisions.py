"""From arrivals to drafts of decisions; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

from collections.abc import Sequence

from doral.errors import DoralError
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
    """Decisions in their order, all or none; those whose keys are known are only looked up."""
    batch = _Batch(log, fold, arrivals, stamp)
    places = [batch.add(asked) for asked in arrivals]
    return batch.drafts, lambda events: [batch.decision(place, events) for place in places]


def plan_decisions_each(
    log: Log, fold: Fold, arrivals: Sequence[ArrivalRequest], stamp: Stamp
) -> Planned[list[Decision | DoralError]]:
    """The same, and what is wrong with one does not keep the others out: its result is the error."""
    batch = _Batch(log, fold, arrivals, stamp)
    places: list[int | Event | DoralError] = []
    for asked in arrivals:
        try:
            places.append(batch.add(asked))
        except DoralError as error:  # nothing is read any more: the store is not to blame
            places.append(error)
    return batch.drafts, lambda events: [
        place if isinstance(place, DoralError) else batch.decision(place, events) for place in places
    ]


class _Batch:
    """Drafts of decisions, one after the other."""

    def __init__(self, log: Log, fold: Fold, arrivals: Sequence[ArrivalRequest], stamp: Stamp) -> None:
        self.drafts: list[Event] = []
        self._fold, self._stamp, self._clock = fold, stamp, fold.clock
        self._used = used_keys(log, fold, (asked.key for asked in arrivals))
        self._about = log.about(event.sequence for event in self._used.values()) if self._used else {}
        self._planned: dict[str, int] = {}

    def add(self, asked: ArrivalRequest) -> int | Event:
        """An event of the log, or the index of a draft; one that is refused leaves no trace."""
        fold, stamp, drafts = self._fold, self._stamp, self.drafts
        key, index = asked.key, len(drafts)
        context, person = context_for(fold.problem, asked.context), person_for(fold.problem, asked.who)
        said = (asked.who.weight, asked.who.deadline, person)
        available = None if asked.available is None else fold.roster.mask(asked.available)
        if key is not None and (key in self._used or key in self._planned):
            happened = stamp.reading(fold, asked.at, self._clock)
            again = arrival(0, self._clock, happened, stamp.wall, stamp.writer, key, context, available, *said)
            place = self._used[key] if key in self._used else self._planned[key]
            check_same(place if isinstance(place, Event) else drafts[place], again, key)
            return place
        clock, happened = stamp.moment(fold, asked.at, index, self._clock)
        fold.refuse_if_closed()
        sequence = fold.sequence + 1 + index
        drafts.append(arrival(sequence, clock, happened, stamp.wall, stamp.writer, key, context, available, *said))
        self._clock = clock
        if key is not None:
            self._planned[key] = index
        return index

    def decision(self, place: int | Event, events: Sequence[Event]) -> Decision:
        names = self._fold.names
        if isinstance(place, Event):
            return make_decision(names, place, self._about.get(place.sequence, ()), self._fold.expiries)
        return make_decision(names, events[place])
