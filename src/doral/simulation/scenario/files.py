"""Scenarios as plain values for files, and back with every check made again."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral.delays import from_dict as law_from_dict
from doral.errors import DoralError, InvalidValue, shown
from doral.person import feature_from_dict, feature_to_dict
from doral.problem import Problem
from doral.simulation.scenario import text
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.notation import check_keys, scenario_values
from doral.simulation.scenario.people import BesideNothing, Crowd, Table
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.scenario.strata import Cut, Strata

READABLE = 400  # numbers: about a page; above, nobody reads them and a list takes several times the room
MAX_NUMBERS = 2**27  # of one array, a GiB
_KINDS = {"float64": "<f8", "int64": "<i8"}


def packed(array: NDArray[Any]) -> Any:
    """A list (of lists), in which None stands for what JSON has no number for; many numbers are compressed."""
    if array.size > READABLE:
        kind = "int64" if array.dtype.kind in "iu" else "float64"
        data = zlib.compress(np.ascontiguousarray(array, dtype=_KINDS[kind]).tobytes(), 6)
        return {"packed": base64.b64encode(data).decode(), "kind": kind, "shape": list(array.shape)}
    if array.dtype.kind in "iu" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array, None).tolist()  # type: ignore[call-overload]


def unpacked(field: str, value: object, *, nothing: float = math.nan) -> Any:
    """An array of what was packed, or a list as it is with `nothing` for None; other values as they are."""
    if isinstance(value, Mapping):
        return _decompressed(field, value)
    if isinstance(value, list):
        return [
            nothing if one is None else unpacked(field, one, nothing=nothing) if isinstance(one, list) else one
            for one in value
        ]
    return value


def _decompressed(field: str, value: Mapping[str, Any]) -> NDArray[Any]:
    remedy = "must be a list of numbers, or what to_dict() packed"
    if set(value) != {"packed", "kind", "shape"} or not isinstance(value["packed"], str):
        raise InvalidValue(field, value, remedy)
    kind, shape = value["kind"], value["shape"]
    is_shape = isinstance(shape, list) and all(isinstance(one, int) and 0 <= one <= MAX_NUMBERS for one in shape)
    if not isinstance(kind, str) or kind not in _KINDS or not is_shape or math.prod(shape) > MAX_NUMBERS:
        raise InvalidValue(field, {"kind": kind, "shape": shape}, remedy)
    n_bytes = 8 * math.prod(shape)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(value["packed"], validate=True), n_bytes + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InvalidValue(field, value["packed"], f"cannot be unpacked: {error}") from None
    if len(data) != n_bytes:
        raise InvalidValue(field, value["packed"], f"does not hold as many numbers as its shape says, {shape}")
    numbers = np.frombuffer(data, dtype=_KINDS[kind]).reshape(shape)
    return numbers.astype(np.int64 if kind == "int64" else np.float64)


def packed_words(words: NDArray[Any]) -> Any:
    """A list, with None for what is missing; of many, each once and their numbers."""
    if words.size <= READABLE:
        return [word or None for word in words.tolist()]
    levels, numbers = np.unique(words, return_inverse=True)
    return {"words": [word or None for word in levels.tolist()], "numbers": packed(numbers.ravel())}


def unpacked_words(field: str, value: object) -> Any:
    if not isinstance(value, Mapping) or set(value) != {"words", "numbers"}:
        return value
    words, numbers = value["words"], np.array(unpacked(field, value["numbers"]))
    is_right = isinstance(words, list) and numbers.ndim == 1 and numbers.dtype.kind == "i" and numbers.size > 0
    if not is_right or not (numbers.min() >= 0 and numbers.max() < len(words)):
        raise InvalidValue(field, value, "must be a list, or words and the number of everybody's among them")
    return [words[number] for number in numbers.tolist()]


def table_of(field: str, value: object) -> Floats | Any:
    """Numbers of any shape as an array; what is none stays, for those who check it."""
    found = unpacked(field, value)
    try:
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        return found


FORMAT = 1
_FORMAT = "scenario_format"
_PLAIN = {"features": "given", "noise": "gaussian", "noise_sd": 0.1, "phases": 1, "paid": "always"}
_OPTIONAL = (
    _FORMAT,
    "delays",
    "theta",
    "means",
    "baseline_means",
    "availability",
    "shares",
    "rows",
    "row_weights",
    "arrivals",
    "people",
    "classes",
    "speed",
    "frequencies",
    "strata",
    *_PLAIN,
)


def scenario_to_dict(scenario: Scenario) -> dict[str, Any]:
    """All that is true of it; laws that are functions cannot be written."""
    for field in ("people", "means", "paid", "speed", "frequencies"):
        _check_data(field, getattr(scenario, field))
    data: dict[str, Any] = {_FORMAT: FORMAT, "name": scenario.name, "problem": scenario.problem.to_dict()}
    rows = scenario.rows
    if rows is None:
        laws = [_plain_laws([law.to_dict() for law in laws]) for laws in scenario.delays]
        data["delays"] = laws[0] if len(laws) == 1 else dict(zip(scenario.problem.context_names, laws, strict=True))
        data |= _plain_means(scenario.means)
    else:
        names = ("reward", "delay", "cost", "weight", "starts")
        data["rows"] = {name: packed(getattr(rows, name)) for name in names if getattr(rows, name) is not None}
    if scenario.theta is not None:
        data["theta"] = packed(np.array(scenario.theta))
    for field, usual in _PLAIN.items():
        value = getattr(scenario, field)
        if not isinstance(value, str | int | float):  # chances of being paid
            data[field] = packed(np.array(value, dtype=np.float64))
        elif value != usual and not (field == "paid" and value == "by_row"):
            data[field] = value
    if scenario.availability is not None:
        data["availability"] = packed(np.array(scenario.availability))
    if scenario.people is None and not _says_who_comes(scenario.arrivals):
        data["shares"] = packed(scenario.true_shares)
    if scenario.arrivals is not None:
        data["arrivals"] = _plain_arrivals(scenario.arrivals)
    if isinstance(scenario.people, Crowd):
        data |= _plain_people(scenario, scenario.people)
    return data


def scenario_from_dict(data: Mapping[str, Any]) -> Scenario:
    """The scenario that `scenario_to_dict` wrote, with every check made again."""
    if not isinstance(data, Mapping):
        raise InvalidValue("scenario", data, "must be a mapping")
    known = ("name", "problem", *_OPTIONAL)
    check_keys("scenario", data, known)
    given = _check.keys("scenario", data, required=("name", "problem"), optional=_OPTIONAL)
    if given.pop(_FORMAT, FORMAT) != FORMAT:
        raise InvalidValue(_FORMAT, data[_FORMAT], f"must be {FORMAT}: a newer version of DORAL wrote this")
    try:
        return _from_dict(scenario_values(given, known=known))
    except DoralError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        # Whatever a stranger's file holds where something else was meant.
        raise InvalidValue("scenario", given["name"], f"cannot be made of these values: {error}") from error


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a TOML or JSON file; without a name, it has that of the file."""
    field = "scenario file"
    data = text.read(field, path)
    if not isinstance(data, Mapping):
        raise InvalidValue(field, str(path), "must hold a scenario, as Scenario.to_dict() and `doral init` write it")
    if "problem" not in data and ("arms" in data or "budget" in data):
        remedy = "holds a problem, and nothing that is true of it: add delays and means; `doral init` shows how"
        raise InvalidValue(field, str(path), remedy)
    try:
        return scenario_from_dict({"name": path.stem, **data})
    except DoralError as error:
        raise InvalidValue(field, str(path), f"does not hold a scenario: {error}") from None


def _check_data(field: str, value: object) -> None:
    """Complain about functions, and what may hold them."""
    beneath = (value.means, value.nothing) if isinstance(value, BesideNothing) else (value,)
    for one in beneath:
        if callable(one):
            remedy = "is a function, and a file holds data alone: give people and tables in its place"
            raise InvalidValue(field, one, remedy)


def _says_who_comes(arrivals: Arrivals | Calendar | None) -> bool:
    return isinstance(arrivals, Calendar) and arrivals.contexts is not None


def _plain_laws(laws: list[dict[str, Any]]) -> Any:
    """One for all arms where they are alike."""
    shrunk = [_shrunk_law(law) for law in laws]
    return shrunk[0] if all(law == shrunk[0] for law in shrunk) else shrunk


def _shrunk_law(law: dict[str, Any]) -> dict[str, Any]:
    """Many observed delays are packed."""
    found: dict[str, Any] = {}
    for name, value in law.items():
        if isinstance(value, dict):
            value = _shrunk_law(value)
        elif isinstance(value, list) and len(value) > READABLE:
            value = packed(np.array([math.inf if one is None else one for one in value]))
        found[name] = value
    return found


def _grown_law(law: Any) -> Any:
    if not isinstance(law, Mapping):
        return law
    grown = {name: _grown_law(value) for name, value in law.items()}
    if "packed" in grown:
        return [None if one == math.inf else one for one in unpacked("values of Empirical", law).tolist()]
    return grown


def _laws(value: Any) -> Any:
    """One for all, a list by arm, or mappings by context and arm."""
    if isinstance(value, Mapping):
        if isinstance(value.get("type"), str):
            return law_from_dict(_grown_law(value))
        return {name: _laws(one) for name, one in value.items()}
    return [_laws(one) for one in value] if isinstance(value, list) else value


def _plain_means(means: Any) -> dict[str, Any]:
    if isinstance(means, BesideNothing):
        return {"means": packed(np.array(means.means)), "baseline_means": packed(np.array(means.nothing))}
    return {} if means is None else {"means": packed(np.array(means, dtype=np.float64))}


def _plain_arrivals(arrivals: Arrivals | Calendar) -> dict[str, Any]:
    if isinstance(arrivals, Arrivals):
        return {"type": "Arrivals", **dataclasses.asdict(arrivals)}
    return {
        "type": "Calendar",
        "times": packed(arrivals.times),
        "contexts": None if arrivals.contexts is None else packed(arrivals.contexts),
        "day": arrivals.day,
        "block": arrivals.block,
        "watched": arrivals.watched,
        "resampled": arrivals.resampled,
    }


def _arrivals(value: object) -> Arrivals | Calendar:
    if not isinstance(value, Mapping) or value.get("type") not in ("Arrivals", "Calendar"):
        raise InvalidValue("arrivals", value, 'must be a mapping with the "type" Arrivals or Calendar')
    if value["type"] == "Calendar":
        options = ("contexts", "day", "block", "watched", "resampled")
        given = _check.keys("arrivals", value, required=("type", "times"), optional=options)
        del given["type"]
        for name in ("times", "contexts"):
            if given.get(name) is not None:
                given[name] = unpacked(f"{name} of Calendar", given[name])
        return Calendar(**given)
    given = _check.keys("arrivals", value, required=("type", "number"), optional=("day", "hours", "weekdays", "bursts"))
    del given["type"]
    if given.get("bursts") is not None:
        given["bursts"] = Bursts(**_check.keys("bursts", given["bursts"], required=("share", "arrivals", "length")))
    return Arrivals(**given)


def _plain_people(scenario: Scenario, crowd: Crowd) -> dict[str, Any]:
    data: dict[str, Any] = {
        "people": {
            name: packed_words(column) if column.dtype.kind == "U" else packed(column)
            for name, column in crowd.columns.items()
        }
    }
    if crowd.contexts is not None:
        data["classes"] = packed_words(crowd.contexts)
    for field in ("speed", "frequencies"):
        value = getattr(scenario, field)
        if isinstance(value, Table):
            data[field] = packed(value.numbers)
    if scenario.strata is not None:
        strata = dataclasses.asdict(scenario.strata)
        data["strata"] = {**strata, "person": [feature_to_dict(one) for one in scenario.strata.person]}
    return data


def _people(value: object) -> Any:
    if not isinstance(value, Mapping):
        return value  # a list of mappings, or of lists

    def column(name: str, one: object) -> Any:
        field = f"column {shown(name)} of people"
        if isinstance(one, Mapping) and "words" in one:
            return unpacked_words(field, one)
        return unpacked(field, one) if isinstance(one, Mapping) else one

    return {name: column(name, one) for name, one in value.items()}


def _strata(value: object) -> Strata:
    names = [field.name for field in dataclasses.fields(Strata)]
    given = _check.keys("strata", value, required=names)
    cuts = []
    for one in given["cuts"]:
        cut = _check.keys("cut of strata", one, required=[field.name for field in dataclasses.fields(Cut)])
        edges, words = tuple(map(float, cut["edges"])), tuple(map(str, cut["words"]))
        cuts.append(Cut(str(cut["name"]), edges, words, bool(cut["is_category"])))
    return Strata(
        person=tuple(feature_from_dict(one) for one in given["person"]),
        missing=given["missing"],
        context_names=tuple(map(str, given["context_names"])),
        cuts=tuple(cuts),
        cells=tuple(tuple(map(int, cell)) for cell in given["cells"]),
    )


def _rows(value: object) -> Any:
    """As arrays, or by context and arm as somebody writes them; a delay of None is one that never ends."""
    if not isinstance(value, Mapping) or "starts" not in value:
        return _by_cell(value, lambda cell: [_row(one) for one in cell] if isinstance(cell, list) else cell)
    given = _check.keys("rows", value, required=("reward", "delay", "starts"), optional=("cost", "weight"))
    columns = {name: unpacked(f"{name} of rows", one, nothing=math.inf) for name, one in given.items()}
    return Rows.from_arrays(**columns)


def _row(one: Any) -> Any:
    return [one[0], math.inf, *one[2:]] if isinstance(one, list) and len(one) > 1 and one[1] is None else one


def _by_cell(value: object, change: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {
        name: {arm: change(cell) for arm, cell in row.items()} if isinstance(row, Mapping) else row
        for name, row in value.items()
    }


def _from_dict(given: dict[str, Any]) -> Scenario:
    given["problem"] = Problem.from_dict(given["problem"])
    if given.get("delays") is not None:
        given["delays"] = _laws(given["delays"])
    changes = {"rows": _rows, "arrivals": _arrivals, "people": _people, "strata": _strata}
    for field, change in changes.items():
        if given.get(field) is not None:
            given[field] = change(given[field])
    if given.get("classes") is not None:
        given["classes"] = unpacked_words("classes", given["classes"])
    for field in ("theta", "means", "baseline_means", "paid", "speed", "frequencies", "shares"):
        if isinstance(given.get(field), list | Mapping):
            given[field] = table_of(field, given[field])
    if isinstance(given.get("availability"), list):
        given["availability"] = unpacked("availability", given["availability"])
    for field in ("phases", "noise_sd"):
        if field in given:
            given[field] = _check.finite_number(field, given[field])
    return Scenario(**given)
