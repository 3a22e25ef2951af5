"""What a newcomer types first: help, lists, `init`, completion."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from doral.cli.app import app
from doral.cli.simulate import content, read_problem
from doral.engine.options import POLICY_NAMES
from doral.simulation.catalogue.descriptions import PRESET_WORDS, RIVAL_WORDS, SCENARIO_WORDS
from doral.simulation.catalogue.lookup import SCENARIOS
from doral.simulation.rivals.rival import RIVALS
from doral.simulation.scenario.files import read_scenario
from tests.cli.processes import environment

HEAVY = ("llvmlite", "polars", "scipy", "matplotlib", "sqlalchemy")


def said(*words: str, code: int = 0, columns: int = 80) -> str:
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


MAIN: Any = typer.main.get_command(app)  # (Typer's own click is private)


def commands(group: Any = MAIN) -> list[Any]:
    """Every command and group."""
    return [group, *(one for below in getattr(group, "commands", {}).values() for one in commands(below))]


def test_python_m_doral_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "doral", "--help"], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: python -m doral [OPTIONS] COMMAND")
    groups = re.findall(r"^(\w.*):$", done.stdout, flags=re.MULTILINE)
    assert groups == ["Options", "Start", "Simulate", "Your own data", "Live campaigns"]


def test_no_help_is_cut_off_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(commands()) > 30
    monkeypatch.setenv("COLUMNS", "80")
    for command in commands():
        help_ = command.make_context("doral", [], resilient_parsing=True).get_help()
        assert "--help" in help_
        assert all(len(line) <= 80 for line in help_.splitlines()), help_
        usage, _, rest = help_.partition("\n")
        assert usage.startswith("Usage: ")
        assert not re.search(r"\.\.\.|…", rest), help_


def test_every_policy_and_scenario_has_its_line() -> None:
    listed = [name for group in (*PRESET_WORDS.values(), *RIVAL_WORDS.values()) for name in group]
    assert sorted(listed) == sorted([*POLICY_NAMES, *RIVALS])
    assert sorted(name for group in SCENARIO_WORDS.values() for name in group) == sorted(SCENARIOS)


@pytest.mark.parametrize("command", ["policies", "scenarios"])
def test_lists_are_one_line_each_within_80_columns(command: str) -> None:
    lines = said(command).splitlines()
    assert all(len(line) <= 80 for line in lines)
    groups = (SCENARIO_WORDS,) if command == "scenarios" else (PRESET_WORDS, RIVAL_WORDS)
    for name, words in [pair for one in groups for group in one.values() for pair in group.items()]:
        assert [line for line in lines if line.split()[:1] == [name] and line.endswith(words)], name


@pytest.mark.parametrize("name", ["doral-otf", "doral:accept=3", "a/b", "status-quo"])
def test_a_policy_in_full(name: str) -> None:
    text = said("policies", name)
    assert all(len(line) <= 80 for line in text.splitlines())
    found = json.loads(said("policies", name, "--json"))
    assert set(found["defaults"]) == set(found["options"])
    assert set(found["meanings"]) == set(found["options"])
    for option in found["options"]:
        assert option in text


def test_what_an_option_means() -> None:
    text = said("policies", "doral-otf", "learner")
    assert text.startswith("learner: auto in doral-otf\n")
    assert '"early": from silence' in text
    assert "'learner'" in said("policies", "doral-otf", "learnr", code=2)


@pytest.mark.parametrize("name", ["paper/diverse-pareto", "stress/urgent", "stress/many-arms", "people/many"])
def test_a_scenario_in_full(name: str) -> None:
    text = said("scenarios", name)
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for word in ("arms", "budget", "horizon", "deadline", "rewards"):
        assert f"\n{word}" in text


def test_lists_as_json() -> None:
    scenarios = {one["name"]: one for one in json.loads(said("scenarios", "--json"))}
    assert set(scenarios) == set(SCENARIOS)
    paper = scenarios["paper/diverse-pareto"]
    assert (paper["deadline"], paper["clock"], paper["n_arms"]) == (500.0, "rounds", 10)
    assert paper["delays"][0][0] == {"type": "Pareto", "minimum": 200.0, "shape": 2.0}
    policies = {one["name"]: one for one in json.loads(said("policies", "--json"))}
    assert policies["doral"]["options"]["screening"] == "race"
    assert "'doral-otf'" in said("policies", "doral-oft", code=2)
    assert "'stress/tiny'" in said("scenarios", "stress/tyni", code=2)


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_init_writes_what_both_a_simulation_and_a_campaign_take(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"my problem.{kind}"
    assert said("init", str(path)) == f"wrote {path}\n"
    assert "not overwritten" in said("init", str(path), code=2)
    scenario = read_scenario(path)
    problem = read_problem(path).problem
    assert scenario.problem == problem
    assert scenario.name == "my problem"
    assert (problem.until, problem.deadline) == (56 * 86_400.0, 14 * 86_400.0)
    assert all(len(line) <= 80 for line in content(path).splitlines() if str(path) not in line)

    alone = tmp_path / f"alone.{kind}"
    said("init", str(alone), "--problem-only")
    assert read_problem(alone).problem == problem
    assert "holds a problem" in said("simulate", str(alone), code=2)

    storage = f"sqlite:///{tmp_path / 'c.db'}"
    assert said("campaign", "create", "first", str(path), "-s", storage) == "created first\n"
    table = said("simulate", str(path), "-p", "random", "--runs", "1", "--jobs", "1")
    assert table.splitlines()[2].split()[:3] == ["my", "problem", "random"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "FILE"), ("missing/a.toml", "missing/a.toml"), ("a.txt", "a.txt")],
)
def test_init_refuses_other_places(name: str, message: str, tmp_path: Path) -> None:
    assert message in said("init", str(tmp_path / name), code=2)
    assert not list(tmp_path.iterdir())


def completed(words: str, *, shell: str = "bash", folder: Path, **variables: str) -> list[str]:
    """What the shell's script asks for, and gets."""
    asked = {
        "_DORAL_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": words.rpartition(" ")[2],
    }
    code = (
        "import sys, atexit; sys.argv = ['doral']; "
        f"atexit.register(lambda: sys.stderr.write(repr([n for n in {HEAVY!r} if n in sys.modules]))); "
        "from doral.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment(), **asked, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "[]", done.stderr
    return [line for line in done.stdout.splitlines() if line]


def test_completion_of_values(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("")
    assert completed("doral simulate stress/t", folder=tmp_path) == ["stress/tiny"]
    (tmp_path / "mi$(touch owned).json").write_text("{}")
    assert completed("doral simulate mi", folder=tmp_path) == ["mine.json"]
    assert completed("doral simulate stress/tiny -p doral-", folder=tmp_path) == ["doral-otf"]
    assert completed("doral po", folder=tmp_path) == ["policies"]
    assert "status-quo" not in completed("doral campaign create x -p s", folder=tmp_path)
    for shell in ("zsh", "fish"):
        assert any(
            "stress/tiny" in line for line in completed("doral scenarios stress/t", shell=shell, folder=tmp_path)
        )


def test_completion_of_campaigns(tmp_path: Path) -> None:
    assert completed("doral campaign show ", folder=tmp_path) == []
    assert not (tmp_path / "campaigns.db").exists()
    problem = tmp_path / "p.json"
    problem.write_text(content(problem))
    storage = f"sqlite:///{tmp_path / 'campaigns.db'}"
    for name in ("spring", "summer", "s$(touch owned)", "s; true", "s*"):  # a shell would run the last ones
        said("campaign", "create", name, str(problem), "-s", storage)
    assert completed("doral campaign show su", folder=tmp_path) == ["summer"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert completed("doral campaign show s", folder=elsewhere, DORAL_STORAGE=storage) == ["spring", "summer"]
    assert completed(f"doral campaign show -s {storage} s", folder=elsewhere) == ["spring", "summer"]
    (elsewhere / "campaigns.db").write_bytes(b"no database")
    assert completed("doral campaign show s", folder=elsewhere) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, tmp_path: Path) -> None:
    asked = {"_DORAL_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-c", "from doral.cli import main; main()"],
        env={**environment(), **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_DORAL_COMPLETE" in done.stdout
    assert "doral" in done.stdout
