"""`doral log check`, and what `doral plan` asks before it begins: whole commands, spelled as they are typed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import doral
from doral.cli.app import app
from doral.cli.log import COLUMN_OPTIONS, as_options
from doral.logs.read import ColumnOptions
from tests.logs.foreign import csv, truth


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def unclear(tmp_path: Path) -> Path:
    """Two columns could be the arm, two the outcome."""
    made, rng = truth(seed=1), np.random.default_rng(1)
    columns = {
        "sent": [one.isoformat() for one in made.time],
        "channel": made.arm,
        "my segment": rng.choice(["A", "No letter"], len(made)).tolist(),
        "visited": rng.integers(0, 2, len(made)).tolist(),
        "bought": [int(one or 0) for one in made.reward],
    }
    path = tmp_path / "my log.csv"
    path.write_bytes(csv(columns))
    return path


def test_every_option_of_reading_is_on_the_command_line() -> None:
    assert set(COLUMN_OPTIONS) == set(ColumnOptions.__annotations__) - {"arms", "strata", "max_rows"}
    for command in (["plan"], ["evaluate"], ["log", "check"]):
        text = call(*command, "--help").stdout
        assert all(f"--{one.replace('_', '-')}" in text for one in COLUMN_OPTIONS), command


@pytest.mark.parametrize("command", [["plan"], ["evaluate"], ["log", "check"]])
def test_what_is_unclear_is_asked_with_a_command_that_works(unclear: Path, command: list[str]) -> None:
    asked = call(*command, str(unclear), "--currency", "EUR")
    assert asked.exit_code == 2
    assert asked.stdout == ""
    assert "'my segment'" in asked.stderr
    assert not any(f"{one}=" in asked.stderr for one in COLUMN_OPTIONS)  # not as Python spells it
    lines = [one.strip() for one in asked.stderr.splitlines()]
    (printed,) = [one for one in lines if one.startswith(f"doral {' '.join(command)} ")]
    words = shlex.split(printed)[1:]
    assert str(unclear) in words
    assert "--currency" in words
    options = {f"--{one.replace('_', '-')}" for one in COLUMN_OPTIONS}
    pairs = [(words[i], words[i + 1]) for i, one in enumerate(words) if one in options]
    checked = call("log", "check", str(unclear), *(word for pair in pairs for word in pair))
    assert checked.exit_code == 0, checked.stderr


def test_a_log_that_is_clear_is_shown_with_the_next_command(tmp_path: Path) -> None:
    made = truth(seed=2)
    columns = {
        "contacted_at": [one.isoformat() for one in made.time],
        "channel": made.arm,
        "booked": [None if one is None else int(one) for one in made.reward],
        "booked_at": [None if one is None else one.isoformat() for one in made.answered],
        "cost_eur": made.cost,
    }
    path = tmp_path / "log.csv"
    path.write_bytes(csv(columns))
    done = call("log", "check", str(path))
    assert done.exit_code == 0
    assert "currency is 'EUR'" in done.stdout
    said = json.loads(call("log", "check", str(path), "--json").stdout)
    assert said["is_clear"]
    assert {one["option"]: one["value"] for one in said["assumptions"]}["arm"] == "channel"
    words = shlex.split(said["command"])
    assert words[:3] == ["doral", "plan", str(path)]
    again = call("log", "check", *words[2:], "--json")
    settled = json.loads(again.stdout)
    assert settled["arrivals"] == said["arrivals"]
    assert {one["option"] for one in settled["assumptions"]} <= {"observed_until"}  # nothing is guessed any more


def test_what_is_unclear_is_data_for_scripts(unclear: Path) -> None:
    done = call("log", "check", str(unclear), "--json")
    assert done.exit_code == 2
    said = json.loads(done.stdout)
    assert not said["is_clear"]
    assert {one["role"] for one in said["questions"]} == {"arm", "reward"}
    assert [one["column"] for one in said["columns"]] == ["sent", "channel", "my segment", "visited", "bought"]


def test_a_deadline_without_a_unit_is_refused_with_the_choices(tmp_path: Path) -> None:
    made = truth(seed=3)
    columns = {
        "time": [one.isoformat() for one in made.time],
        "arm": made.arm,
        "reward": [one or 0 for one in made.reward],
    }
    path = tmp_path / "log.csv"
    path.write_bytes(csv(columns))
    done = call("plan", str(path), "--deadline", "14", "--out-dir", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "--deadline '14':" in done.stderr
    assert all(choice in done.stderr for choice in ("14h", "14d", "14w"))
    with pytest.raises(doral.InvalidValue, match="14d"):
        doral.plan(path, deadline=14)


def test_a_wrong_name_is_said_as_the_option_is_typed(unclear: Path) -> None:
    done = call("log", "check", str(unclear), "--arm", "chanel")
    assert done.exit_code == 2
    assert done.stderr.startswith("doral: --arm 'chanel':")
    assert "'channel'" in done.stderr


def test_arguments_become_options() -> None:
    assert as_options("say with arm= which") == "say with --arm which"
    assert as_options("observed_until='2026-01-01' says otherwise") == "--observed-until 2026-01-01 says otherwise"
    assert as_options("charm=3 is no option") == "charm=3 is no option"
