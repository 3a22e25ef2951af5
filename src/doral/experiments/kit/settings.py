"""Settings in plain values: what goes into `settings.json`, and into the keys of finished batches."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from typing import Any

from doral._kernel.cache import kernels_version
from doral._version import VERSION
from doral.experiments.kit.cell import Cell
from doral.experiments.kit.extent import Extent
from doral.simulation.arrivals import Arrivals
from doral.simulation.calendar import Calendar
from doral.simulation.laws import described
from doral.simulation.scenario import Scenario

_LIBRARIES = ("numpy", "numba", "scipy", "polars")


@cache
def versions() -> dict[str, str]:
    """What the numbers depend on, apart from the settings."""
    return {
        "doral": VERSION,
        "sources": sources_version(),
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def sources_version() -> str:
    """A hash of the sources: a changed line anywhere gives another."""
    return kernels_version()


def cpu_count() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def of_scenario(scenario: Scenario) -> dict[str, Any]:
    """A scenario in values that JSON can hold."""
    return {
        "name": scenario.name,
        "problem": scenario.problem.to_dict(),
        "delays": [[law.to_dict() for law in row] for row in scenario.delays],
        "theta": scenario.theta,
        "means": None if scenario.people is not None else scenario.means,
        "features": scenario.features,
        "noise": scenario.noise,
        "noise_sd": scenario.noise_sd,
        "availability": scenario.availability,
        "shares": scenario.shares,
        "phases": scenario.phases,
        **({} if scenario.arrivals is None else {"arrivals": _of_arrivals(scenario.arrivals)}),
        **({} if scenario.people is None else _of_people(scenario)),
    }


def _of_arrivals(arrivals: Arrivals | Calendar) -> dict[str, Any]:
    if isinstance(arrivals, Calendar):
        return {"calendar": arrivals.digest, "arrivals": int(arrivals.times.size)}
    return asdict(arrivals)


def _of_people(scenario: Scenario) -> dict[str, Any]:
    """Who they are and what is true of them: tables by their digests, laws by their sources."""
    fields = ("people", "means", "paid", "speed", "frequencies")
    return {
        **{field: described(getattr(scenario, field)) for field in fields},
        "population": scenario.population,
        **({} if scenario.strata is None else {"strata": asdict(scenario.strata)}),
    }


def to_json(extent: Extent, cells: Iterable[Cell], *, seed: int) -> str:
    """The file `settings.json`: everything that determines the numbers, and nothing that changes from one machine
    or call to the next."""
    work = list(cells)
    content = {
        "quick": extent.is_quick,
        "seed": seed,
        "runs": extent.runs,
        "side_runs": extent.side_runs if extent.with_sides else 0,
        "shrink": extent.shrink,
        "versions": versions(),
        "scenarios": {cell.scenario.name: of_scenario(cell.scenario) for cell in work},
        "policies": {one.name: one.to_dict() for cell in work for one in cell.policies},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
