"""Problems as people write them by hand, turned into the plain values that `Problem.from_dict` reads.

Everything that Python accepts has a form in JSON: names in place of arms and contexts, mappings from name to share or
cost, durations such as "14d", dates. What `to_dict` writes comes out as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from doral.errors import InvalidValue, UnknownName, shown
from doral.log.clock import Clock as LogClock

Clock: TypeAlias = Literal["seconds", "rounds"]

PROBLEM_KEYS = (
    "arms",
    "contexts",
    "budget",
    "horizon",
    "deadline",
    "feedback",
    "reserves",
    "reward_range",
    "counted",
    "baseline",
    "paid",
    "return_at_least",
    "reserve",
    "until",
    "expected_arrivals",
    "person",
    "missing",
)
_ARM_KEYS = ("name", "features", "cost")
_CONTEXT_KEYS = ("name", "share", "weight", "deadline", "tier")
_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}.*", re.DOTALL)
_SECONDS = LogClock("seconds", "seconds")


@dataclass(frozen=True)
class WrittenProblem:
    """A problem as plain values, and the date at which it ends, where it says one."""

    data: dict[str, Any]
    until: str | None


def check_keys(what: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """A misspelt key names itself and the nearest one."""
    for key in given:
        if key not in known:
            advice = str(UnknownName("key", key, known)).partition("; ")[2]
            raise InvalidValue(what, dict(given), f"has the unknown key {shown(key)}; {advice}")


def problem(value: object, *, clock: Clock) -> WrittenProblem:
    """The problem in plain values. `clock` is what its numbers count: only seconds can be told as "14d"."""
    if not isinstance(value, Mapping):
        raise InvalidValue("problem", value, 'must be a mapping, {"arms": ..., "budget": ...}')
    check_keys("problem", value, PROBLEM_KEYS)
    data = dict(value)
    for key in ("arms", "budget"):
        if key not in data:
            raise InvalidValue("problem", data, f"lacks the key {key!r}")
    data["arms"] = _arms(data["arms"])
    if data.get("contexts") is not None:
        data["contexts"] = _contexts(data["contexts"], clock=clock)
    if isinstance(data.get("person"), Mapping):
        data["person"] = [{"name": name, "kind": kind} for name, kind in data["person"].items()]
    if isinstance(data.get("reserves"), Mapping):
        data["reserves"] = [[_tier(tier), share] for tier, share in data["reserves"].items()]
    date = None
    if isinstance(data.get("until"), str) and _DATE.fullmatch(data["until"]):
        date = data.pop("until").strip()
        if data.get("horizon") is not None:
            raise InvalidValue("until", date, f"and horizon = {shown(data['horizon'])} are two ends: give one of them")
    for key in ("deadline", "until"):
        if key in data:
            data[key] = duration(key, data[key], clock=clock)
    return WrittenProblem(data, date)


def duration(field: str, value: Any, *, clock: Clock) -> Any:
    """A text as a number of seconds, "14d" or "36 hours"; whatever else is checked by those who use it."""
    if not isinstance(value, str):
        return value
    if clock == "rounds":
        remedy = (
            "is a duration, and the clock counts rounds, one for each arrival: give a number of rounds; or count in "
            'seconds: without --clock rounds in a campaign, with "until": "56d" for horizon in a simulation'
        )
        raise InvalidValue(field, value, remedy)
    return _SECONDS.duration(field, value)


def _arms(value: object) -> Any:
    """Objects, names, or a mapping from name to cost or object."""
    if isinstance(value, Mapping):
        value = [{"name": name, **(one if isinstance(one, Mapping) else {"cost": one})} for name, one in value.items()]
    if not isinstance(value, list):
        raise InvalidValue("arms", value, 'must be a list of names or of objects such as {"name": "a", "cost": 4}')
    made = [{"name": one} if isinstance(one, str) else one for one in value]
    for one in made:
        if not isinstance(one, Mapping):
            raise InvalidValue("arm", one, 'must be a name or an object such as {"name": "a", "cost": 4}')
        check_keys("arm", one, _ARM_KEYS)
    return made


def _contexts(value: object, *, clock: Clock) -> Any:
    """Objects, names, or a mapping from name to share or object."""
    if isinstance(value, Mapping):
        value = [{"name": name, **(one if isinstance(one, Mapping) else {"share": one})} for name, one in value.items()]
    if not isinstance(value, list):
        raise InvalidValue("contexts", value, 'must be names, a mapping from name to share, or objects with a "name"')
    made = []
    for one in value:
        given = {"name": one} if isinstance(one, str) else one
        if not isinstance(given, Mapping):
            raise InvalidValue("context", one, 'must be a name or an object such as {"name": "adult", "share": 0.7}')
        check_keys("context", given, _CONTEXT_KEYS)
        given = dict(given)
        if "deadline" in given:
            field = f"deadline of context {shown(given.get('name'))}"
            given["deadline"] = duration(field, given["deadline"], clock=clock)
        made.append(given)
    return made


def _tier(word: str) -> Any:
    """Keys of JSON are texts, tiers are numbers."""
    return int(word) if word.strip().isdecimal() else word


def names_of(items: Any) -> list[str]:
    """Of arms or contexts in plain values."""
    return [one["name"] for one in items or () if isinstance(one.get("name"), str)]
