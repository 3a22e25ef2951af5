"""Values on the wire: decisions and ledgers as JSON, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from doral.live.views.decision import Decision

_DECISION_FIELDS = tuple(one.name for one in dataclasses.fields(Decision))
_all_fields = attrgetter(*_DECISION_FIELDS)  # in one step: it is done for every decision that is sent


def decision_to_dict(decision: Decision) -> dict[str, Any]:
    """Every field, the delay, and the reason in a sentence."""
    found: dict[str, Any] = dict(zip(_DECISION_FIELDS, _all_fields(decision), strict=True))
    found["delay"], found["reason"] = decision.delay, decision.reason
    for name in ("features", "effects"):
        if found[name] is not None:
            found[name] = dict(found[name])
    if found["available"] is not None:
        found["available"] = list(found["available"])
    return found


def decision_from_dict(given: Mapping[str, Any]) -> Decision:
    """The decision that a service has sent; what a newer service says beyond this version's fields is passed over."""
    found = {name: given[name] for name in _DECISION_FIELDS if name in given}
    if found.get("available") is not None:
        found["available"] = tuple(found["available"])
    return Decision(**found)
