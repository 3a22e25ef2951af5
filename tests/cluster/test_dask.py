"""On a Dask cluster of separate processes: the same numbers to the bit, whoever dies."""

from __future__ import annotations

import asyncio
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest
from distributed import Client
from distributed.comm.core import CommClosedError

import doral
from doral.engine.options import make_policy
from doral.experiments.kit.batches import Batch, Cell, run_cells
from doral.simulation.results.stream import simulate_to
from doral.simulation.workers.cluster import ClusterError
from doral.simulation.workers.dask_engine import OnDask
from doral.simulation.workers.tasks import spread
from tests.cli.processes import environment
from tests.cluster.conftest import START_S, Dask, deadly, until

POLICIES = ("doral", "random")
PACKAGE = Path(doral.__file__).parent


ELSEWHERE = """
class Elsewhere:
    def __init__(self, problem, seed):
        pass

    def decide(self, arrival):
        return None

    def observe(self, answer):
        pass
"""


def test_the_same_bits_with_a_worker_killed_between_results(dask: Dask) -> None:
    played = 0

    def on_run() -> None:
        nonlocal played
        played += 1
        if played == 5:
            dask.kill_one()

    here = doral.simulate(POLICIES, "stress/tiny", runs=150)
    assert doral.simulate(POLICIES, "stress/tiny", runs=150, n_jobs=-1, on_run=on_run) == here
    assert played == 150
    assert len(dask.workers()) == 1


def test_a_policy_of_the_program_travels_and_a_task_that_kills_its_worker_is_played_again(
    dask: Dask, tmp_path: Path
) -> None:
    made = deadly(tmp_path / "mark")
    there = doral.simulate(made, "stress/tiny", runs=4, n_jobs=-1)
    assert len(dask.workers()) == 1
    assert there == doral.simulate(made, "stress/tiny", runs=4)


def test_a_policy_that_workers_do_not_have_is_refused(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("only_here").Elsewhere
    with pytest.raises(doral.InvalidValue, match="only_here.*install the module"):
        doral.simulate(made, "stress/tiny", runs=2, n_jobs=-1)


def test_a_plan_with_a_policy_that_workers_do_not_have_is_refused_and_nobody_dies(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not_there.py").write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("not_there").Elsewhere
    with pytest.raises(doral.InvalidValue, match="not_there.*install the module"):
        doral.plan(_log(), policies=[made], truths=3, n_jobs=-1)
    assert len(dask.workers()) == 2


def test_pieces_that_workers_cannot_unpack_are_an_error_of_the_task(
    dask: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_piece.py").write_text("class Piece:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    piece = importlib.import_module("a_piece").Piece()
    with pytest.raises(doral.InvalidValue, match="a_piece.*install the module"):
        list(spread(max, 0, [piece], works=[1.0], n_jobs=-1, prefer="threads"))
    assert len(dask.workers()) == 2


def test_a_policy_that_ends_the_program_does_not_end_workers(dask: Dask) -> None:
    class Ends:
        def __init__(self, problem: doral.Problem, seed: int) -> None:
            sys.exit("enough")

        def decide(self, arrival: doral.Arrival) -> int | None:
            return None

        def observe(self, answer: doral.Answer) -> None:
            pass

    with pytest.raises(doral.InvalidValue, match="SystemExit.*enough.*raise an error"):
        doral.simulate(Ends, "stress/tiny", runs=2, n_jobs=-1)
    assert len(dask.workers()) == 2


def test_a_client_that_cannot_be_used_is_told(dask: Dask, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> dict[str, int]:
        raise CommClosedError("gone")

    engine = OnDask(client)
    monkeypatch.setattr(client, "ncores", lost)
    with pytest.raises(ClusterError, match="lost"):
        engine.workers()
    closed = Client(dask.address, set_as_default=False)
    closed.close()
    with joblib.parallel_config("dask", client=closed), pytest.raises(ClusterError, match="closed.*connect anew"):
        doral.simulate("random", "stress/tiny", runs=2, n_jobs=-1)


def test_an_asynchronous_client_is_refused(dask: Dask) -> None:
    async def used() -> None:
        async with Client(dask.address, asynchronous=True, set_as_default=False) as own:
            with joblib.parallel_config("dask", client=own), pytest.raises(doral.InvalidValue, match="asynchronous"):
                doral.simulate("random", "stress/tiny", runs=2, n_jobs=-1)

    asyncio.run(used())


def _log() -> dict[str, Any]:
    draws = np.random.default_rng(3)
    arm = np.where(draws.random(300) < 0.5, "letter", "call")
    return {"arm": arm, "reward": (draws.random(300) < 0.5).astype(int)}


def test_a_plan_is_the_same(dask: Dask) -> None:
    one, other = (doral.plan(_log(), policies=["random"], truths=6, n_jobs=jobs) for jobs in (1, -1))
    assert one.earnings == other.earnings


class Killer:
    """Kills a worker when the first batch is done."""

    def __init__(self, dask: Dask) -> None:
        self._dask, self.done, self.total = dask, 0, 0

    def begin(self, *, rounds: int) -> None:
        self.total = rounds

    def batch(self, batch: Batch, *, is_kept: bool) -> None:
        if self.done == 0:
            self._dask.kill_one()

    def advance(self, rounds: int) -> None:
        self.done += rounds


def test_batches_of_an_experiment_are_kept_as_they_finish(dask: Dask, tmp_path: Path) -> None:
    cell = Cell(study="s", scenario=doral.scenario("stress/tiny"), policies=tuple(map(make_policy, POLICIES)), runs=80)
    told = Killer(dask)
    there = run_cells([cell], seed=3, n_jobs=-1, parts=tmp_path / "there", progress=told)
    here = run_cells([cell], seed=3, n_jobs=1, parts=tmp_path / "here", progress=Killer(dask))
    assert (there.cells[0].result, there.parts) == (here.cells[0].result, here.parts)
    assert told.done == told.total > 0
    assert there.kept_batches == 0
    again = run_cells([cell], seed=3, n_jobs=-1, parts=tmp_path / "there", progress=told)
    assert again.kept_batches == len(there.parts) == 8


def test_runs_stream_to_the_same_file(dask: Dask, tmp_path: Path) -> None:
    there = simulate_to(tmp_path / "there.parquet", "random", ["stress/tiny", "stress/urgent"], runs=20, n_jobs=-1)
    here = simulate_to(tmp_path / "here.parquet", "random", ["stress/tiny", "stress/urgent"], runs=20)
    assert there.scan().collect().equals(here.scan().collect())
    assert there.summary().equals(here.summary())


def test_the_commands_with_a_worker_killed(dask: Dask, tmp_path: Path) -> None:
    """`doral experiment compare --cluster`: same tables, claims and settings."""
    words = [
        "experiment",
        "compare",
        "stress/tiny",
        "-p",
        "doral",
        "-p",
        "random",
        "--runs",
        "60",
        "--quick",
        "--main-only",
    ]
    command = [sys.executable, "-m", "doral", *words]
    started = subprocess.Popen(
        [*command, "--out-dir", "there", "--cluster", dask.address],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: started.poll() is not None or any(tmp_path.glob("there/parts/*.npz")), what="a finished part")
    dask.kill_one()
    out, errors = started.communicate(timeout=120)
    assert started.returncode == 0, errors
    done = subprocess.run(
        [*command, "--out-dir", "here", "-j", "2"], cwd=tmp_path, env=environment(), capture_output=True, timeout=120
    )
    assert out.replace(b"there", b"here") == done.stdout
    for name in ("shares.csv", "claims.json", "settings.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_workers_with_other_sources_are_refused(dask: Dask, client: Client, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "doral", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "doral" / "simulation" / "api.py").open("a") as file:
        file.write("def another() -> int:\n    return 1\n")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    other = dask.add_worker(PYTHONPATH=path)
    until(lambda: len(client.ncores()) == 3, what="a third worker")
    try:
        with joblib.parallel_config("dask", client=client), pytest.raises(doral.InvalidValue) as refused:
            doral.simulate("random", "paper/similar-geometric", runs=60, n_jobs=-1)
    finally:
        other.kill()
        other.wait()
    assert "sources of doral" in str(refused.value)
    assert "there" in str(refused.value)
    assert "here" in str(refused.value)
    assert pl.__version__ not in str(refused.value)  # what is the same is not named


def test_a_scheduler_that_dies_is_told_in_a_line(tmp_path: Path) -> None:
    own = Dask()
    try:
        own.add_worker()
        words = ["simulate", "stress/tiny", "-p", "random", "--runs", "200000", "--runs-out", "a.parquet"]
        command = [sys.executable, "-m", "doral", *words, "--cluster", own.address]
        with Client(own.address, timeout=START_S, set_as_default=False) as waiting:
            waiting.wait_for_workers(1, timeout=START_S)
        started = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE)
        until(lambda: started.poll() is not None or any(tmp_path.glob("a.parquet.parts/[!.]*")), what="a finished part")
        own.kill_scheduler()
        _, errors = started.communicate(timeout=60)
    finally:
        own.stop()
    assert started.returncode == 1
    assert errors.decode().count("\n") == 1
    assert "was lost in the middle of the work" in errors.decode()
