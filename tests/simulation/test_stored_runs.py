"""Runs that stream to a file: the rows of `simulate`, whatever happened on the way."""

from __future__ import annotations

import errno
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.processes import environment
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.simulation.api import Experiment
from doral.simulation.results import stream as streaming
from doral.simulation.results.stream import MOST_PARTS, Part, StoredRuns, simulate_to

POLICIES = ("doral", "random")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Part]:
    """Which parts are played, of one run each."""
    found: list[Part] = []
    play = streaming._play_part

    def counted(experiment: Experiment, part: Part) -> bytes:
        found.append(part)
        return play(experiment, part)

    monkeypatch.setattr(streaming, "_play_part", counted)
    monkeypatch.setattr(streaming, "MOST_PART_ROWS", len(POLICIES))
    return found


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_and_summary_are_those_of_simulate(tmp_path: Path, n_jobs: int) -> None:
    scenarios = ["stress/tiny", "stress/urgent"]
    stored = simulate_to(tmp_path / "a.parquet", POLICIES, scenarios, runs=5, seed=2, first_run=3, n_jobs=n_jobs)
    whole = doral.simulate(POLICIES, scenarios, runs=5, seed=2, first_run=3)
    assert pl.read_parquet(tmp_path / "a.parquet").equals(whole.runs())
    assert stored.summary().equals(whole.summary())
    assert (stored.scenarios, stored.policies) == (whole.scenarios, whole.policies)
    assert (stored.worthless, stored.too_late) == (whole.worthless, whole.too_late)
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_an_interrupted_call_goes_on_and_a_finished_one_plays_nothing(
    tmp_path: Path, played: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored(path: Path) -> StoredRuns:
        return simulate_to(path, POLICIES, "stress/tiny", runs=6, name="mine")

    counted = streaming._play_part

    def stopped(experiment: Experiment, part: Part) -> bytes:
        if len(played) == 4:
            raise KeyboardInterrupt
        return counted(experiment, part)

    monkeypatch.setattr(streaming, "_play_part", stopped)
    with pytest.raises(KeyboardInterrupt):
        stored(tmp_path / "a.parquet")
    monkeypatch.setattr(streaming, "_play_part", counted)
    assert not (tmp_path / "a.parquet").exists()
    stored(tmp_path / "a.parquet")
    assert [part.first_run for part in played] == list(range(6))
    stored(tmp_path / "a.parquet")
    assert len(played) == 6
    stored(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


# The same means, and the same delays: but other rewards are late.
_FAST, _SLOW = [(1.0, 1.0), (0.0, 20.0)], [(0.0, 1.0), (1.0, 20.0)]


def test_more_runs_are_played_and_other_settings_refused(tmp_path: Path, played: list[Part]) -> None:
    for runs, plays in ((2, 2), (3, 5), (3, 5)):
        simulate_to(tmp_path / "a.parquet", POLICIES, "stress/tiny", runs=runs)
        assert len(played) == plays
    other: list[tuple[Any, Any, int]] = [
        (POLICIES, "stress/tiny", 1),
        (POLICIES[::-1], "stress/tiny", 0),
        ([*POLICIES, "d-alp"], "stress/tiny", 0),
        (POLICIES, "stress/short", 0),
    ]
    for policies, scenario, seed in other:
        with pytest.raises(doral.InvalidValue) as refused:
            simulate_to(tmp_path / "a.parquet", policies, scenario, runs=3, seed=seed)
        assert refused.value.field == "path"
    assert len(played) == 5
    simulate_to(tmp_path / "a.parquet", POLICIES, "stress/tiny", runs=3, seed=1, name="another")
    assert len(played) == 8


def test_what_differs_is_named(tmp_path: Path, interrupted: Callable[[Path], list[Path]]) -> None:
    """Of a finished file, and of an unfinished one."""
    paid = replace(doral.scenario("stress/pay-on-success"), paid=[[0.5] * 5] * 10)
    problem = doral.Problem(arms=[doral.Arm("a")], contexts=["x"], budget=9, horizon=40, deadline=9)
    observed = [doral.Scenario(name="s", problem=problem, rows={"x": {"a": rows}}) for rows in (_FAST, _SLOW)]
    dearer = replace(observed[0], problem=replace(problem, budget=10.0))
    pairs: tuple[tuple[doral.Scenario, doral.Scenario, str], ...] = (
        (paid, replace(paid, paid=[[0.9] * 5] * 10), "paid"),
        (observed[0], observed[1], "rows.reward"),
        (observed[0], dearer, "problem.budget = 9.0 in the file, 10.0 now"),
    )
    for number, (one, other, differs) in enumerate(pairs):
        path = tmp_path / f"{number}.parquet"
        stored = simulate_to(path, "random", one, runs=1)
        assert stored.scan().collect().equals(doral.simulate("random", one, runs=1).runs())
        with pytest.raises(doral.InvalidValue, match=re.escape(differs)):
            simulate_to(path, "random", other, runs=1)
    interrupted(tmp_path / "a.parquet")
    with pytest.raises(doral.InvalidValue, match="seed = 0 in the file, 1 now"):
        simulate_to(tmp_path / "a.parquet", POLICIES, "stress/tiny", runs=4, seed=1)


def test_a_policy_in_python_is_known_by_its_name(tmp_path: Path, played: list[Part]) -> None:
    for name, plays in ((None, 1), (None, 1), ("second", 2)):
        stored = simulate_to(tmp_path / "a.parquet", Nth, "stress/tiny", runs=1, name=name)
        assert len(played) == plays
        assert stored.scan().collect().equals(doral.simulate(Nth, "stress/tiny", runs=1).runs())
    with pytest.raises(doral.InvalidValue, match="must have a name"):
        simulate_to(tmp_path / "b.parquet", lambda problem, seed: Nth(problem, seed), "stress/tiny", runs=1)


def test_parts_do_not_become_too_many() -> None:
    experiment = Experiment([doral.policy("random")], [doral.scenario("paper/diverse-pareto")], 0)
    parts = streaming._cut(experiment, 0, 10**6)
    assert len(parts) <= MOST_PARTS
    assert sum(part.runs for part in parts) == 10**6


@pytest.mark.parametrize("path", ["a.csv", "no/such/a.parquet", "", "."])
def test_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(doral.InvalidValue, match="path"):
        simulate_to(path, "random", "stress/tiny")


def test_a_driver_killed_in_the_middle_and_the_same_command_again(tmp_path: Path) -> None:
    words = ["simulate", "stress/tiny", "-p", "random", "--runs", "3500", "--runs-out", str(tmp_path / "a.parquet")]
    driver = subprocess.Popen([sys.executable, "-m", "doral", *words, "-j", "1"], env=environment())
    parts = tmp_path / "a.parquet.parts"
    ends = time.monotonic() + 90.0
    while not any(parts.glob("*.parquet")):
        assert time.monotonic() < ends
        assert driver.poll() is None
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "a.parquet").exists()
    kept = {path: path.stat().st_mtime_ns for path in parts.glob("[!.]*.parquet")}
    # The first run of what is kept is told apart: were it played again, the row would be right.
    first = next(iter(kept))
    marked = pl.read_parquet(first).with_columns(explored=pl.lit(77, dtype=pl.Int64))
    marked.write_parquet(first)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame["run"].to_list() == list(range(3500))
    assert frame.filter(pl.col("explored") == 77).height == marked.height > 1
    some = frame.filter(pl.col("explored") != 77).tail(5).drop("scenario", "policy")
    again = doral.simulate("random", "stress/tiny", runs=5, first_run=3495).runs().drop("scenario", "policy")
    assert some.equals(again)


def test_the_command_prints_the_same_table(tmp_path: Path) -> None:
    words = ["simulate", "stress/tiny", "-p", "doral", "-p", "random", "--runs", "4"]
    plain = CliRunner().invoke(app, words)
    stored = CliRunner().invoke(app, [*words, "--runs-out", str(tmp_path / "a.parquet")])
    assert (stored.exit_code, stored.stdout) == (plain.exit_code, plain.stdout)


def test_a_part_that_is_missing_is_played_again_and_foreign_files_stay(tmp_path: Path, played: list[Part]) -> None:
    parts = tmp_path / "a.parquet.parts"
    (parts / "mine").mkdir(parents=True)

    def stored() -> StoredRuns:
        return simulate_to(tmp_path / "a.parquet", POLICIES, "stress/tiny", runs=4)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pl, "scan_parquet", _no_space)
        with pytest.raises(OSError, match="No space"):
            stored()
    sorted(parts.glob("*.parquet"))[1].unlink()
    rows = stored().scan().collect()
    assert [part.first_run for part in played] == [0, 1, 2, 3, 1]
    assert rows.equals(doral.simulate(POLICIES, "stress/tiny", runs=4).runs())
    assert [path.name for path in parts.iterdir()] == ["mine"]


@pytest.fixture
def interrupted(played: list[Part]) -> Callable[[Path], list[Path]]:
    """All parts of four runs are there, and no whole file."""

    def stopped(path: Path) -> list[Path]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pl, "scan_parquet", _no_space)
            with pytest.raises(OSError, match="No space"):
                simulate_to(path, POLICIES, "stress/tiny", runs=4)
        played.clear()
        return sorted(path.with_name(f"{path.name}.parts").glob("*.parquet"))

    return stopped


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.parquet.parts").write_text("mine")
    (tmp_path / "d.parquet.parts").symlink_to(tmp_path / "nowhere")
    for name in "cd":
        with pytest.raises(doral.InvalidValue, match=rf"(?s)path.*{name}.parquet.*move it"):
            simulate_to(tmp_path / f"{name}.parquet", POLICIES, "stress/tiny", runs=4)
    assert (tmp_path / "c.parquet.parts").read_text() == "mine"


def test_brackets_in_a_name_are_brackets(tmp_path: Path) -> None:
    one, other = (simulate_to(tmp_path / f"r{end}.parquet", "random", "stress/tiny", seed=i) for i, end in _ENDS)
    assert not one.scan().collect().equals(other.scan().collect())
    assert other.scan().collect().equals(doral.simulate("random", "stress/tiny", seed=1).runs())
    assert other.summary().equals(doral.simulate("random", "stress/tiny", seed=1).summary())


_ENDS = ((0, "1"), (1, "[12]"))


def test_the_permissions_of_a_file_that_is_replaced_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    simulate_to(path, "random", "stress/tiny", runs=1)
    path.chmod(0o640)
    simulate_to(path, "random", "stress/tiny", runs=2)
    assert path.stat().st_mode & 0o777 == 0o640


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_two_do_not_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, play = tmp_path / "a.parquet", streaming._play_part

    def meanwhile(experiment: Experiment, part: Part) -> bytes:
        done = CliRunner().invoke(app, ["simulate", "stress/tiny", "-p", "random", "--runs-out", str(path)])
        assert done.exit_code == 2
        assert "a.parquet" in done.output
        assert "is being written by another process" in done.output
        return play(experiment, part)

    monkeypatch.setattr(streaming, "_play_part", meanwhile)
    assert simulate_to(path, POLICIES, "stress/tiny", runs=2).scan().collect().height == 4


class Nth:
    """Chooses the arm that is written in the class."""

    arm = 0

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        pass

    def decide(self, arrival: doral.Arrival) -> int | None:
        return self.arm if self.arm in arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_disk_that_is_full_at_the_end_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    words = ["simulate", "stress/tiny", "-p", "random", "--runs", "2", "--runs-out", str(path)]
    (tmp_path / "a.parquet.parts").mkdir()
    (tmp_path / "a.parquet.parts" / "whole.unfinished").symlink_to("/dev/full")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "_OWN", re.compile("nothing"))
        done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.exception
    assert "a.parquet: cannot be written" in done.output
    assert CliRunner().invoke(app, words).exit_code == 0


def test_runs_and_summary_go_to_two_files(tmp_path: Path) -> None:
    both = ["--out", str(tmp_path / "a.parquet"), "--runs-out", str(tmp_path / "." / "a.parquet")]
    done = CliRunner().invoke(app, ["simulate", "stress/tiny", "-p", "random", *both])
    assert done.exit_code == 2
    assert "name two" in done.output
