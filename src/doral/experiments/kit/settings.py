"""Settings in plain values: what goes into `settings.json`, and into the keys of finished batches."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

from doral._version import VERSION
from doral.compiled.key import modules_digest
from doral.experiments.kit.cell import Cell
from doral.experiments.kit.extent import Extent
from doral.simulation.scenario.description import describe_scenario as describe_scenario

# Workers and results are left out: they move numbers, and make none.
_DECIDING = (
    "doral.delays", "doral.engine", "doral.estimators", "doral.numerics", "doral.pacing", "doral.prediction",
    "doral.problem", "doral.simulation", "doral.simulation.catalogue", "doral.simulation.rivals",
    "doral.simulation.scenario", "doral.simulation.world",
)  # fmt: skip
_LIBRARIES = ("numpy", "llvmlite", "scipy", "polars")


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
    """Return a hash of every module on which simulated numbers can depend: a changed line in any gives another."""
    return modules_digest(*simulated_modules())[:16]


def simulated_modules() -> tuple[str, ...]:
    """Return the modules that decide numbers, by name: whole packages, however their modules import each other."""
    found = []
    for name in _DECIDING:
        paths = getattr(importlib.import_module(name), "__path__", ())
        found += [one.name for one in pkgutil.iter_modules(paths, f"{name}.") if not one.ispkg] if paths else [name]
    return tuple(sorted(found))


def cpu_count() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        "scenarios": {cell.scenario.name: describe_scenario(cell.scenario) for cell in work},
        "policies": {one.name: one.to_dict() for cell in work for one in cell.policies},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
