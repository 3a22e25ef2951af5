"""Blocks are kept, found again, and give the same numbers however they came about."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from doral.engine.options import make_policy
from doral.errors import InvalidValue
from doral.experiments.kit.batches import (
    BATCH_POLICIES,
    BATCH_RUNS,
    Batch,
    Cell,
    Extent,
    Finished,
    batches_of,
    run_cells,
)
from doral.experiments.paper import cells as paper
from doral.experiments.paper.cells import ABLATION
from doral.simulation.api import simulate
from doral.simulation.results import files as saved
from doral.simulation.results.result import SimulationResult

TINY = Extent(runs=BATCH_RUNS + 2, side_runs=1, shrink=100)


def tiny_cell() -> Cell:
    return next(iter(paper.comparison(TINY)))


class Recorder:
    """Remembers what it was told."""

    def __init__(self, *, stop_after: int | None = None) -> None:
        self.total = 0
        self.done = 0
        self.kept: list[bool] = []
        self._stop_after = stop_after

    def begin(self, *, rounds: int) -> None:
        self.total = rounds

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        if len(self.kept) == self._stop_after:
            raise KeyboardInterrupt
        self.kept.append(is_kept)

    def advance(self, rounds: int) -> None:
        self.done += rounds


def run(parts: Path, recorder: Recorder | None = None, *, n_jobs: int = 1, seed: int = 3) -> Finished:
    return run_cells([tiny_cell()], seed=seed, n_jobs=n_jobs, parts=parts, progress=recorder or Recorder())


def same(one: SimulationResult, other: SimulationResult) -> bool:
    assert one.seed == other.seed
    arrays = ("rounds", "curve", "course")
    for mine, yours in zip(one.outcomes, other.outcomes, strict=True):
        plain = [
            {field.name: getattr(each, field.name) for field in dataclasses.fields(each) if field.name not in arrays}
            for each in (mine, yours)
        ]
        if plain[0] != plain[1]:
            return False
        for name in arrays:
            ours, theirs = getattr(mine, name), getattr(yours, name)
            if ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
                return False
    return True


def test_blocks_cover_the_runs() -> None:
    found = [(batch.first_run, batch.runs) for batch in batches_of(tiny_cell())]
    assert found == [(0, BATCH_RUNS), (BATCH_RUNS, 2)]


def test_interrupted_resumed_and_parallel_runs_agree_to_the_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole").cells[0].result
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", Recorder(stop_after=1))
    recorder = Recorder()
    resumed = run(tmp_path / "parts", recorder, n_jobs=2)
    assert recorder.kept == [True, False]
    assert (resumed.batches, resumed.kept_batches) == (2, 1)
    assert recorder.done == recorder.total
    assert same(resumed.cells[0].result, whole)
    cell = tiny_cell()
    assert same(simulate(cell.policies, cell.scenario, runs=cell.runs, seed=3), whole)


def test_a_finished_experiment_is_not_run_again(tmp_path: Path) -> None:
    first = run(tmp_path)
    changed_ns = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    recorder = Recorder()
    again = run(tmp_path, recorder)
    assert recorder.kept == [True, True]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == changed_ns
    assert same(first.cells[0].result, again.cells[0].result)


def test_a_damaged_part_is_run_again(tmp_path: Path) -> None:
    first = run(tmp_path)
    for position, path in enumerate(sorted(tmp_path.iterdir())):
        path.write_bytes(path.read_bytes()[: 100 if position else 0])
    recorder = Recorder()
    again = run(tmp_path, recorder)
    assert recorder.kept == [False, False]
    assert same(first.cells[0].result, again.cells[0].result)


def test_keys_tell_everything_apart() -> None:
    cell = tiny_cell()
    batch = Batch(cell=cell, policies=cell.policies, first_run=0, runs=5)
    problem = dataclasses.replace(cell.scenario.problem, budget=800)
    other_scenario = dataclasses.replace(cell.scenario, problem=problem)
    drifting = dataclasses.replace(cell.scenario, phases=2)
    others = [
        dataclasses.replace(batch, cell=dataclasses.replace(cell, scenario=drifting)),
        dataclasses.replace(batch, first_run=1),
        dataclasses.replace(batch, runs=6),
        dataclasses.replace(batch, policies=cell.policies[:3]),
        dataclasses.replace(batch, policies=(make_policy("doral", accept=4),)),
        dataclasses.replace(batch, cell=dataclasses.replace(cell, keep_curves=False)),
        dataclasses.replace(batch, cell=dataclasses.replace(cell, scenario=other_scenario)),
    ]
    keys = [batch.key(seed=0), batch.key(seed=1), *(other.key(seed=0) for other in others)]
    assert len(set(keys)) == len(keys)
    assert batch.key(seed=0) == dataclasses.replace(batch, cell=tiny_cell()).key(seed=0)


def test_policies_in_several_blocks_play_the_same_draws(tmp_path: Path) -> None:
    cell = dataclasses.replace(tiny_cell(), runs=2, policies=tuple(variant.policy for variant in ABLATION))
    assert len(batches_of(cell)) == math.ceil(len(cell.policies) / BATCH_POLICIES)
    found = run_cells([cell], seed=0, n_jobs=2, parts=tmp_path, progress=Recorder()).cells[0].result
    together = simulate(cell.policies, cell.scenario, runs=2)
    for one in cell.policies:
        rewards = found.rewards(cell.scenario.name, one.name)
        assert rewards.tolist() == together.rewards(cell.scenario.name, one.name).tolist()


def test_sides_keep_no_curves(tmp_path: Path) -> None:
    cell = dataclasses.replace(tiny_cell(), keep_curves=False, runs=1)
    found = run_cells([cell], seed=0, n_jobs=1, parts=tmp_path, progress=Recorder())
    assert all(one.curve.shape == (0, 3) for one in found.cells[0].result.outcomes)
    assert all(one.course.shape == (0, 2) for one in found.cells[0].result.outcomes)
    saved.save(found.cells[0].result, tmp_path / "result.npz")
    assert same(saved.load(tmp_path / "result.npz"), found.cells[0].result)


def test_saved_results_read_back_equal(tmp_path: Path) -> None:
    cell = tiny_cell()
    result = simulate(cell.policies, cell.scenario, runs=2)
    saved.save(result, tmp_path / "result.npz")
    assert same(saved.load(tmp_path / "result.npz"), result)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"text"])
def test_what_is_no_saved_result_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidValue, match="result.npz"):
        saved.load(path)
