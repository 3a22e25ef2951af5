"""Events of a log as they are told to those who follow: kinds in words, names in place of numbers.

What is known of people is not among it, and a key only as long as it is in the log.
"""

from __future__ import annotations

import json
from typing import Any

from doral.live.decision import Names, make_id
from doral.live.events import (
    ANSWERED,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CLOCK_SET,
    CLOSED,
    CORRECTED,
    CREATED,
    DECIDED,
    ENGINE_JOINED,
    EXPIRED,
    EXTENDED,
    FORGOTTEN,
    IS_PENDING,
    IS_SKIPPED,
    LEASE_ENDED,
    LEASED,
    MAKES_DECISION,
    NOTED,
    RECORDED,
    STATE_NAMES,
    TOPPED_UP,
    Event,
    known,
)
from doral.live.reasons import SHORT

KIND_WORDS = {
    CREATED: "created",
    DECIDED: "decided",
    ANSWERED: "answered",
    CORRECTED: "corrected",
    CANCELLED: "cancelled",
    EXPIRED: "expired",
    ARM_ADDED: "arm added",
    ARM_PAUSED: "arm paused",
    ARM_RESUMED: "arm resumed",
    ARM_RETIRED: "arm retired",
    TOPPED_UP: "topped up",
    EXTENDED: "extended",
    CLOSED: "closed",
    ENGINE_JOINED: "engine joined",
    RECORDED: "recorded",
    CLOCK_SET: "clock set back",
    FORGOTTEN: "forgotten",
    NOTED: "noted",
    LEASED: "leased",
    LEASE_ENDED: "lease ended",
}
_AS_THEY_ARE = ("cost", "round", "value", "price", "probability", "reward", "previous", "actual_cost", "delay")
_ABOUT_DECISIONS = (DECIDED, RECORDED, ANSWERED, CORRECTED, CANCELLED)


def told(event: Event, names: Names) -> dict[str, Any]:
    """The facts of an event; what it does not say is left out."""
    kind = event.kind
    found: dict[str, Any] = {
        "sequence": event.sequence,
        "kind": KIND_WORDS.get(kind, str(kind)),
        "written_at": event.at,
        "at": names.epoch + names.own_time(event),
        "key": None if event.key is None else event.key[2:],
    }
    if event.context is not None:
        found["context"] = names.contexts[event.context]
    if event.arm is not None and event.arm != names.nothing:
        found["arm"] = names.arms[event.arm]
    if kind in _ABOUT_DECISIONS:
        found |= _of_decision(event, names)
    elif kind == TOPPED_UP:
        found["amount"] = event.value
    elif kind == EXTENDED:
        said = json.loads(known(event.data))
        found |= {"until": names.epoch + said["until"]} if "until" in said else {"rounds": said["rounds"]}
    elif kind == ARM_ADDED:
        found["arm"] = json.loads(known(event.data))["name"]
    elif kind == EXPIRED:
        said = json.loads(known(event.data))
        found |= {"decisions": sum(count for _, _, count in said["expired"]), "is_released": bool(said["release"])}
    elif kind == FORGOTTEN:
        found["keys"] = len(json.loads(known(event.data)).get("events", ()))
    elif kind == LEASED:
        found["amount"] = float(json.loads(known(event.data))["amount"])
    elif kind == LEASE_ENDED:
        said = json.loads(known(event.data))
        found |= {"amount": float(said["left"]), "why": said["why"]}
    return {name: value for name, value in found.items() if value is not None}


def _of_decision(event: Event, names: Names) -> dict[str, Any]:
    makes = event.kind in MAKES_DECISION
    found = {name: getattr(event, name) for name in _AS_THEY_ARE}
    found["decision_id"] = make_id(names.tag, event.sequence if makes else known(event.decision))
    if event.reason is not None:
        found["reason"] = SHORT.get(event.reason, str(event.reason))
    state = event.state
    if state is None and makes:
        state = IS_SKIPPED if event.arm is None else IS_PENDING
    if state is not None:
        found["state"] = STATE_NAMES[state]
    if event.kind == RECORDED:
        found["cost"] = json.loads(known(event.data))["cost"]
    return found
