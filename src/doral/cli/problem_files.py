"""Problems out of files, for campaigns."""

from __future__ import annotations

from pathlib import Path

from doral.simulation.scenario import text as json_text
from doral.simulation.scenario.notation import FIELD, ReadProblem, problem_of


def read_problem(path: Path, *, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Of a JSON file that holds a problem, or a scenario with one. `until` takes the place of the end that it says."""
    return problem_of(json_text.read(FIELD, path), source=str(path), clock=clock, until=until)
