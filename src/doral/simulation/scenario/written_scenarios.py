"""Scenarios as people write them by hand, turned into the plain values that `scenario_files.py` reads.

Delays read like Python, {"geometric": {"mean": 12}}; tables may go by names of contexts and arms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from doral import delays
from doral.errors import InvalidValue, UnknownName, shown
from doral.simulation.scenario import notation as written
from doral.simulation.scenario.notation import Clock, duration

_LAWS: dict[str, Any] = {
    law.__name__.lower(): law
    for law in (
        delays.Geometric,
        delays.Pareto,
        delays.Lognormal,
        delays.Weibull,
        delays.Exponential,
        delays.Fixed,
        delays.Empirical,
        delays.Never,
        delays.ByOutcome,
    )
}
_TIMES = ("mean", "minimum", "median", "scale", "delay", "values")  # of laws: what may be told as "3d"
_MOST_NESTED = 2 * delays.MAX_NESTED_LAWS


def scenario(value: Mapping[str, Any], *, known: Sequence[str]) -> dict[str, Any]:
    """The scenario in plain values; `known` are its keys."""
    written.check_keys("scenario", value, known)
    data = dict(value)
    clock = clock_of(data.get("problem"))
    problem = written.problem(data.get("problem"), clock=clock)
    if problem.until is not None:
        remedy = 'is a date; a simulation asks how long it takes, as in "until": "56d"'
        raise InvalidValue("until", problem.until, remedy)
    data["problem"] = problem.data
    contexts, arms = written.names_of(problem.data.get("contexts")), written.names_of(problem.data["arms"])
    if data.get("delays") is not None:
        data["delays"] = _delays(data["delays"], {*contexts, *arms}, clock=clock)
    for field in ("means", "paid"):
        data |= _table(field, data.get(field), contexts, arms)
    for field in ("theta", "baseline_means", "shares"):
        data |= _table(field, data.get(field), contexts, [])
    if data.get("arrivals") is not None:
        data["arrivals"] = _arrivals(data["arrivals"], clock=clock)
    return data


def clock_of(problem: object) -> Clock:
    """Rounds, unless the problem ends after a time."""
    return "rounds" if not isinstance(problem, Mapping) or problem.get("until") is None else "seconds"


def _delays(value: Any, names: set[str], *, clock: Clock, levels_left: int = _MOST_NESTED) -> Any:
    """A law for all, a list by arm, or mappings by context and arm."""
    if levels_left == 0:
        raise InvalidValue("delays", value, "are nested too deeply")
    if isinstance(value, list):
        return [_delays(one, names, clock=clock, levels_left=levels_left - 1) for one in value]
    if not isinstance(value, Mapping):
        raise InvalidValue("delays", value, 'must be delay laws, such as {"geometric": {"mean": 12}}')
    if isinstance(value.get("type"), str) or not (set(value) <= names):
        return _law(value, names, clock=clock, levels_left=levels_left)
    return {name: _delays(one, names, clock=clock, levels_left=levels_left - 1) for name, one in value.items()}


def _law(value: Mapping[str, Any], names: set[str], *, clock: Clock, levels_left: int = _MOST_NESTED) -> Any:
    """One law: {"type": "Geometric", "mean": 12}, {"geometric": {"mean": 12}} or {"geometric": 12}."""
    if levels_left == 0:
        raise InvalidValue("delays", value, "are nested too deeply")
    if isinstance(value.get("type"), str):
        word, given = value["type"], {name: one for name, one in value.items() if name != "type"}
    elif len(value) == 1:
        ((word, inner),) = value.items()
        kind = _LAWS.get(_plain(word))
        first = dataclasses.fields(kind)[0].name if kind else ""
        given = dict(inner) if isinstance(inner, Mapping) else {first: inner}
    else:
        missing = sorted(set(value) - names)
        raise UnknownName("arm or context in delays", missing[0], sorted(names))
    kind = _LAWS.get(_plain(word))
    if kind is None:
        known = [law.__name__ for law in _LAWS.values()]
        if "type" in value:
            raise UnknownName("delay law", word, known)
        raise UnknownName("delay law, arm or context in delays", word, [*known, *sorted(names)])
    fields = {one.name: one for one in dataclasses.fields(kind)}
    written.check_keys(kind.__name__, given, fields)
    made: dict[str, Any] = {"type": kind.__name__}
    for name, field in fields.items():
        if name not in given:
            if field.default is dataclasses.MISSING:
                raise InvalidValue(f"{name} of {kind.__name__}", None, "is missing")
            made[name] = field.default
            continue
        one = given[name]
        if isinstance(one, Mapping) and "packed" not in one:
            one = _law(one, set(), clock=clock, levels_left=levels_left - 1)
        elif name in _TIMES:
            label = f"{name} of {kind.__name__}"
            several = isinstance(one, list)
            one = [duration(label, each, clock=clock) for each in one] if several else duration(label, one, clock=clock)
        made[name] = one
    return made


def _plain(word: object) -> str:
    """by_outcome, by-outcome and ByOutcome are the same."""
    return word.replace("_", "").replace("-", "").lower() if isinstance(word, str) else ""


def _table(field: str, value: Any, contexts: list[str], arms: list[str]) -> dict[str, Any]:
    """Rows by context, and entries by arm, in the order of the problem; what goes by no name stays as it is."""
    if not isinstance(value, Mapping) or "packed" in value:
        return {}
    rows = _in_order(field, value, "context", contexts)
    return {
        field: [
            _in_order(f"{field} of context {shown(name)}", row, "arm", arms) if isinstance(row, Mapping) else row
            for name, row in zip(contexts, rows, strict=True)
        ]
    }


def _in_order(field: str, value: Mapping[str, Any], what: str, names: list[str]) -> list[Any]:
    for name in value:
        if name not in names:
            raise UnknownName(f"{what} in {field}", name, names)
    for name in names:
        if name not in value:
            raise InvalidValue(field, dict(value), f"lacks {what} {shown(name)}")
    return [value[name] for name in names]


def _arrivals(value: Any, *, clock: Clock) -> Any:
    """A number alone is that of `Arrivals`; a day has 24 hours where the clock counts seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = {"number": value}
    if not isinstance(value, Mapping):
        return value
    data = dict(value)
    data.setdefault("type", "Calendar" if "times" in data else "Arrivals")
    if "day" in data:
        data["day"] = duration("day of arrivals", data["day"], clock=clock)
    elif clock == "seconds" and ("hours" in data or "weekdays" in data):
        data["day"] = 86_400.0
    if isinstance(data.get("bursts"), Mapping) and "length" in data["bursts"]:
        length = duration("length of a burst", data["bursts"]["length"], clock=clock)
        data["bursts"] = {**data["bursts"], "length": length}
    return data
