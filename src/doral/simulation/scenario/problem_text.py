"""Problems for campaigns out of JSON: what `doral init` writes, what `Problem.to_dict` writes, or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from doral.errors import DoralError, InvalidValue
from doral.problem import Problem
from doral.simulation.scenario import notation as written

FIELD = "problem file"


@dataclass(frozen=True)
class ReadProblem:
    """A problem, and the date at which it ends, where the file says one."""

    problem: Problem
    until: str | None


def plain_problem(data: Mapping[str, Any], *, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Of plain values; what is wrong is told of the very value. `until` takes the place of the end that they say."""
    found = written.problem(data, clock="rounds" if clock == "rounds" else "seconds")
    date = until or found.until
    if date is not None and found.data.get("until") is None and found.data.get("horizon") is None:
        found.data["until"] = 1.0  # the date says how long it is
    return ReadProblem(Problem.from_dict(found.data), date)


def problem_of(data: object, *, source: str, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Of what JSON holds: a problem, or a scenario with one. `until` takes the place of the end that it says."""
    if isinstance(data, Mapping) and "problem" in data and "arms" not in data:
        data = data["problem"]  # the rest is for simulations
    if not isinstance(data, Mapping):
        raise InvalidValue(FIELD, source, 'must hold a mapping, {"arms": ..., "budget": ...}, as `doral init` does')
    try:
        return plain_problem(data, clock=clock, until=until)
    except DoralError as error:
        raise InvalidValue(FIELD, source, str(error)) from None
