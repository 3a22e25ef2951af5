"""`doral.simulate_to`: runs written to a Parquet file as they finish; an interrupted call resumes."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from doral import _check, _files
from doral._forks import renew_in_child
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
from doral.simulation.loaded_code import NotKnown
from doral.simulation.results.stored_runs import METADATA, StoredRuns, said_by
from doral.simulation.results.tables import rows_of_runs
from doral.simulation.scenario.description import of_policy, of_truth
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.cluster import active
from doral.simulation.workers.packing import versions
from doral.simulation.workers.tasks import TASK_WORK, run_work, spread, spread_as_finished

try:
    import fcntl
except ImportError:  # not on this platform: nobody can be told apart
    HAS_LOCKS = False
else:
    HAS_LOCKS = True


class _Held:
    """A folder that is open. The kernel keeps a lock as long as anybody has it open, so a forked child closes it."""

    def __init__(self, folder: Path) -> None:
        self.number: int = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        self._is_open = True
        renew_in_child(self)

    def renew(self) -> None:
        self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.number)


@contextmanager
def only_one(folder: Path) -> Iterator[bool]:
    """Make the folder, and say whether nobody else writes there; who is told so has it until the block ends."""
    folder.mkdir(exist_ok=True)
    if not HAS_LOCKS:
        yield True
        return
    held = _Held(folder)
    try:
        yield _is_locked(held.number) and _is_there(held.number, folder)
    finally:
        held.close()


def _is_locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without such locks
        pass
    return True


def _is_there(held: int, folder: Path) -> bool:
    """Whoever had it may have finished and removed it, and somebody else made it anew."""
    try:
        return os.path.samestat(os.fstat(held), folder.stat())
    except FileNotFoundError:
        return False


KIND = ".parquet"
PARTS = ".parts"  # the folder next to the file, until that is whole
MOST_PART_ROWS = 20_000
MOST_PARTS = 10_000  # a folder with more is slow to read
ROW_GROUP = 50_000
_OF_THE_SYSTEM = "os error"
ONCE = "once"  # begins the key of what cannot be known again
TRIES = 3  # to play again what a disk has lost
_DIGITS = 32  # of a digest
# Parts say in their names what they are and what is in them; nothing else in the folder is touched.
_OWN = re.compile(
    r"(?P<part>(?P<key>once[0-9a-f]{28}|[0-9a-f]{32})(-\d+){3})(-(?P<digest>[0-9a-f]{32}))?\.parquet|.*\.unfinished"
)


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
    Python is known by its code as it is loaded, by what it holds and by what it reads by name, not by files that it
    reads: change the name of the output with those. One that holds what cannot be known again, such as a lock or a
    connection, always begins anew, and leaves finished parts of others as they are.

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
    folder = _folder_of(target)
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        remedy = f"needs the folder {folder.name} beside it, and something else has that name: move it, or name another"
        raise InvalidValue("path", str(path), remedy)
    return target


def _folder_of(target: Path) -> Path:
    """Where parts lie until the file is whole."""
    return target.with_name(f"{target.name}{PARTS}")


def _key(experiment: Experiment) -> str:
    """Another for whatever gives other numbers; one that never comes again where nobody can say that."""
    try:
        content = {
            "policies": [of_policy(one) for one in experiment.policies],
            "scenarios": [of_truth(one) for one in experiment.scenarios],
            "seed": experiment.seed,
            "versions": versions(),
        }
    except NotKnown:
        return f"{ONCE}{secrets.token_hex(14)}"
    return _digest(json.dumps(content, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


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
    folder = _folder_of(target)
    with only_one(folder) as is_alone:
        if not is_alone:
            raise InvalidValue("path", str(target), "is being written by another process; wait for it, or name another")
        whole = folder / f"whole{_files.UNFINISHED_SUFFIX}"
        for _ in range(TRIES):
            kept = _fill(folder, experiment, parts, str(about["key"]), n_jobs=n_jobs, progress=progress)
            if _is_joined(kept, whole, target, about):
                break
        else:
            raise OSError(f"{folder}: what was written there cannot be read again; is the disk sound? Name another")
        _files.keep_permissions(target, whole)
        whole.replace(target)
        _files.sync_folder(target.parent)
        for path in kept:
            path.unlink()
        with suppress(OSError):  # somebody keeps something else there
            folder.rmdir()


def _fill(
    folder: Path, experiment: Experiment, parts: Sequence[Part], key: str, *, n_jobs: int, progress: bool | None
) -> list[Path]:
    """Play what is missing; all parts in order."""
    names = [f"{key}-{part.place}-{part.first_run}-{part.runs}" for part in parts]
    kept = _kept(folder, key, names)
    missing = [part for part, name in zip(parts, names, strict=True) if name not in kept]
    works = [run_work(experiment.policies, experiment.scenarios[part.place]) * part.runs for part in missing]
    with Progress("simulating", works, "parts", is_shown=progress) as shown:
        for number, content in _finished(experiment, missing, works, n_jobs=n_jobs):
            name = names[missing[number].number]
            kept[name] = folder / f"{name}-{_digest(content)}{KIND}"
            _files.write_bytes(kept[name], content)
            shown.advance()
    return [kept[name] for name in names]


def _kept(folder: Path, key: str, names: Iterable[str]) -> dict[str, Path]:
    """Which of these parts are there and whole. All else of ours is removed: it is of other settings, or damaged.

    Who can never go on with anything leaves what others may go on with.
    """
    kept, wanted = {}, set(names)
    for path in folder.iterdir():
        found = _OWN.fullmatch(path.name)
        if found is None:
            continue
        if path.is_dir() and not path.is_symlink():
            remedy = f"is a folder, in the place of what is written to {folder.name}: move it, or name another output"
            raise InvalidValue("path", str(path), remedy)
        if found["part"] in wanted and _is_whole(path, found["digest"]):
            kept[found["part"]] = path
        elif not key.startswith(ONCE) or found["key"] is None or found["key"].startswith(ONCE):
            path.unlink()  # a link goes, what it points to stays
    return kept


def _is_whole(path: Path, digest: str | None) -> bool:
    """Whether a part is what was written: a disk may have lost some of it, or changed a bit."""
    try:
        return path.is_file() and not path.is_symlink() and _digest(path.read_bytes()) == digest
    except OSError:
        return False


def _is_joined(parts: Sequence[Path], whole: Path, target: Path, about: dict[str, object]) -> bool:
    """Write one file of them; False where a part cannot be read any more."""
    said = {METADATA: json.dumps(about)}
    try:
        frame = pl.scan_parquet(list(parts), glob=False)
        frame.sink_parquet(whole, row_group_size=ROW_GROUP, sync_on_close="all", metadata=said)
    except (OSError, pl.exceptions.PolarsError) as error:
        if not all(_is_whole(path, path.stem.rpartition("-")[2]) for path in parts):
            return False
        if _OF_THE_SYSTEM not in str(error):  # so Polars says that a disk is full
            raise
        raise OSError(f"{target}: cannot be written ({error}); finished parts are kept, begin again") from error
    return True


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
