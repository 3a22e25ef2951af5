"""Runs cells in batches and keeps every finished batch, so that an interrupted experiment goes on where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from doral import _files
from doral.errors import InvalidValue
from doral.experiments.kit import settings
from doral.experiments.kit.cell import Cell
from doral.experiments.kit.folder import part_name
from doral.simulation.api import simulate
from doral.simulation.results import files as saved
from doral.simulation.results.outcome import COURSE_COLUMNS, METRICS, Outcome
from doral.simulation.results.result import SimulationResult
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.workers.cluster import Engine, active
from doral.simulation.workers.tasks import run_work, spread_as_finished

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
            "scenario": settings.describe_scenario(self.cell.scenario),
            "policies": [one.to_dict() for one in self.policies],
            "keep_curves": self.cell.keep_curves,
            "seed": seed,
            "first_run": self.first_run,
            "runs": self.runs,
            "versions": settings.versions(),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    def file_name(self, *, seed: int) -> str:
        """Under which it is kept."""
        return part_name(self.key(seed=seed), versions=settings.versions())


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
