"""Problems and scenarios as written by hand: TOML or JSON, turned into plain values."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from doral import _check, delays
from doral.delays.laws import LAWS
from doral.errors import DoralError, InvalidValue, UnknownName, shown
from doral.logs.clock import Clock as LogClock
from doral.problem import Arm, Context, Problem

# --- values ----------------------------------------------------------------------------------------------------------

Clock: TypeAlias = Literal["seconds", "rounds"]

PROBLEM_KEYS, _ARM_KEYS, _CONTEXT_KEYS = (
    tuple(one.name for one in dataclasses.fields(kind)) for kind in (Problem, Arm, Context)
)
_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}.*", re.DOTALL)
_SECONDS = LogClock("seconds", "seconds")


@dataclass(frozen=True)
class ProblemValues:
    """A problem as plain values, and the date at which it ends, where it says one."""

    data: dict[str, Any]
    until: str | None


def check_keys(what: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """A misspelt key names itself and the nearest one."""
    for key in given:
        if key not in known:
            advice = str(UnknownName("key", key, known)).partition("; ")[2]
            raise InvalidValue(what, dict(given), f"has the unknown key {shown(key)}; {advice}")


def problem_values(value: object, *, clock: Clock) -> ProblemValues:
    """Return the problem in plain values. `clock` is what its numbers count: only seconds can be written as "14d"."""
    if not isinstance(value, Mapping):
        raise InvalidValue("problem", value, 'must be a mapping, {"arms": ..., "budget": ...}')
    check_keys("problem", value, PROBLEM_KEYS)
    data = dict(value)
    for key in ("arms", "budget"):
        if key not in data:
            raise InvalidValue("problem", data, f"lacks the key {key!r}")
    data["arms"] = _entries("arms", data["arms"], _ARM_KEYS, "cost")
    if data.get("contexts") is not None:
        data["contexts"] = _entries("contexts", data["contexts"], _CONTEXT_KEYS, "share")
        for one in data["contexts"]:
            if "deadline" in one:
                where = f"deadline of context {shown(one.get('name'))}"
                one["deadline"] = duration(where, one["deadline"], clock=clock)
    if isinstance(data.get("person"), Mapping):
        data["person"] = [{"name": name, "kind": kind} for name, kind in data["person"].items()]
    if isinstance(data.get("reserves"), Mapping):
        data["reserves"] = [
            [int(tier) if tier.strip().isdecimal() else tier, share] for tier, share in data["reserves"].items()
        ]
    date = None
    if isinstance(data.get("until"), str) and _DATE.fullmatch(data["until"]):
        date = data.pop("until").strip()
        if data.get("horizon") is not None:
            raise InvalidValue("until", date, f"and horizon = {shown(data['horizon'])} are two ends: give one of them")
    for key in ("deadline", "until"):
        if key in data:
            data[key] = duration(key, data[key], clock=clock)
    return ProblemValues(data, date)


def duration(field: str, value: Any, *, clock: Clock) -> Any:
    """Return a text such as "14d" or "36 hours" in seconds; other values stay, for the checks of the caller."""
    if not isinstance(value, str):
        return value
    if clock == "rounds":
        remedy = (
            "is a duration, and the clock counts rounds, one for each arrival: give a number of rounds; or count in "
            'seconds: without --clock rounds in a campaign, with "until": "56d" for horizon in a simulation'
        )
        raise InvalidValue(field, value, remedy)
    return _SECONDS.duration(field, value)


def _entries(field: str, value: object, known: Sequence[str], number: str) -> list[dict[str, Any]]:
    """Return objects of names, of objects, or of a mapping from name to `number` or object."""
    if isinstance(value, Mapping):
        value = [{"name": name, **(one if isinstance(one, Mapping) else {number: one})} for name, one in value.items()]
    remedy = (
        f'must be a list of names, a mapping from name to {number}, or objects such as {{"name": "a", "{number}": 1}}'
    )
    if not isinstance(value, list):
        raise InvalidValue(field, value, remedy)
    entries = []
    for one in value:
        entry = {"name": one} if isinstance(one, str) else one
        if not isinstance(entry, Mapping):
            example = f'must be a name or an object such as {{"name": "a", "{number}": 1}}'
            raise InvalidValue(field.removesuffix("s"), one, example)
        check_keys(field.removesuffix("s"), entry, known)
        entries.append(dict(entry))
    return entries


def names_of(items: Any) -> list[str]:
    """Of arms or contexts in plain values."""
    return [one["name"] for one in items or () if isinstance(one.get("name"), str)]


_LAWS: dict[str, Any] = {name.lower(): law for name, law in LAWS.items()}
_TIMES = ("mean", "minimum", "median", "scale", "delay", "values")  # of laws: what may be written as "3d"
_MOST_NESTED = 2 * delays.MAX_NESTED_LAWS


def scenario_values(value: Mapping[str, Any], *, known: Sequence[str]) -> dict[str, Any]:
    """The scenario in plain values; `known` are its keys."""
    check_keys("scenario", value, known)
    data = dict(value)
    clock = clock_of(data.get("problem"))
    problem = problem_values(data.get("problem"), clock=clock)
    if problem.until is not None:
        remedy = 'is a date; a simulation asks how long it takes, as in "until": "56d"'
        raise InvalidValue("until", problem.until, remedy)
    data["problem"] = Problem.from_dict(problem.data)  # here: what is wrong with it says less of what follows
    contexts, arms = names_of(problem.data.get("contexts")), names_of(problem.data["arms"])
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
    check_keys(kind.__name__, given, fields)
    made: dict[str, Any] = {"type": kind.__name__}
    for name, field in fields.items():
        if name not in given:
            if field.default is dataclasses.MISSING:
                raise InvalidValue(f"{name} of {kind.__name__}", None, "is missing")
            made[name] = field.default
            continue
        one = given[name]
        if isinstance(one, Mapping):
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
    if not isinstance(value, Mapping):
        return {}
    rows = _check.by_name(field, value, contexts, kind="context")
    for i, name in enumerate(contexts):
        where = f"{field} of context {shown(name)}"
        if isinstance(rows[i], Mapping):
            rows[i] = _check.by_name(where, rows[i], arms, kind="arm")
            rows[i] = [
                _check.finite_number(f"{where}, arm {shown(arm)}", one) for arm, one in zip(arms, rows[i], strict=True)
            ]
        elif isinstance(rows[i], str):
            raise InvalidValue(where, rows[i], "must be a number, or one for each arm")
    return {field: rows}


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


FIELD = "problem file"


@dataclass(frozen=True)
class ReadProblem:
    """A problem, and the date at which it ends, where the file says one."""

    problem: Problem
    until: str | None


def plain_problem(data: Mapping[str, Any], *, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Make a problem of plain values; errors name the value. `until` replaces the end that they give."""
    found = problem_values(data, clock="rounds" if clock == "rounds" else "seconds")
    date = until or found.until
    if date is not None and found.data.get("until") is None and found.data.get("horizon") is None:
        found.data["until"] = 1.0  # the date says how long it is
    return ReadProblem(Problem.from_dict(found.data), date)


def problem_of(data: object, *, source: str, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Of what JSON holds: a problem, or a scenario with one. `until` takes the place of the end that it says."""
    if isinstance(data, Mapping) and "problem" in data and "arms" not in data:
        data = data["problem"]  # the rest is for simulations
    if not isinstance(data, Mapping):
        raise InvalidValue(FIELD, source, "must hold a problem with arms and a budget, as `doral init` writes it")
    try:
        return plain_problem(data, clock=clock, until=until)
    except DoralError as error:
        raise InvalidValue(FIELD, source, str(error)) from None


# --- files -----------------------------------------------------------------------------------------------------------

MAX_BYTES = 2**30  # a file of this size is something else
_STRING = r'"(?:\\.|[^"\\\n])*"?'
_COMMENTS = re.compile(rf"{_STRING}|(?://|#)[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|(?<![\[{{,:\s])(\s*),(?=\s*[}}\]])")


def read_file(field: str, path: Path) -> Any:
    """Read a file, TOML where its name ends so, else JSON; `field` is what messages call it."""
    if path.is_dir():
        raise InvalidValue(field, str(path), "is a folder; name a file")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidValue(field, str(path), f"is larger than {MAX_BYTES // 2**20:,} MiB; is it the right file?")
        content = path.read_bytes()
    except OSError as error:
        missing = "; `doral init` writes one to start from" if isinstance(error, FileNotFoundError) else ""
        raise InvalidValue(field, str(path), f"cannot be read: {error.strerror or error}{missing}") from None
    return read_bytes(field, str(path), content)


def read_bytes(field: str, source: str, content: bytes) -> Any:
    """Read the content of a file; `source` is its name."""
    kind = "TOML" if source.lower().endswith(".toml") else "JSON"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(field, source, f"is not {kind}: no text in UTF-8 ({error.reason})") from None
    try:
        found = _dates_as_text(tomllib.loads(text)) if kind == "TOML" else parse_json(text)
    except InvalidValue as error:
        raise InvalidValue(field, source, f"{error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(field, source, f"is not TOML: {error}") from None
    except json.JSONDecodeError as error:
        if not _without_comments(text).strip():
            remedy = "is not JSON: it is empty; `doral init` writes one to start from"
            raise InvalidValue(field, source, remedy) from None
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidValue(field, source, f"is not JSON: {error.msg}, {where}{_hint(text, error.pos)}") from None
    except RecursionError:
        raise InvalidValue(field, source, f"is not {kind} that can be read: it is nested too deeply") from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InvalidValue(field, source, f"is not {kind} that can be read: a number has too many digits") from None
    if kind == "TOML" and not found:
        raise InvalidValue(field, source, "is not TOML that can be used: it is empty; `doral init` writes one")
    return found


def _dates_as_text(value: Any) -> Any:
    """Write dates as text, as JSON has them."""
    if isinstance(value, dict):
        return {key: _dates_as_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_dates_as_text(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def parse_json(text: str) -> Any:
    """Parse JSON that may hold comments and a comma after the last entry; a key twice in one object is refused.

    >>> parse_json('{"url": "http://x", # a comment\\n "arms": ["a", "b",], }')
    {'url': 'http://x', 'arms': ['a', 'b']}
    """
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except json.JSONDecodeError:
        return json.loads(_without_comments(text), object_pairs_hook=_without_twins)


def _without_comments(text: str) -> str:
    """Put blanks in place of comments and of last commas, so that errors keep their lines and columns."""

    def blank(found: re.Match[str]) -> str:
        part = found[0]
        return part if part.startswith('"') else re.sub(r"[^\r\n]", " ", part)

    return _COMMAS.sub(blank, _COMMENTS.sub(blank, text))


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidValue("key", key, "appears twice in one object; keep one of them")
        found[key] = value
    return found


def _hint(text: str, position: int) -> str:
    """Return what is usually meant."""
    rest = text[position : position + 12].lstrip()
    if rest.startswith("'"):
        return ': write names and words in double quotes, "..."'
    for python, ours in (("True", "true"), ("False", "false"), ("None", "null")):
        if rest.startswith(python):
            return f": write {ours}"
    line = text[:position].rpartition("\n")[2] + text[position:].partition("\n")[0]
    return f": {shown(line.strip())}" if line.strip() else ""
