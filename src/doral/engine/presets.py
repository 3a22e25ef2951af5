"""Policies by name. Each is a choice of pieces of the one engine; a new one is a new line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from doral import _check
from doral.engine.options import PolicyOptions, check_option_names
from doral.errors import InvalidValue, UnknownName

_RACING: Mapping[str, Any] = {}  # the defaults of PolicyOptions are DORAL
_PLAIN: Mapping[str, Any] = {"screening": "none", "learner": "thinned", "return_probability": "one"}

# The paper's text as printed, wherever it can run at all.
_PRINTED_RACE: Mapping[str, Any] = {
    "acceptance": "printed",
    "baskets": "printed",
    "cutoff_over": "all",
    "min_answers": 1,
    "learner": "thinned",
    "window_bias": True,
    "bonus": "printed",
    "choice": "unweighted",
    "return_by": "cutoff",
    "rate": "printed",
}

# One stage: learn and earn at once (docs/beyond.md).
_ON_THE_FLY: Mapping[str, Any] = {
    "screening": "none",
    "cutoff": "adaptive",
    "cutoff_share": 1.0,
    "learner": "auto",
    "prior": "cells",
    "bonus": "ahead",
    "start_share": 0.05,
    "pending": "expected",
    "return_optimism": 0.7,
    "curves_by": "context",
    "dropping": "certified",
    "until_end": True,
    "cost": "learned",
}

# Rivals beyond the paper's.
_WAITING: Mapping[str, Any] = {"screening": "none", "cutoff": "none", "return_probability": "one"}

_CORRECTED: Mapping[str, Mapping[str, Any]] = {
    "doral-otf": _ON_THE_FLY,
    "doral-ids": {**_ON_THE_FLY, "sampling": "directed"},
    "doral": _RACING,
    "d-alp": {**_RACING, "return_probability": "one"},
    "d-linucb": {**_PLAIN, "pacing": "greedy"},
    "random": {**_PLAIN, "pacing": "coin"},
    "wait-linucb": _WAITING,
    "d-lints": {**_WAITING, "cutoff": None, "prior": "noise", "sampling": "thompson"},
    "eva": {
        **_WAITING,
        "features": "none",
        "prior": "shared",
        "bonus": "calibrated",
        "pending": "expected",
        "rate": "period",
    },
    # No rival: it knows what nobody can, but for what is paid.
    "oracle": {**_WAITING, "return_probability": "estimated", "sampling": "oracle", "cost": "learned"},
}
_LITERAL: Mapping[str, Mapping[str, Any]] = {
    "doral": {**_PRINTED_RACE, "return_probability": "oracle"},
    "d-alp": {**_PRINTED_RACE, "return_probability": "one"},
    "d-linucb": {**_CORRECTED["d-linucb"], "bonus": "printed"},
    "random": {**_CORRECTED["random"], "bonus": "printed", "rate": "printed"},
}
_READINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"corrected": _CORRECTED, "literal": _LITERAL}

PRESETS = tuple(_CORRECTED)
POLICY_NAMES = (*PRESETS, *(f"{preset}/literal" for preset in _LITERAL))


def policy(name: str, /, *, reading: str | None = None, label: str | None = None, **options: Any) -> PolicyOptions:
    """What `doral.policy` makes, of arguments that come from anywhere: for the library itself."""
    return policy_of(name, options, reading=reading, label=label)


def policy_of(
    name: str, options: Mapping[str, Any], *, reading: str | None = None, label: str | None = None
) -> PolicyOptions:
    """A policy by name; here names and options are checked."""
    if not isinstance(name, str):
        raise InvalidValue("policy", name, f"must be one of {', '.join(POLICY_NAMES)}")
    preset, _, suffix = name.partition("/")
    if preset not in PRESETS or suffix not in ("", "literal", "corrected"):
        raise UnknownName("policy", name, POLICY_NAMES)
    if reading is None:
        reading = suffix or "corrected"
    elif not _check.is_among(reading, _READINGS):
        raise UnknownName("reading", reading, _READINGS)
    elif suffix and suffix != reading:
        raise InvalidValue("reading", reading, f"contradicts the name {name!r}; give one of the two")
    if preset not in _READINGS[reading]:
        raise InvalidValue("reading", reading, f"{preset} is not the paper's; it has no literal reading")
    check_option_names(options)
    shown = preset if reading == "corrected" else f"{preset}/{reading}"
    made = PolicyOptions(**{**_READINGS[reading][preset], **options, "name": shown})  # checked before it is named
    changed = ", ".join(f"{option}={value}" for option, value in sorted(options.items()))
    if label is not None:
        return replace(made, name=_check.name("label", label))
    return replace(made, name=f"{shown}({changed})") if changed else made
