"""Events of a log as they are told to those who follow: kinds in words, names in place of numbers.

What is known of people is not among it, and a key only as long as it is in the log.
"""

from __future__ import annotations

from typing import Any

from doral.live.events import row as kinds
from doral.live.events.event import (
    STATE_NAMES,
    Answered,
    ArmAdded,
    ArmChanged,
    Corrected,
    Deciding,
    Event,
    Expired,
    Extended,
    Forgotten,
    Leased,
    LeaseEnded,
    Recorded,
    Settled,
    ToppedUp,
)
from doral.live.state.parts import Names, make_id
from doral.live.views.decision import SHORT

KIND_WORDS = {
    kinds.CREATED: "created",
    kinds.DECIDED: "decided",
    kinds.ANSWERED: "answered",
    kinds.CORRECTED: "corrected",
    kinds.CANCELLED: "cancelled",
    kinds.EXPIRED: "expired",
    kinds.ARM_ADDED: "arm added",
    kinds.ARM_PAUSED: "arm paused",
    kinds.ARM_RESUMED: "arm resumed",
    kinds.ARM_RETIRED: "arm retired",
    kinds.TOPPED_UP: "topped up",
    kinds.EXTENDED: "extended",
    kinds.PAUSED: "paused",
    kinds.RESUMED: "resumed",
    kinds.CLOSED: "closed",
    kinds.ENGINE_JOINED: "engine joined",
    kinds.RECORDED: "recorded",
    kinds.CLOCK_SET: "clock set back",
    kinds.FORGOTTEN: "forgotten",
    kinds.NOTED: "noted",
    kinds.LEASED: "leased",
    kinds.LEASE_ENDED: "lease ended",
}


def told(event: Event, names: Names) -> dict[str, Any]:
    """The facts of an event; what it does not say is left out."""
    place = event.place
    found: dict[str, Any] = {
        "sequence": event.sequence,
        "kind": KIND_WORDS.get(event.kind, str(event.kind)),
        "written_at": place.at,
        "at": names.epoch + names.own_time(event),
        "key": None if place.key is None else place.key[2:],
        **_facts(event, names),
    }
    return {name: value for name, value in found.items() if value is not None}


def _facts(event: Event, names: Names) -> dict[str, Any]:
    if isinstance(event, Deciding):
        return _of_decision(event, names)
    if isinstance(event, Settled):
        return _of_outcome(event, names)
    if isinstance(event, ToppedUp):
        return {"amount": event.amount}
    if isinstance(event, Extended):
        return {"rounds": event.rounds, "until": None if event.until is None else names.epoch + event.until}
    if isinstance(event, ArmAdded):
        return {"arm": event.arm.name}
    if isinstance(event, ArmChanged):
        return {"arm": names.arms[event.arm]}
    if isinstance(event, Expired):
        return {"decisions": event.n_decisions, "is_released": bool(event.is_released)}
    if isinstance(event, Forgotten):
        return {"keys": len(event.keys)}
    if isinstance(event, Leased):
        return {"amount": float(event.amount)}
    if isinstance(event, LeaseEnded):
        return {"amount": float(event.left), "why": event.why}
    return {}


def _of_decision(event: Deciding, names: Names) -> dict[str, Any]:
    choice = event.choice
    found = {
        "context": names.contexts[event.arrival.context],
        "arm": _arm(choice.arm, names),
        "decision_id": make_id(names.tag, event.sequence),
        "reason": SHORT.get(choice.reason, str(choice.reason)),
        "state": STATE_NAMES[event.state_then],
    }
    numbers = {name: getattr(choice, name) for name in ("cost", "round", "value", "price", "probability")}
    return {**found, **numbers, **({"cost": event.list_cost} if isinstance(event, Recorded) else {})}


def _of_outcome(event: Settled, names: Names) -> dict[str, Any]:
    about = event.about
    found = {
        "context": names.contexts[about.context],
        "arm": _arm(about.arm, names),
        "decision_id": make_id(names.tag, about.decision),
        "reason": SHORT.get(about.reason, str(about.reason)),
        "state": STATE_NAMES[event.settlement.state],
        "cost": about.cost,
        "actual_cost": event.settlement.actual_cost,
    }
    if isinstance(event, Answered | Corrected):
        found |= {"reward": event.reward, "delay": event.delay}
    if isinstance(event, Corrected):
        found["previous"] = event.previous
    return found


def _arm(arm: int | None, names: Names) -> str | None:
    return None if arm is None or arm == names.nothing else names.arms[arm]
