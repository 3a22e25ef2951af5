"""Runs cut into tasks, computed here or on a cluster; results in order."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from doral.engine.options import PolicyOptions
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.workers.cluster import Engine, active
from doral.simulation.workers.packing import pack, pack_pieces

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
