"""From keys that shall be forgotten to the draft that says so.

Of a key its hash stays, so that it still answers as used; appending the event takes the text out of the log. With a key
goes all that is known of the people whom its decisions were for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from doral.errors import InvalidValue
from doral.live.drafts import Planned, Stamp
from doral.live.events import ANSWER_SCOPE, CHANGE_SCOPE, DECIDE_SCOPE, FORGOTTEN, Event
from doral.live.fold import Fold
from doral.live.keys import used_keys
from doral.live.storage.contract import Log


class Forgotten(NamedTuple):
    """What is erased, also what was so before."""

    n_keys: int  # that are erased now
    keys: list[int]  # events that have used one of the keys
    people: list[int]  # events that say, or said, who one of their decisions is for


def plan_forgetting(log: Log, fold: Fold, keys: Sequence[str], stamp: Stamp) -> Planned[Forgotten]:
    scoped = {scope + key: key for key in keys for scope in (DECIDE_SCOPE, ANSWER_SCOPE, CHANGE_SCOPE)}
    used = used_keys(log, fold, scoped)
    unknown = set(keys) - {scoped[name] for name in used}
    if unknown:
        raise InvalidValue("key", min(unknown), "was never used in this campaign: is it spelt as it was given?")
    concerned = sorted(event.sequence for event in used.values())
    erased = sorted(event.sequence for event in used.values() if event.key is not None)
    people = _people(log, used.values()) if fold.problem.person else []
    known_ones = [event.sequence for event in people if event.person is not None]
    found = Forgotten(len(erased), concerned, [event.sequence for event in people])
    if not erased and not known_ones:
        return [], lambda _: found
    said = {"events": erased, **({"people": known_ones} if known_ones else {})}
    draft = Event(0, FORGOTTEN, 0.0, 0.0, 0, data=json.dumps(said))
    return [stamp.put(draft, fold)], lambda _: found


def _people(log: Log, used: Iterable[Event]) -> list[Event]:
    """All events about the decisions that these belong to, as far as they say who those are for."""
    decisions = {event.sequence if event.decision is None else event.decision for event in used}
    events = list(log.events(decisions).values())
    for later in log.about(decisions).values():
        events += later
    return sorted(event for event in events if event.person_hash is not None)
