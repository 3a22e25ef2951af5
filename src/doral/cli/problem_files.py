"""Problems out of files, for campaigns."""

from __future__ import annotations

from pathlib import Path

from doral.simulation.scenario.notation import FIELD, ReadProblem, problem_of, read_file


def read_problem(path: Path, *, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Read a problem from a TOML or JSON file, which may hold a scenario; `until` replaces its end."""
    return problem_of(read_file(FIELD, path), source=str(path), clock=clock, until=until)
