"""Work as data, and how it is run: in batches that are kept, so that an interrupted experiment resumes."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import pkgutil
import platform
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from doral import _files
from doral._version import VERSION
from doral.compiled.key import modules_digest
from doral.engine.options import PolicyOptions
from doral.errors import InvalidValue
from doral.simulation.api import simulate
from doral.simulation.results import files as saved
from doral.simulation.results.outcome import COURSE_COLUMNS, METRICS, Outcome
from doral.simulation.results.result import SimulationResult
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.description import describe_scenario as describe_scenario
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.cluster import Engine, active
from doral.simulation.workers.tasks import run_work, spread_as_finished


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How often and how long, and whether more than the main table."""

    runs: int
    """Runs of the main table."""
    side_runs: int
    """Runs of sweeps and variants, where differences are large enough to be seen with fewer."""
    shrink: int = 1
    """Budgets and horizons are divided by it; delays and deadlines are not."""
    main_only: bool = False
    """Whether sweeps and variants are left out."""

    @property
    def is_quick(self) -> bool:
        """Whether this is a try-out, from which nothing follows."""
        return self.shrink != 1

    @property
    def with_sides(self) -> bool:
        """Whether sweeps and variants are run."""
        return not self.main_only

    def asked_for(self, *, runs: int | None, main_only: bool) -> Self:
        """Return this extent with other numbers of runs; sides never take more runs than the main table."""
        wanted = self.runs if runs is None else runs
        return dataclasses.replace(self, runs=wanted, side_runs=min(self.side_runs, wanted), main_only=main_only)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Policies that play one scenario; they share their draws, so that their differences are paired."""

    study: str
    """What it is run for: one table, sweep or set of variants of the experiment."""
    scenario: Scenario
    policies: tuple[NamedPolicy, ...]
    runs: int
    keep_curves: bool = False


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One line of a table of changes: a policy, what is different about it, and the policy it is compared with."""

    policy: PolicyOptions
    says: str
    reference: str


def base_name(scenario: str) -> str:
    """The scenario of the catalogue that an altered one is made from.

    >>> base_name("paper/diverse-pareto@noise=1")
    'paper/diverse-pareto'
    """
    return scenario.partition("@")[0]


def shrunk(scenario: Scenario, by: int) -> Scenario:
    """The same scenario with budget and horizon divided, for a try-out; delays and the deadline stay."""
    if by == 1:
        return scenario
    problem = dataclasses.replace(scenario.problem, budget=scenario.problem.budget / by)
    if scenario.arrivals is None or problem.until is None:
        return dataclasses.replace(scenario, problem=dataclasses.replace(problem, horizon=problem.horizon // by))
    expected = problem.expected_arrivals and max(1, problem.expected_arrivals // by)
    shorter = dataclasses.replace(problem, until=problem.until / by, expected_arrivals=expected)
    if isinstance(scenario.arrivals, Calendar):  # as many as come until then
        return dataclasses.replace(scenario, problem=shorter)
    fewer = dataclasses.replace(scenario.arrivals, number=scenario.arrivals.number / by)
    return dataclasses.replace(scenario, problem=shorter, arrivals=fewer)


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


def settings_json(extent: Extent, cells: Iterable[Cell], *, seed: int) -> str:
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


BATCH_RUNS = 10  # what an interruption can cost: a few seconds of work
BATCH_POLICIES = 6  # each holds a book of its whole run, so this bounds the memory
LEFTOVER_AGE_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some runs and policies of a cell: what is computed at once, kept, and never computed again."""

    cell: Cell
    policies: tuple[NamedPolicy, ...]
    first_run: int
    runs: int

    @property
    def rounds_per_run(self) -> int:
        """How much work a run is: rounds, over all policies."""
        return self.cell.scenario.problem.expected_rounds * len(self.policies)

    def key(self, *, seed: int) -> str:
        """The same for the same numbers, another for any other settings, seed, runs or version."""
        content = {
            "scenario": describe_scenario(self.cell.scenario),
            "policies": [one.to_dict() for one in self.policies],
            "keep_curves": self.cell.keep_curves,
            "seed": seed,
            "first_run": self.first_run,
            "runs": self.runs,
            "versions": versions(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def file_name(self, *, seed: int) -> str:
        """Under which it is kept."""
        return part_name(self.key(seed=seed), versions=versions())


class Progress(Protocol):
    """Who wants to know how far it is. All amounts are rounds."""

    def begin(self, *, rounds: int) -> None:
        """Once, with the total."""

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        """Before a batch; `is_kept`: an earlier call has computed it."""

    def advance(self, rounds: int) -> None:
        """After every run."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """A cell and what happened in it."""

    cell: Cell
    result: SimulationResult


@dataclass(frozen=True, kw_only=True)
class Finished:
    """All cells, the files of their batches, and how many of these an earlier call had left."""

    cells: tuple[CellResult, ...]
    parts: tuple[str, ...]
    kept_batches: int

    @property
    def batches(self) -> int:
        """How many there were."""
        return len(self.parts)

    def of(self, study: str) -> list[CellResult]:
        """The cells of one study, in their order."""
        return [one for one in self.cells if one.cell.study == study]


def batches_of(cell: Cell) -> list[Batch]:
    """The work of a cell; more runs later leave the whole batches as they are. Draws do not depend on the batches."""
    return [
        Batch(
            cell=cell,
            policies=cell.policies[first_policy : first_policy + BATCH_POLICIES],
            first_run=first_run,
            runs=min(BATCH_RUNS, cell.runs - first_run),
        )
        for first_run in range(0, cell.runs, BATCH_RUNS)
        for first_policy in range(0, len(cell.policies), BATCH_POLICIES)
    ]


def run_cells(cells: Iterable[Cell], *, seed: int, n_jobs: int, parts: Path, progress: Progress) -> Finished:
    """Run what is not in the folder `parts` yet. The numbers do not depend on `n_jobs`, nor on interruptions."""
    parts.mkdir(parents=True, exist_ok=True)
    _files.remove_unfinished(parts, older_than_s=LEFTOVER_AGE_S, now_s=time.time())
    work = [(cell, batches_of(cell)) for cell in cells]
    progress.begin(rounds=sum(batch.rounds_per_run * batch.runs for _, batches in work for batch in batches))
    engine = active() if n_jobs != 1 else None
    fresh = frozenset[str]() if engine is None else _played_on(engine, work, parts, seed, n_jobs, progress)
    finished: list[CellResult] = []
    names: list[str] = []
    kept_batches = 0
    for cell, batches in work:
        outcomes: list[Outcome] = []
        for batch in batches:
            names.append(batch.file_name(seed=seed))
            path = parts / names[-1]
            result = _kept(path)
            if names[-1] not in fresh:
                progress.batch(batch, is_kept=result is not None)
                if result is not None:
                    kept_batches += 1
                    progress.advance(batch.rounds_per_run * batch.runs)
            if result is None:
                result = _play(batch, seed=seed, n_jobs=n_jobs, on_run=partial(progress.advance, batch.rounds_per_run))
                saved.save(result, path)
            outcomes.extend(result.outcomes)
        finished.append(CellResult(cell=cell, result=SimulationResult(outcomes=tuple(outcomes), seed=seed)))
    return Finished(cells=tuple(finished), parts=tuple(names), kept_batches=kept_batches)


def _played_on(
    engine: Engine,
    work: Iterable[tuple[Cell, list[Batch]]],
    parts: Path,
    seed: int,
    n_jobs: int,
    progress: Progress,
) -> frozenset[str]:
    """On a cluster, batches are the tasks: each is kept as it comes, in any order. Returns the files that are new."""
    missing = {batch.file_name(seed=seed): batch for _, batches in work for batch in batches}
    missing = {name: batch for name, batch in missing.items() if _kept(parts / name) is None}
    longest_first = sorted(missing, key=lambda name: -_work_of(missing[name]))  # none is left to one worker at the end
    wanted = [missing[name] for name in longest_first]
    for number, result in spread_as_finished(engine, _play_there, seed, wanted, n_jobs=n_jobs):
        saved.save(result, parts / longest_first[number])
        progress.batch(wanted[number], is_kept=False)
        progress.advance(wanted[number].rounds_per_run * wanted[number].runs)
    return frozenset(missing)


def _work_of(batch: Batch) -> float:
    return run_work(batch.policies, batch.cell.scenario) * batch.runs


def _play_there(seed: int, batch: Batch) -> SimulationResult:
    return _play(batch, seed=seed, n_jobs=1, on_run=lambda: None)


def _kept(path: Path) -> SimulationResult | None:
    """A batch from an earlier call; one that cannot be read is as good as none."""
    try:
        return saved.load(path) if path.exists() else None
    except InvalidValue:
        return None


def _play(batch: Batch, *, seed: int, n_jobs: int, on_run: Callable[[], None]) -> SimulationResult:
    cell = batch.cell
    result = simulate(
        batch.policies,
        cell.scenario,
        runs=batch.runs,
        first_run=batch.first_run,
        seed=seed,
        n_jobs=n_jobs,
        on_run=on_run,
    )
    if cell.keep_curves:
        return result
    # Sweeps and ablation need the rewards only; their curves would fill memory and disk for nothing.
    nowhere, nothing, never = (
        np.empty(0, dtype=np.int64),
        np.empty((0, len(METRICS))),
        np.empty((0, len(COURSE_COLUMNS))),
    )
    without = tuple(dataclasses.replace(one, rounds=nowhere, curve=nothing, course=never) for one in result.outcomes)
    return SimulationResult(outcomes=without, seed=seed)


# --- files of batches ------------------------------------------------------------------------------------------------

PARTS_FOLDER = "parts"
PART_KIND = ".npz"
_PART = re.compile(r"([0-9a-f]{8}-)?[0-9a-f]{32}\.npz")

# Parts would pile up. Two rules: before a run, those that another version has computed go, since no run of this version
# can go on from them, whatever its settings; after one that has ended well, those go that it did not ask for, of other
# settings or of runs that were given up. Files that are none of our parts stay in any case.


def part_name(key: str, *, versions: Mapping[str, str]) -> str:
    """The file of a part: who computed it, and its key."""
    return f"{_version_key(versions)}-{key}{PART_KIND}"


def remove_parts_of_other_versions(folder: Path, *, versions: Mapping[str, str]) -> None:
    """Before a run."""
    start = _version_key(versions)
    for path in _parts(folder):
        if not path.name.startswith(f"{start}-"):
            path.unlink(missing_ok=True)


def remove_other_parts(folder: Path, *, keep: Collection[str]) -> None:
    """After a run that has ended well."""
    for path in _parts(folder):
        if path.name not in keep:
            path.unlink(missing_ok=True)


def _version_key(versions: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(versions), sort_keys=True).encode()).hexdigest()[:8]


def _parts(folder: Path) -> list[Path]:
    """Those that we have written; earlier ones do not say which version made them."""
    found = (folder / PARTS_FOLDER).glob(f"*{PART_KIND}")
    return [path for path in found if _PART.fullmatch(path.name) and path.is_file()]
