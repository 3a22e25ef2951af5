"""`doral campaign ...` from a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from doral.cli.campaigns import app
from tests.cli.processes import environment
from tests.live import writer

main = typer.Typer()
main.add_typer(app)  # as the main program does it


@main.callback()
def _common() -> None:
    pass


class Shell:
    def __init__(self, folder: Path) -> None:
        self.storage = f"sqlite:///{folder / 'c.db'}"
        self.problem = folder / "problem.json"
        self.problem.write_text(json.dumps(writer.PROBLEM.to_dict()))

    def __call__(self, *words: object, code: int = 0) -> str:
        arguments = ["campaign", *map(str, words), "--storage", self.storage]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr


@pytest.fixture
def doral_(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_whole_campaign(doral_: Shell, tmp_path: Path) -> None:
    created = doral_("create", "kits", "--problem", doral_.problem, "--option", "accept=2", "--seed", 1)
    assert created == "created kits\n"
    assert doral_("list") == "kits\n"
    made = json.loads(doral_("decide", "kits", "old", "--key", "v1", "--available", "a0", "--json"))
    assert (made["state"], made["arm"], made["key"]) == ("pending", "a0", "v1")
    assert json.loads(doral_("decide", "kits", "old", "--key", "v1", "--json")) == made
    other = doral_("decide", "kits", "young").split()
    assert doral_("feedback", "kits", made["id"], 0.7, "--actual-cost", 0.05).split()[:5] == [
        made["id"],
        "a0",
        "returned",
        "reward",
        "0.7",
    ]
    assert "cancelled" in doral_("cancel", "kits", other[0])
    assert "spent 0.05 + reserved 0" in doral_("show", "kits")
    report = json.loads(doral_("show", "kits", "--json"))
    assert report["decisions"]["returned"] == report["decisions"]["cancelled"] == 1
    assert "2 decisions" in doral_("export", "kits", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").height == 2
    assert doral_("close", "kits") == "closed kits\n"
    assert "closed" in doral_("decide", "kits", "old", code=2)


def test_what_is_wrong_is_said_in_one_line(doral_: Shell, tmp_path: Path) -> None:
    doral_("create", "kits", "--problem", doral_.problem)
    (tmp_path / "bad.json").write_text("{")
    for words, part, code in (
        (("create", "kits", "--problem", doral_.problem), "choose another", 2),
        (("create", "x", "--problem", tmp_path / "bad.json"), "must hold JSON", 2),
        (("create", "x", "--problem", tmp_path / "none.json"), "No such file", 1),
        (("create", "x", "--problem", doral_.problem, "--option", "accpt=2"), "did you mean 'accept'", 2),
        (("create", "x", "--problem", doral_.problem, "--option", "accept"), "NAME=VALUE", 2),
        (("show", "kit"), "did you mean 'kits'", 2),
        (("decide", "kits", "olde"), "did you mean 'old'", 2),
        (("feedback", "kits", "nonsense", 1), "give the id", 2),
        (("cancel", "kits", "00000000-7"), "another campaign", 2),
        (("export", "kits", tmp_path / "x.xls"), "must end in", 2),
    ):
        said = doral_(*words, code=code)
        assert part in said
        assert said.count("\n") == 1
    doral_.storage = f"sqlite:///{tmp_path / 'no' / 'c.db'}"
    assert "folder" in doral_("list", code=1)


def test_storage_from_the_environment(doral_: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    doral_("create", "kits", "--problem", doral_.problem)
    monkeypatch.setenv("DORAL_STORAGE", doral_.storage)
    assert CliRunner().invoke(main, ["campaign", "list"]).output == "kits\n"


def test_help_is_light() -> None:
    """The main program imports the commands to show its help: neither compiler nor database may come with them."""
    code = "import doral.cli.campaigns, sys; print([m for m in ('numba', 'sqlalchemy', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
