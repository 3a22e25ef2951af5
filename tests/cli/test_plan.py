"""`doral plan` as people and scripts meet it. What it plans is tried elsewhere: here a plan is at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import doral
from doral.cli.app import app
from doral.cli.terminal import Progress
from doral.planning import make
from doral.planning.plan import Plan
from doral.planning.report.text import text
from tests.planning.plans import minimal_plan

ROWS = (
    "sent_at,group,channel,came,answered_at\n2026-03-02,young,letter,1,2026-03-04\n2026-03-03,old,call,0,2026-03-09\n"
)
COLUMNS = ["--time", "sent_at", "--context", "group", "--arm", "channel", "--reward", "came"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the planner was asked for."""
    found: dict[str, Any] = {}

    def plan(log: Any, *, on_progress: Any, **given: Any) -> Plan:
        found.update(given, log=log)
        on_progress(0.5, "policies play")
        return minimal_plan()

    monkeypatch.setattr(make, "plan", plan)
    return found


def run(folder: Path, *words: str) -> Result:
    (folder / "log.csv").write_text(ROWS)
    return CliRunner().invoke(app, ["plan", str(folder / "log.csv"), "--out-dir", str(folder / "out"), *words])


def test_the_reading_and_progress_are_on_standard_error_and_the_answer_on_standard_output(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    done = run(tmp_path, *COLUMNS, "--budget", "500", "--deadline", "14d", "--policy", "random", "--seed", "3")
    assert done.exit_code == 0
    assert done.stdout == text(minimal_plan()) + "\n"
    assert "sent_at" in done.stderr
    assert "policies play" in done.stderr
    assert done.stderr.rstrip().endswith(f"page: {tmp_path / 'out' / 'index.html'}")
    assert (tmp_path / "out" / "plan.json").exists()
    assert set(asked["log"].arms) == {"letter", "call"}
    assert (asked["budget"], asked["deadline"], asked["seed"]) == (500.0, "14d", 3)
    assert [one.name for one in asked["policies"]] == ["random"]
    columns = "--time sent_at --context group --arm channel --reward came"
    assert asked["command"].endswith(f"log.csv --budget 500 --deadline 14d {columns} --policy random --seed 3")


def test_scripts_have_json_and_nothing_else(tmp_path: Path, asked: dict[str, Any]) -> None:
    done = run(tmp_path, "--json", "--quiet", *COLUMNS)
    assert json.loads(done.stdout)["answer"] == list(minimal_plan().answer)
    assert done.stderr == f"page: {tmp_path / 'out' / 'index.html'}\n"
    assert asked["policies"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "dorral-otf"], "doral-otf"),
        (["--jobs", "0"], "--jobs 0:"),
        (["--arm", "chanel"], "channel"),
        (["--create", "spring", "--storage", "memory://"], "--storage 'memory://':"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_before_the_work(
    tmp_path: Path, asked: dict[str, Any], words: list[str], said: str
) -> None:
    done = run(tmp_path, *words)
    assert done.exit_code == 2
    assert done.stderr.startswith("doral: ")
    assert said in done.stderr
    assert not asked
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_or_in_the_way_is_named(tmp_path: Path, asked: dict[str, Any]) -> None:
    gone = CliRunner().invoke(app, ["plan", str(tmp_path / "gone.csv")])
    assert gone.exit_code in {1, 2}
    assert "gone.csv" in gone.stderr
    (tmp_path / "out").write_text("mine")
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "must be a folder" in done.stderr
    assert not asked


def test_a_name_that_is_taken_is_refused_before_the_work(tmp_path: Path, asked: dict[str, Any]) -> None:
    storage = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(storage) as store:
        store.create("spring", minimal_plan().problem, clock="rounds")
    done = run(tmp_path, *COLUMNS, "--create", "spring", "--storage", storage)
    assert done.exit_code == 2
    assert "--create 'spring':" in done.stderr
    assert not asked


def test_a_plan_that_recommends_nothing_creates_a_campaign_only_with_the_policy_that_is_named(tmp_path: Path) -> None:
    rows = ["arm,reward", *(f"{'ab'[one % 2]},{one % 3 == 0:d}" for one in range(60))]
    (tmp_path / "equal.csv").write_text("\n".join(rows))
    storage = f"sqlite:///{tmp_path / 'campaigns.db'}"
    words = [
        "plan",
        str(tmp_path / "equal.csv"),
        "--truths",
        "4",
        "--out-dir",
        str(tmp_path / "out"),
        "--storage",
        storage,
    ]
    words += ["--create", "spring", "--quiet", "--policy", "doral-otf"]
    done = CliRunner().invoke(app, [*words, "--policy", "random"])
    assert done.exit_code == 2
    assert "--create 'spring':" in done.stderr
    assert "--policy" in done.stderr
    assert (tmp_path / "out" / "index.html").exists()
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    with doral.open(storage) as store:
        assert "spring" in store.list()


def test_progress_that_is_no_terminal_is_a_line_per_stage_and_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as shown:
        for done in range(1001):
            shown(done / 1000, "policies play" if done > 100 else "reading")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("reading")
    assert 10 <= len(lines) <= 13
    with Progress(is_quiet=True) as shown:
        shown(0.5, "policies play")
    assert capsys.readouterr().err == ""
