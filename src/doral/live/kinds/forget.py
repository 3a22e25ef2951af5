"""Keys, and the people of their decisions, that are erased.

Of a key its hash stays, so that it still answers as used; storing the event takes the text out of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from doral.errors import InvalidValue
from doral.live.events.event import (
    ANSWER_SCOPE,
    CHANGE_SCOPE,
    DECIDE_SCOPE,
    Deciding,
    Event,
    Forgotten,
    Settled,
)
from doral.live.events.row import hash_key
from doral.live.kinds.request import Request, granted, note, used_keys
from doral.live.runtime.clock import Stamp
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log


class Erased(NamedTuple):
    """What is erased, also what was so before."""

    n_keys: int  # that are erased now
    keys: list[int]  # events that have used one of the keys
    people: list[int]  # events that say, or said, whom one of their decisions is for


class Forget(Request[Erased]):
    """`own_key` is that of this request, and none of those that are erased."""

    def __init__(self, keys: Sequence[str], own_key: str | None) -> None:
        self.keys, self.own_key = keys, own_key

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        scoped = {scope + key: key for key in self.keys for scope in (DECIDE_SCOPE, ANSWER_SCOPE, CHANGE_SCOPE)}
        used = used_keys(log, state, scoped)
        unknown = set(self.keys) - {scoped[name] for name in used}
        if unknown:
            raise InvalidValue("key", min(unknown), "was never used in this campaign: is it spelt as it was given?")
        concerned = sorted(event.sequence for event in used.values())
        erased = sorted(event.sequence for event in used.values() if not event.is_keyless)
        people = _people(log, used.values()) if state.problem.person else {}
        known_ones = sorted(sequence for sequence, is_known in people.items() if is_known)
        asked = None
        if self.own_key is not None:
            hashes = sorted(hash_key(state.salt, key).hex() for key in set(self.keys))
            asked = blake2b("".join(hashes).encode(), digest_size=16).hexdigest()
        said = [Forgotten.KIND, asked]
        before = granted(log, state, self.own_key, said)
        n_erased = len(before.keys) if isinstance(before, Forgotten) else len(erased)
        found = Erased(n_erased, concerned, sorted(people))
        if before is not None:
            return (), found
        if not erased and not known_ones:
            return note(state, stamp, self.own_key, said), found
        place = stamp.place(state, self.own_key)
        return (Forgotten(place, tuple(erased), tuple(known_ones), asked),), found

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Erased:
        erased: Erased = found
        return erased


def _people(log: Log, used: Iterable[Event]) -> dict[int, bool]:
    """Return the events about the decisions of these that name a person, and whether they still do."""
    decisions = {event.about.decision if isinstance(event, Settled) else event.sequence for event in used}
    events: list[Event] = list(log.events(decisions).values())
    for later in log.about(decisions).values():
        events += later
    found: dict[int, bool] = {}
    for event in events:
        said = event.arrival if isinstance(event, Deciding) else event.about if isinstance(event, Settled) else None
        if said is not None and said.person_hash is not None:
            found[event.sequence] = said.person is not None
    return found


def apply_forgetting(state: CampaignState, event: Forgotten) -> Forgotten:
    """Keys, and what was known of people, were erased on purpose."""
    state.advance(event)
    state.erased.difference_update(event.keys)
    people = set(event.people)
    if not people <= state.faceless | state.forgotten:
        state.knows_forgotten = True
    state.forgotten |= people
    state.faceless -= people
    return event
