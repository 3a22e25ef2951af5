"""`doral.simulate_to`: runs written to a Parquet file as they finish; an interrupted call resumes.

Finished parts lie in a folder beside the file until that is whole. The folder and the file say which settings they
hold; runs of other settings under the same name are refused, with what differs.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from doral import _check, _files
from doral._arrays import Floats
from doral._cached import cached_property
from doral._progress import Progress
from doral.engine.options import PolicyOptions
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue, shown
from doral.prediction.external import External
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
from doral.simulation.results.outcome import BY_END, METRICS, WITHIN_DEADLINE
from doral.simulation.results.tables import SUMMARISED, rows_of_runs, summary_of
from doral.simulation.rivals.rival import Rival
from doral.simulation.scenario.description import describe_scenario
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.cluster import active
from doral.simulation.workers.tasks import TASK_WORK, run_work, spread, spread_as_finished, versions

# --- writing ---------------------------------------------------------------------------------------------------------

try:
    import fcntl
except ImportError:  # not on this platform
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


@contextmanager
def only_one(folder: Path) -> Iterator[bool]:
    """Make the folder, lock it until the block ends, and yield whether the lock was free."""
    folder.mkdir(exist_ok=True)
    if not HAS_LOCKS:
        yield True
        return
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    is_free = True
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        except OSError:  # a file system without such locks
            pass
        # Another process may have removed the folder in the meantime.
        yield is_free and folder.exists() and os.path.samestat(os.fstat(held), folder.stat())
    finally:
        os.close(held)


KIND = ".parquet"
PARTS = ".parts"  # the folder next to the file, until that is whole
SETTINGS = "settings.json"  # in that folder
MOST_PART_ROWS = 20_000
MOST_PARTS = 10_000  # a folder with more is slow to read
ROW_GROUP = 50_000
_DIGITS = 32  # of a digest
_MOST_SHOWN = 3  # differences in a message
_LONG = 400  # entries of a list, of which settings hold a digest
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
    name: str | None = None,
) -> StoredRuns:
    """Let policies play scenarios, and write the runs to a Parquet file as they finish; it may be larger than memory.

    The numbers are those of `doral.simulate`, row by row. Curves and decisions are not kept. After an interruption the
    same call resumes, with the same bits at the end; when all runs are there, nothing is played. The stream is known by
    its `name`: a file that holds runs of this name with other policies, scenarios or another seed is refused, and the
    error says what differs. Code of policies and laws in Python is not compared: give another `name` when it changes.
    Another version of DORAL or of its libraries plays all runs again.

    Args:
        path: The file, ending in ".parquet"; its folder must exist. A file of another name, or one that DORAL did not
            write, is replaced at the end.
        policies: As for `doral.simulate`. A policy in Python must have a name of its own: a lambda has none.
        scenario: As for `doral.simulate`.
        runs: How often each scenario is played.
        seed: Of all draws, 0 to 2^53.
        n_jobs: Parallel workers, -1 for all cores, or all of a cluster (`joblib.parallel_config`). Results do not
            depend on it.
        first_run: The number of the first run.
        progress: Whether to show progress on standard error, in one line. None: in a terminal or a notebook.
        name: What the stream is called. None: as the file.
    """
    target = checked_target(path)
    chosen, places = made_policies(policies), made_scenarios(scenario)
    runs = _check.whole_number("runs", runs, at_least=1, at_most=MAX_RUNS)
    first_run = _check.whole_number("first_run", first_run, at_least=0, at_most=MAX_RUNS)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    n_jobs = checked_jobs(n_jobs)
    if not isinstance(progress, bool | np.bool_ | None):
        raise InvalidValue("progress", progress, "must be True, False, or None: in a terminal or a notebook")
    check_sizes(chosen, places)
    experiment = Experiment(chosen, places, seed)
    about = {
        "name": target.stem if name is None else _check.name("name", name),
        "settings": {
            "seed": seed,
            "policies": {policy_name(one): _describe_policy(one) for one in chosen},
            "scenarios": {one.name: _shortened(describe_scenario(one)) for one in places},
        },
        "versions": versions(),
        "first_run": first_run,
        "runs": runs,
    }
    written = said_by(target)
    _check_settings(target, written, about)
    if json.dumps(written) != json.dumps(about):  # the order of policies counts
        _play_to(target, experiment, _cut(experiment, first_run, runs), about, n_jobs=n_jobs, progress=progress)
    return StoredRuns(
        path=target,
        seed=seed,
        scenarios=tuple(one.name for one in places),
        policies=tuple(policy_name(one) for one in chosen),
        first_run=first_run,
        runs=runs,
    )


def _describe_policy(policy: object) -> Any:
    if isinstance(policy, PolicyOptions | Rival):
        return _shortened(policy.to_dict())
    if isinstance(policy, External):
        model = type(policy.model).__name__
        options = _shortened(policy.options.to_dict())
        return {"model": model, "fit": policy.fit, "schedule": repr(policy.schedule), "options": options}
    name = getattr(policy, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidValue("policy", policy, "must have a name by which its runs are known: a class or a function")
    return {"python": name}


def _shortened(value: Any) -> Any:
    """Replace long lists by their digests, and leave out sources: the versions cover those of DORAL."""
    if isinstance(value, list | tuple) and len(value) > _LONG:
        return {"digest": _digest(json.dumps(value).encode())}
    if isinstance(value, Mapping):
        return {key: _shortened(one) for key, one in value.items() if key not in ("source", "sources")}
    return [_shortened(one) for one in value] if isinstance(value, list | tuple) else value


def _check_settings(target: Path, written: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Refuse to go on with runs of the same name and other settings."""
    there, here = (json.loads(json.dumps(one.get("settings"))) for one in (written, about))
    if written.get("name") != about["name"] or json.dumps(there) == json.dumps(here):
        return
    found = list(_differences(there, here))
    more = f"; and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    remedy = f"holds runs of other settings: {'; '.join(found[:_MOST_SHOWN])}{more}. Name another file, or remove it"
    raise InvalidValue("path", str(target), remedy)


def _differences(there: Any, here: Any, where: str = "") -> Iterator[str]:
    """Yield what differs between two descriptions, one phrase for each value."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in dict.fromkeys([*there, *here]):
            place = f"{where}.{key}" if where else str(key)
            if key not in there or key not in here:
                yield f"{place} is {'new' if key not in there else 'missing now'}"
            elif there[key] != here[key]:
                yield from _differences(there[key], here[key], place)
        if list(there) != list(here) and set(there) == set(here):
            yield f"{where} stand in another order"
    elif there != here:
        yield f"{where} = {shown(there)} in the file, {shown(here)} now"


def checked_target(path: object) -> Path:
    """Check where to write; a link stays a link."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InvalidValue("path", path, "must be the name of a file")
    try:
        target = Path(path).resolve()
    except (OSError, UnicodeError):
        raise InvalidValue("path", str(path), "cannot be the name of a file") from None
    if target.suffix.lower() != KIND:
        raise InvalidValue("path", str(path), f"must end in {KIND}")
    if target.exists() and not target.is_file():
        raise InvalidValue("path", str(path), "is no file; name another")
    if not target.parent.is_dir():
        raise InvalidValue("path", str(path), "names a folder that does not exist; make it first")
    folder = _folder_of(target)
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        remedy = f"needs the folder {folder.name} beside it, and something else has that name: move it, or name another"
        raise InvalidValue("path", str(path), remedy)
    return target


def _folder_of(target: Path) -> Path:
    """Return the folder of the parts."""
    return target.with_name(f"{target.name}{PARTS}")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _cut(experiment: Experiment, first_run: int, runs: int) -> list[Part]:
    """Cut the runs into parts of about a second of work each, for any number of workers."""
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
    """Play a part; return its rows as a small Parquet file."""
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
    folder = _folder_of(target)
    with only_one(folder) as is_alone:
        if not is_alone:
            raise InvalidValue("path", str(target), "is being written by another process; wait for it, or name another")
        _check_settings(target, _read_settings(folder), about)
        _files.write_bytes(folder / SETTINGS, json.dumps(about).encode())
        key = _digest(json.dumps([about[part] for part in ("name", "settings", "versions")]).encode())
        kept = _fill(folder, experiment, parts, key, n_jobs=n_jobs, progress=progress)
        whole = folder / f"whole{_files.UNFINISHED_SUFFIX}"
        frame = pl.scan_parquet(kept, glob=False)
        try:
            frame.sink_parquet(
                whole, row_group_size=ROW_GROUP, sync_on_close="all", metadata={METADATA: json.dumps(about)}
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise OSError(f"{target}: cannot be written ({error}); finished parts are kept, begin again") from error
        _files.keep_permissions(target, whole)
        whole.replace(target)
        _files.sync_folder(target.parent)
        for path in (*kept, folder / SETTINGS):
            path.unlink()
        with suppress(OSError):  # other files are in it
            folder.rmdir()


def _fill(
    folder: Path, experiment: Experiment, parts: Sequence[Part], key: str, *, n_jobs: int, progress: bool | None
) -> list[Path]:
    """Play what is missing; return all parts in order."""
    paths = [folder / f"{key}-{part.place}-{part.first_run}-{part.runs}{KIND}" for part in parts]
    for path in folder.iterdir():  # parts of ours that are of no use: of other versions, or unfinished
        if _OWN.fullmatch(path.name) and path not in paths and (path.is_symlink() or not path.is_dir()):
            path.unlink()
    missing = [part for part, path in zip(parts, paths, strict=True) if not path.exists()]
    works = [run_work(experiment.policies, experiment.scenarios[part.place]) * part.runs for part in missing]
    with Progress("simulating", works, "parts", is_shown=progress) as shown:
        for number, content in _finished(experiment, missing, works, n_jobs=n_jobs):
            _files.write_bytes(paths[missing[number].number], content)
            shown.advance()
    return paths


def _read_settings(folder: Path) -> dict[str, Any]:
    """Read what an unfinished stream holds; nothing where that cannot be read."""
    try:
        return dict(json.loads((folder / SETTINGS).read_bytes()))
    except (OSError, ValueError):
        return {}


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


# --- reading ---------------------------------------------------------------------------------------------------------

METADATA = "doral"  # under which the file says what it holds


@dataclass(frozen=True)
class StoredRuns:
    """Runs in a Parquet file, which may be larger than memory; `doral.simulate_to` makes it.

    Attributes:
        path: The file: one row per scenario, run and policy, with the columns of `SimulationResult.runs`.
        seed: Of the draws that all policies share.
        scenarios: Names, in the order played.
        policies: Names, in the order given; the first is the one that differences are taken to.
        first_run: The number of the first run.
        runs: How many there are of each scenario.
    """

    path: Path
    seed: int
    scenarios: tuple[str, ...]
    policies: tuple[str, ...]
    first_run: int
    runs: int

    def scan(self) -> pl.LazyFrame:
        """The rows, to be filtered and grouped without reading all of them."""
        return pl.scan_parquet(self.path, glob=False)  # brackets stay brackets

    def summary(self) -> pl.DataFrame:
        """Per scenario, policy and metric, as `SimulationResult.summary`; one scenario is read at a time."""
        rows: list[dict[str, Any]] = []
        for name in self.scenarios:
            runs = self._columns(name)
            for policy in self.policies:
                rows += summary_of(name, policy, runs[policy], runs[self.policies[0]])
        return pl.DataFrame(rows).fill_nan(None)

    @property
    def worthless(self) -> tuple[str, ...]:
        """Scenarios in which nothing is worth its cost: the oracle spends and earns nothing, in any run."""
        return tuple(name for name in self.scenarios if not self._most[name]["oracle"] > 0.0)

    @property
    def too_late(self) -> tuple[str, ...]:
        """Scenarios in which rewards came, but none within the deadline: it may be in the wrong unit."""
        by_end, in_time = METRICS[BY_END], METRICS[WITHIN_DEADLINE]
        return tuple(name for name, most in self._most.items() if most[by_end] > 0.0 and most[in_time] == 0.0)

    def policies_in(self, scenario: str) -> tuple[str, ...]:
        """The policies that played a scenario, in the order given.

        Args:
            scenario: Its name.
        """
        return self.policies if scenario in self.scenarios else ()

    @cached_property
    def _most(self) -> dict[str, dict[str, float]]:
        """By scenario the largest size of a number, or its maximum."""
        in_time = METRICS[WITHIN_DEADLINE]
        return {
            name: {
                column: max(float((np.abs(own[column]) if column == in_time else own[column]).max()) for own in runs)
                for column in (in_time, METRICS[BY_END], "oracle")
            }
            for name in self.scenarios
            for runs in [self._columns(name).values()]
        }

    def _columns(self, scenario: str) -> dict[str, dict[str, Floats]]:
        """Read the numbers of every run, by policy: rows are sorted by scenario, run and policy."""
        many = len(self.policies)
        rows = self.runs * many
        block = self.scan().slice(self.scenarios.index(scenario) * rows, rows).select(SUMMARISED).collect()
        tables = {name: block[name].to_numpy().reshape(-1, many) for name in SUMMARISED}
        return {one: {n: table[:, i].copy() for n, table in tables.items()} for i, one in enumerate(self.policies)}

    def __repr__(self) -> str:
        return (
            f"<StoredRuns: {len(self.policies)} policies on {len(self.scenarios)} scenarios, {self.runs:,} runs each, "
            f"seed {self.seed}, in {self.path.name!r}>"
        )


def said_by(path: Path) -> dict[str, Any]:
    """What a file says of what it holds; nothing where it is none of ours."""
    try:
        return dict(json.loads(pl.read_parquet_metadata(path)[METADATA]))
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError):
        return {}
