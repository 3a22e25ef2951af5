"""Scenarios as plain values for files, and back with every check made again."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral.delays import from_dict as law_from_dict
from doral.errors import DoralError, InvalidValue
from doral.person import feature_from_dict, feature_to_dict
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.notation import check_keys, read_file, scenario_values
from doral.simulation.scenario.people import BesideNothing, Crowd, Table
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.scenario.strata import Cut, Strata


def _listed(value: Any) -> Any:
    """Return an array as a list (of lists), in which None stands for what JSON has no number for."""
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind == "U":
        return [word or None for word in array.tolist()]
    if array.dtype.kind in "iu" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array, None).tolist()  # type: ignore[call-overload]


def _filled(value: Any, nothing: float) -> Any:
    """Put `nothing` in the place of None in a list (of lists)."""
    if isinstance(value, list):
        return [nothing if one is None else _filled(one, nothing) for one in value]
    return value


def _table_of(value: object) -> Any:
    """Return numbers of any shape as an array; anything else stays, for the checks of a scenario."""
    found = _filled(value, math.nan)
    try:
        return np.array(found, dtype=np.float64)
    except (TypeError, ValueError):
        return found


FORMAT = 1
_FORMAT = "scenario_format"
_PLAIN = {"features": "given", "noise": "gaussian", "noise_sd": 0.1, "phases": 1, "paid": "always"}
_KEYS = tuple(name for name in inspect.signature(Scenario).parameters if name != "population")


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
        data["rows"] = {name: _listed(getattr(rows, name)) for name in names if getattr(rows, name) is not None}
    if scenario.theta is not None:
        data["theta"] = _listed(np.array(scenario.theta))
    for field, usual in _PLAIN.items():
        value = getattr(scenario, field)
        if not isinstance(value, str | int | float):  # chances of being paid
            data[field] = _listed(np.array(value, dtype=np.float64))
        elif value != usual and not (field == "paid" and value == "by_row"):
            data[field] = value
    if scenario.availability is not None:
        data["availability"] = _listed(np.array(scenario.availability))
    if scenario.people is None and not (
        isinstance(scenario.arrivals, Calendar) and scenario.arrivals.contexts is not None
    ):
        data["shares"] = _listed(scenario.true_shares)
    if scenario.arrivals is not None:
        data["arrivals"] = _plain_arrivals(scenario.arrivals)
    if isinstance(scenario.people, Crowd):
        data |= _plain_people(scenario, scenario.people)
    return data


def scenario_from_dict(data: Mapping[str, Any]) -> Scenario:
    """The scenario that `scenario_to_dict` wrote, with every check made again."""
    if not isinstance(data, Mapping):
        raise InvalidValue("scenario", data, "must be a mapping")
    known = (*_KEYS, _FORMAT)
    check_keys("scenario", data, known)
    given = _check.keys("scenario", data, required=("name", "problem"), optional=known)
    if given.pop(_FORMAT, FORMAT) != FORMAT:
        raise InvalidValue(_FORMAT, data[_FORMAT], f"must be {FORMAT}: a newer version of DORAL wrote this")
    try:
        return _from_dict(scenario_values(given, known=known))
    except DoralError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
        # A file may hold any value where another was meant.
        raise InvalidValue("scenario", given["name"], f"cannot be made of these values: {error}") from error


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a TOML or JSON file; without a name, it has that of the file."""
    field = "scenario file"
    data = read_file(field, path)
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


def _plain_laws(laws: list[dict[str, Any]]) -> Any:
    """Return one law for all arms where they are alike."""
    return laws[0] if all(law == laws[0] for law in laws) else laws


def _laws(value: Any) -> Any:
    """One for all, a list by arm, or mappings by context and arm."""
    if isinstance(value, Mapping):
        if isinstance(value.get("type"), str):
            return law_from_dict(value)
        return {name: _laws(one) for name, one in value.items()}
    return [_laws(one) for one in value] if isinstance(value, list) else value


def _plain_means(means: Any) -> dict[str, Any]:
    if isinstance(means, BesideNothing):
        return {"means": _listed(means.means.numbers), "baseline_means": _listed(means.nothing.numbers)}
    return {} if means is None else {"means": _listed(np.array(means, dtype=np.float64))}


def _plain_arrivals(arrivals: Arrivals | Calendar) -> dict[str, Any]:
    if isinstance(arrivals, Arrivals):
        return {"type": "Arrivals", **dataclasses.asdict(arrivals)}
    return {
        "type": "Calendar",
        "times": _listed(arrivals.times),
        "contexts": None if arrivals.contexts is None else _listed(arrivals.contexts),
        "day": arrivals.day,
        "block": arrivals.block,
        "watched": arrivals.watched,
        "resampled": arrivals.resampled,
    }


def _arrivals(value: object) -> Arrivals | Calendar:
    if not isinstance(value, Mapping) or value.get("type") not in ("Arrivals", "Calendar"):
        raise InvalidValue("arrivals", value, "must be a number of arrivals, or a mapping with `number` or `times`")
    if value["type"] == "Calendar":
        options = ("contexts", "day", "block", "watched", "resampled")
        given = _check.keys("arrivals", value, required=("type", "times"), optional=options)
        del given["type"]
        return Calendar(**given)
    given = _check.keys("arrivals", value, required=("type", "number"), optional=("day", "hours", "weekdays", "bursts"))
    del given["type"]
    if given.get("bursts") is not None:
        given["bursts"] = Bursts(**_check.keys("bursts", given["bursts"], required=("share", "arrivals", "length")))
    return Arrivals(**given)


def _plain_people(scenario: Scenario, crowd: Crowd) -> dict[str, Any]:
    data: dict[str, Any] = {"people": {name: _listed(column) for name, column in crowd.columns.items()}}
    if crowd.contexts is not None:
        data["classes"] = _listed(crowd.contexts)
    for field in ("speed", "frequencies"):
        value = getattr(scenario, field)
        if isinstance(value, Table):
            data[field] = _listed(value.numbers)
    if scenario.strata is not None:
        strata = dataclasses.asdict(scenario.strata)
        data["strata"] = {**strata, "person": [feature_to_dict(one) for one in scenario.strata.person]}
    return data


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
    """Return rows from arrays, or by context and arm as written by hand; a delay of None never ends."""
    if isinstance(value, Mapping) and "starts" in value:
        given = _check.keys("rows", value, required=("reward", "delay", "starts"), optional=("cost", "weight"))
        return Rows.from_arrays(**{name: _filled(one, math.inf) for name, one in given.items()})
    if not isinstance(value, Mapping):
        return value
    return {
        name: {arm: _filled(cell, math.inf) for arm, cell in row.items()} if isinstance(row, Mapping) else row
        for name, row in value.items()
    }


def _from_dict(given: dict[str, Any]) -> Scenario:
    if given.get("delays") is not None:
        given["delays"] = _laws(given["delays"])
    changes = {"rows": _rows, "arrivals": _arrivals, "strata": _strata}
    for field, change in changes.items():
        if given.get(field) is not None:
            given[field] = change(given[field])
    for field in ("theta", "means", "baseline_means", "paid", "speed", "frequencies", "shares"):
        if isinstance(given.get(field), list):
            given[field] = _table_of(given[field])
    for field in ("phases", "noise_sd"):
        if field in given:
            given[field] = _check.finite_number(field, given[field])
    return Scenario(**given)
