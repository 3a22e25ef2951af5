"""From keys that shall be forgotten to the draft that says so.

Of a key its hash stays, so that it still answers as used; appending the event takes the text out of the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from doral.errors import InvalidValue
from doral.live.drafts import Planned, Stamp
from doral.live.events import ANSWER_SCOPE, CHANGE_SCOPE, DECIDE_SCOPE, FORGOTTEN, Event
from doral.live.fold import Fold
from doral.live.keys import used_keys
from doral.live.storage.contract import Log


def plan_forgetting(log: Log, fold: Fold, keys: Sequence[str], stamp: Stamp) -> Planned[tuple[int, list[int]]]:
    """How many events lose their key, and all that have used one of these, also those that lost it before."""
    scoped = {scope + key: key for key in keys for scope in (DECIDE_SCOPE, ANSWER_SCOPE, CHANGE_SCOPE)}
    used = used_keys(log, fold, scoped)
    unknown = set(keys) - {scoped[name] for name in used}
    if unknown:
        raise InvalidValue("key", min(unknown), "was never used in this campaign: is it spelt as it was given?")
    concerned = sorted(event.sequence for event in used.values())
    erased = sorted(event.sequence for event in used.values() if event.key is not None)
    if not erased:
        return [], lambda _: (0, concerned)
    draft = Event(0, FORGOTTEN, 0.0, 0.0, 0, data=json.dumps({"events": erased}))
    return [stamp.put(draft, fold)], lambda _: (len(erased), concerned)
