"""Runs cut into tasks, computed here or on a cluster; results in order. Workers must have the same versions."""

from __future__ import annotations

import hashlib
import math
import pickle
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from doral._version import VERSION
from doral.compiled.key import modules_digest
from doral.engine.options import PolicyOptions
from doral.errors import InvalidValue
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.cluster import Engine, active

REMEDY = "install the same on both sides, on processors of one kind"
_LIBRARIES = ("numpy", "llvmlite", "scipy", "polars")


@cache
def versions() -> dict[str, str]:
    """Of ourselves, of all our sources, of Python, of the libraries that compute, and of what they compute with.

    Logarithms and powers are the C library's and NumPy's: another one may round the last bit otherwise, and so may the
    same on an older processor. Products of matrices are added up in one order (`simulation.sums`).
    """
    return {
        "doral": VERSION,
        "sources of doral": modules_digest("doral.simulation.api")[:16],
        "Python": platform.python_version(),
        "processor": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        "last bits of exp, log and power": _last_bits(),
        **{name: version(name) for name in _LIBRARIES},
    }


def _last_bits() -> str:
    """A digest of some thousand values, by NumPy and by the C library: both have several ways, by processor."""
    x = np.linspace(0.01, 30.0, 4_001)
    by_numpy = (np.exp(-x), np.log(x), np.log1p(x), np.expm1(-x), np.power(x, -1.7))
    by_library = [[math.exp(-one), math.log(one), math.pow(one, -1.7), math.lgamma(one)] for one in x.tolist()]
    return hashlib.sha256(np.array(by_numpy).tobytes() + np.array(by_library).tobytes()).hexdigest()[:8]


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs, both sides named; nothing where all is the same.

    >>> difference({"numpy": "2.1.0", "doral": "1"}, {"numpy": "2.2.0", "doral": "1"})
    'numpy 2.1.0 there, 2.2.0 here'
    """
    names = [name for name in ours if theirs.get(name) != ours[name]]
    return "; ".join(f"{name} {theirs.get(name, 'missing')} there, {ours[name]} here" for name in names)


Play = Callable[[Any, Any], Any]  # of what is shared, and one piece of work


@dataclass(frozen=True)
class Packed:
    """Bytes, with the versions that a worker must have."""

    versions: dict[str, str]
    content: bytes


def pack(play: Play, shared: object) -> Packed:
    """Classes of a program itself (`__main__`) travel whole, others by the name of their module."""
    return Packed(versions(), pack_pieces((play, shared)))


def pack_pieces(pieces: object) -> bytes:
    """In bytes: a task that cannot unpack them tells so; an engine that cannot may lose its worker."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(pieces))
    except Exception as error:  # a foreign object may raise anything
        remedy = f"cannot be sent to other processes ({error}): keep files, locks and connections out of it"
        raise InvalidValue("policy or scenario", pieces, remedy) from error


def work(packed: Packed, pieces: bytes) -> bytes:
    """One task, where it is computed. What it found is one string of bytes: engines send every array by itself."""
    differs = difference(versions(), packed.versions)
    if differs:
        raise InvalidValue("worker", _place(), f"{differs}: numbers would differ; {REMEDY}")
    play, shared = _unpacked(packed.content)
    try:
        found = [play(shared, piece) for piece in _loaded(pieces)]
    except SystemExit as error:  # it would end the worker, and the next one, without a reason
        remedy = "a policy or law ends the program, which would end the worker: raise an error instead"
        raise InvalidValue("SystemExit", error.code, remedy) from error
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)  # a worker that serves several experiments in turns unpacks each once
def _unpacked(content: bytes) -> tuple[Play, Any]:
    play, shared = _loaded(content)
    return play, shared


def _loaded(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        remedy = (
            f"worker {_place()} cannot read it ({error}): install the module that holds the policy or law on the "
            "workers, or write the class into the program that is run"
        )
        raise InvalidValue("policy or law", getattr(error, "name", None) or "of this program", remedy) from error


def _place() -> str:
    import os
    import socket

    return f"{socket.gethostname()}, process {os.getpid()}"


# All in rounds of a compiled policy, of which a core plays some two million in a second.
TASK_WORK = 3_000_000.0
RUN_WORK = 1_500.0  # what a run costs before its first round, for each policy
PYTHON_ROUND_WORK = 50.0
TASKS_PER_WORKER = 4  # at least, where there are so many pieces: the last ones are not waited for long


def run_work(policies: Sequence[object], scenario: Scenario) -> float:
    """How much one run of these policies is."""
    rounds = float(scenario.problem.expected_rounds)
    return sum(RUN_WORK + rounds * (1.0 if isinstance(one, PolicyOptions) else PYTHON_ROUND_WORK) for one in policies)


def cut(works: Sequence[float], *, workers: int, most_items: int) -> list[range]:
    """Which pieces of work, by their positions, are one task: neighbours, as many as fit.

    >>> cut([1.0] * 5, workers=1, most_items=2)
    [range(0, 1), range(1, 2), range(2, 3), range(3, 4), range(4, 5)]
    >>> cut([1.0] * 100, workers=2, most_items=10)[:2]
    [range(0, 10), range(10, 20)]
    """
    limit = min(TASK_WORK, sum(works) / (TASKS_PER_WORKER * workers))
    tasks: list[range] = []
    first, work = 0, 0.0
    for i, one in enumerate(works):
        if i > first and (work + one > limit or i - first == most_items):
            tasks.append(range(first, i))
            first, work = i, 0.0
        work += one
    if first < len(works):
        tasks.append(range(first, len(works)))
    return tasks


AHEAD = 2  # tasks for each worker that are under way or wait for it: none is idle while results travel
REACH = 8  # tasks for each worker, at most, between the last result that was handed out and the last task given out
SEGMENT = 32  # the same where joblib itself computes, and takes all that it is given

Prefer = Literal["threads", "processes"]


def spread(
    play: Callable[[Any, Any], Any],
    shared: object,
    pieces: Sequence[Any],
    *,
    works: Sequence[float],
    n_jobs: int,
    prefer: Prefer,
    most_pieces: int = 1_000_000,
) -> Iterator[Any]:
    """`play(shared, piece)` of all pieces, in their order. `works` say how much each is, `most_pieces` go together.

    Not many more results are held than workers can make in the meantime, however long the first one takes.
    """
    if n_jobs == 1:
        for piece in pieces:
            yield play(shared, piece)
        return
    engine = active()
    if engine is None:
        yield from _by_joblib(play, shared, pieces, works, n_jobs=n_jobs, prefer=prefer, most_pieces=most_pieces)
        return
    workers = engine.workers() if n_jobs < 0 else n_jobs
    tasks = [[pieces[i] for i in task] for task in cut(works, workers=workers, most_items=most_pieces)]
    for _, found in _on_engine(engine, play, shared, tasks, n_jobs=n_jobs, is_ordered=True):
        yield from found


def spread_as_finished(
    engine: Engine, play: Callable[[Any, Any], Any], shared: object, pieces: Sequence[Any], *, n_jobs: int
) -> Iterator[tuple[int, Any]]:
    """The same on an engine, each piece a task: its position and result, as soon as it is there."""
    tasks = [[piece] for piece in pieces]
    for number, found in _on_engine(engine, play, shared, tasks, n_jobs=n_jobs, is_ordered=False):
        yield number, found[0]


def _on_engine(
    engine: Engine,
    play: Callable[[Any, Any], Any],
    shared: object,
    tasks: Sequence[Sequence[Any]],
    *,
    n_jobs: int,
    is_ordered: bool,
) -> Iterator[tuple[int, list[Any]]]:
    """Finished tasks, as they come or in order; then none is begun that is far ahead of the one that is waited for."""
    packed = pack(play, shared)
    common = engine.share(packed)
    running: dict[Any, int] = {}
    waiting: dict[int, list[Any]] = {}
    given, due = 0, 0
    try:
        while given < len(tasks) or running:
            workers = engine.workers()  # anew: clusters grow and shrink
            at_once = AHEAD * workers + 1 if n_jobs < 0 else n_jobs
            last = min(len(tasks), due + REACH * max(workers, at_once)) if is_ordered else len(tasks)
            while given < last and len(running) < at_once:
                running[engine.submit(common, pack_pieces(tasks[given]))] = given
                given += 1
            for handle in engine.first_done(list(running)):
                waiting[running.pop(handle)] = pickle.loads(engine.result(handle))
            ready = sorted(waiting)
            for number in ready:
                if is_ordered and number != due:
                    break
                due += 1
                yield number, waiting.pop(number)
    finally:
        engine.forget(running)


def _by_joblib(
    play: Callable[[Any, Any], Any],
    shared: object,
    pieces: Sequence[Any],
    works: Sequence[float],
    *,
    n_jobs: int,
    prefer: Prefer,
    most_pieces: int,
) -> Iterator[Any]:
    import joblib  # here: a single worker does not wait for it, nor for its bookkeeping in every run
    from joblib.parallel import get_active_backend

    workers = joblib.effective_n_jobs(n_jobs)
    tasks = cut(works, workers=workers, most_items=most_pieces)
    streams = getattr(get_active_backend(prefer=prefer)[0], "supports_return_generator", False)
    how = {"return_as": "generator"} if streams else {}  # the others give a segment at once
    with joblib.Parallel(n_jobs=n_jobs, prefer=prefer, batch_size=1, **how) as parallel:
        for first in range(0, len(tasks), SEGMENT * workers):
            segment = tasks[first : first + SEGMENT * workers]
            for found in parallel(
                joblib.delayed(_several)(play, shared, [pieces[i] for i in task]) for task in segment
            ):
                yield from found


def _several(play: Callable[[Any, Any], Any], shared: object, pieces: Sequence[Any]) -> list[Any]:
    return [play(shared, piece) for piece in pieces]
