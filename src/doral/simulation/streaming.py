"""`doral.simulate_to`: as many runs as you like, kept in a file as they come; once interrupted, it goes on."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from doral import _check, _files
from doral._progress import Progress
from doral.engine.blueprint import MAX_SEED
from doral.errors import InvalidValue
from doral.simulation.api import (
    MAX_RUNS,
    AnyPolicy,
    Experiment,
    check_sizes,
    checked_jobs,
    made_policies,
    made_scenarios,
    play_run,
    policy_name,
    prefer_for,
)
from doral.simulation.described import of_policy, of_truth
from doral.simulation.run_rows import rows_of_runs
from doral.simulation.scenario import Scenario
from doral.simulation.stored_runs import METADATA, StoredRuns, said_by
from doral.simulation.workers.cutting import TASK_WORK, run_work
from doral.simulation.workers.engine import active
from doral.simulation.workers.fingerprint import versions
from doral.simulation.workers.spreading import spread, spread_as_finished
from doral.simulation.writing_alone import only_one

KIND = ".parquet"
PARTS = ".parts"  # the folder next to the file, until that is whole
MOST_PART_ROWS = 20_000
MOST_PARTS = 10_000  # a folder with more is slow to read
ROW_GROUP = 50_000
_OWN = re.compile(r"[0-9a-f]{32}(-\d+){3}\.parquet|.*\.unfinished")  # nothing else in the folder is touched


class Part(NamedTuple):
    """Runs that are played and kept together."""

    number: int
    place: int
    first_run: int
    runs: int


def simulate_to(
    path: str | Path,
    policies: AnyPolicy | Iterable[AnyPolicy],
    scenario: str | Scenario | Iterable[str | Scenario],
    *,
    runs: int = 10,
    seed: int = 0,
    n_jobs: int = 1,
    first_run: int = 0,
    progress: bool | None = None,
) -> StoredRuns:
    """Let policies play scenarios, and write the runs to a Parquet file as they come: it may be larger than memory.

    The numbers are those of `doral.simulate`, row by row. Curves and decisions are not kept. Finished parts lie in a
    folder next to the file until that is whole. After an interruption, whatever its kind, the same call goes on where
    it stopped, with the same bits at the end; when everything is there already, nothing is played. A policy or law in
    Python is known by its file and by what it and its class hold, not by variables of its module that are set in other
    ways: change the name of the output with those. One that is in no file, or within a function, always begins anew.

    Args:
        path: The file, ending in ".parquet"; its folder must exist. One that holds something else is replaced at the
            end.
        policies: As for `doral.simulate`.
        scenario: As for `doral.simulate`.
        runs: How often each scenario is played.
        seed: Of all draws, 0 to 2^53.
        n_jobs: Parallel workers, -1 for all cores, or all of a cluster (`joblib.parallel_config`). Results do not
            depend on it.
        first_run: The number of the first run.
        progress: Whether to say on standard error, in one line, how far it is. None: where somebody is looking.
    """
    target = checked_target(path)
    chosen, places = made_policies(policies), made_scenarios(scenario)
    runs = _check.whole_number("runs", runs, at_least=1, at_most=MAX_RUNS)
    first_run = _check.whole_number("first_run", first_run, at_least=0, at_most=MAX_RUNS)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    n_jobs = checked_jobs(n_jobs)
    if not isinstance(progress, bool | np.bool_ | None):
        raise InvalidValue("progress", progress, "must be True, False, or None: where somebody is looking")
    check_sizes(chosen, places)
    experiment = Experiment(chosen, places, seed)
    about = {
        "key": _key(experiment),
        "seed": seed,
        "scenarios": [one.name for one in places],
        "policies": [policy_name(one) for one in chosen],
        "first_run": first_run,
        "runs": runs,
    }
    if said_by(target) != about:
        _play_to(target, experiment, _cut(experiment, first_run, runs), about, n_jobs=n_jobs, progress=progress)
    return StoredRuns(
        path=target,
        seed=seed,
        scenarios=tuple(one.name for one in places),
        policies=tuple(policy_name(one) for one in chosen),
        first_run=first_run,
        runs=runs,
    )


def checked_target(path: object) -> Path:
    """Where to write; a link stays a link."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InvalidValue("path", path, "must be the name of a file")
    target = Path(path).resolve()
    if target.suffix.lower() != KIND:
        raise InvalidValue("path", str(path), f"must end in {KIND}")
    if target.exists() and not target.is_file():
        raise InvalidValue("path", str(path), "is no file; name another")
    if not target.parent.is_dir():
        raise InvalidValue("path", str(path), "names a folder that does not exist; make it first")
    return target


def _key(experiment: Experiment) -> str:
    """Another for whatever gives other numbers."""
    content = {
        "policies": [of_policy(one) for one in experiment.policies],
        "scenarios": [of_truth(one) for one in experiment.scenarios],
        "seed": experiment.seed,
        "versions": versions(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _cut(experiment: Experiment, first_run: int, runs: int) -> list[Part]:
    """A second or so of work each, whoever computes them: what was kept fits whoever goes on."""
    parts: list[Part] = []
    for place, one in enumerate(experiment.scenarios):
        by_work = int(TASK_WORK / run_work(experiment.policies, one))
        by_rows = MOST_PART_ROWS // len(experiment.policies)
        fewest = math.ceil(runs * len(experiment.scenarios) / MOST_PARTS)
        step = max(1, fewest, min(by_work, by_rows))
        for first in range(first_run, first_run + runs, step):
            parts.append(Part(len(parts), place, first, min(step, first_run + runs - first)))
    return parts


def _play_part(experiment: Experiment, part: Part) -> bytes:
    """The rows of a part, as a small file."""
    scenario = experiment.scenarios[part.place]
    outcomes = (
        outcome
        for run in range(part.first_run, part.first_run + part.runs)
        for outcome in play_run(experiment.policies, scenario, seed=experiment.seed, run=run, keep_decisions=False)
    )
    buffer = io.BytesIO()
    rows_of_runs(outcomes).write_parquet(buffer)
    return buffer.getvalue()


def _play_to(
    target: Path,
    experiment: Experiment,
    parts: Sequence[Part],
    about: dict[str, object],
    *,
    n_jobs: int,
    progress: bool | None,
) -> None:
    folder = target.with_name(f"{target.name}{PARTS}")
    with only_one(folder) as is_alone:
        if not is_alone:
            raise InvalidValue("path", str(target), "is being written by another process; wait for it, or name another")
        _fill(folder, target, experiment, parts, about, n_jobs=n_jobs, progress=progress)


def _fill(
    folder: Path,
    target: Path,
    experiment: Experiment,
    parts: Sequence[Part],
    about: dict[str, object],
    *,
    n_jobs: int,
    progress: bool | None,
) -> None:
    names = [f"{about['key']}-{part.place}-{part.first_run}-{part.runs}{KIND}" for part in parts]
    there = {path.name for path in folder.iterdir() if _OWN.fullmatch(path.name)}
    for name in there.difference(names):  # of other settings or versions, or unfinished
        (folder / name).unlink()
    rows = len(experiment.policies)
    missing = [
        part
        for part, name in zip(parts, names, strict=True)
        if name not in there or not _holds(folder / name, rows=rows * part.runs)
    ]
    works = [run_work(experiment.policies, experiment.scenarios[part.place]) * part.runs for part in missing]
    with Progress("simulating", works, "parts", is_shown=progress) as shown:
        for number, content in _finished(experiment, missing, works, n_jobs=n_jobs):
            _files.write_bytes(folder / names[missing[number].number], content)
            shown.advance()
    whole = folder / f"whole{_files.UNFINISHED_SUFFIX}"
    frame = pl.scan_parquet([folder / name for name in names], glob=False)
    said = {METADATA: json.dumps(about)}
    try:
        frame.sink_parquet(whole, row_group_size=ROW_GROUP, sync_on_close="all", metadata=said)
    except pl.exceptions.ComputeError as error:  # so it says that a disk is full
        raise OSError(f"{target}: cannot be written ({error}); finished parts are kept, begin again") from error
    whole.replace(target)
    _files.sync_folder(target.parent)
    for name in names:
        (folder / name).unlink()
    with suppress(OSError):  # somebody keeps something else there
        folder.rmdir()


def _holds(path: Path, *, rows: int) -> bool:
    """Whether a part is whole: a disk may have lost some of it."""
    try:
        return bool(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item() == rows)
    except (OSError, pl.exceptions.PolarsError):
        return False


def _finished(
    experiment: Experiment, parts: Sequence[Part], works: Sequence[float], *, n_jobs: int
) -> Iterator[tuple[int, bytes]]:
    engine = active() if n_jobs != 1 else None
    if engine is not None:
        yield from spread_as_finished(engine, _play_part, experiment, parts, n_jobs=n_jobs)
        return
    prefer = prefer_for(experiment.policies)
    yield from enumerate(
        spread(_play_part, experiment, parts, works=works, n_jobs=n_jobs, prefer=prefer, most_pieces=1)
    )
