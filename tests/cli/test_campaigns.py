"""`doral campaign ...` from a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from tests.cli.campaign_shell import Shell, main
from tests.cli.processes import environment

COMMANDS = (
    *("create", "list", "show", "close"),
    *("decide", "feedback", "correct", "cancel", "expire", "record", "decisions"),
    *("top-up", "extend", "repair-clock", "arm"),
    *("verify", "health", "backup", "restore", "forget", "delete"),
)


def test_a_whole_campaign(doral_: Shell, tmp_path: Path) -> None:
    created = doral_("create", "kits", doral_.problem, "--policy", "eva:periods=1", "--seed", 1)
    assert created == "created kits\n"
    assert doral_("list") == "kits\n"
    made = json.loads(doral_("decide", "kits", "old", "--key", "v1", "--available", "a0", "--json"))
    assert (made["state"], made["arm"], made["key"]) == ("pending", "a0", "v1")
    assert json.loads(doral_("decide", "kits", "old", "--key", "v1", "--available", "a0", "--json")) == made
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
    assert "2 decisions" in doral_("decisions", "kits", "--out", tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").height == 2
    assert doral_("close", "kits") == "closed kits\n"
    assert "closed" in doral_("decide", "kits", "old", code=2)


def test_a_campaign_is_shown_as_a_page(doral_: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    doral_("create", "kits/spring", doral_.problem)
    made = json.loads(doral_("decide", "kits/spring", "old", "--json"))
    assert doral_("show", "kits/spring", "--html") == "wrote kits-spring.html\n"
    page = (tmp_path / "kits-spring.html").read_text(encoding="utf-8")
    assert made["id"] in page
    assert made["reason"] in unescape(page)
    assert doral_("show", "kits/spring", "--html", tmp_path / "own.html") == f"wrote {tmp_path / 'own.html'}\n"
    (tmp_path / "notes.html").write_text("mine")
    assert "notes.html" in doral_("show", "kits/spring", "--html", tmp_path / "notes.html", code=2)
    assert (tmp_path / "notes.html").read_text() == "mine"
    assert "say --html" in doral_("show", "kits/spring", tmp_path / "x.html", code=2)
    assert doral_.json("show", "kits/spring", "--html") == [{"file": "kits-spring.html"}]
    assert "unknown campaign" in doral_("show", "none", "--html", code=2)
    assert all(len(line) <= 80 for line in doral_("show", "kits/spring").splitlines())


def test_what_is_wrong_is_said_in_one_line(doral_: Shell, tmp_path: Path) -> None:
    doral_("create", "kits", doral_.problem)
    (tmp_path / "bad.json").write_text("{")
    for words, part, code in (
        (("create", "kits", doral_.problem), "choose another", 2),
        (("create", "x", tmp_path / "bad.json"), "is not JSON", 2),
        (("create", "x", tmp_path / "none.json"), "No such file", 2),
        (("create", "x", doral_.problem, "--policy", "doral:accpt=2"), "'accept'", 2),
        (("create", "x", doral_.problem, "--policy", "doral:accept"), "OPTION=VALUE", 2),
        (("show", "kit"), "'kits'", 2),
        (("decide", "kits", "olde"), "'old'", 2),
        (("feedback", "kits", "nonsense", 1), "give the id", 2),
        (("cancel", "kits", "00000000-7"), "another campaign", 2),
        (("decisions", "kits", "--out", tmp_path / "x.xls"), "must end in", 2),
    ):
        said = doral_(*words, code=code)
        assert part in said
        assert said.count("\n") == 1
    doral_.storage = f"sqlite:///{tmp_path / 'no' / 'c.db'}"
    assert "folder" in doral_("create", "x", doral_.problem, code=1)


def test_what_is_not_there_is_not_made(doral_: Shell, tmp_path: Path) -> None:
    (tmp_path / "image.json").write_bytes(b"\x89PNG\xff")
    for words in (
        ("list",),
        ("show", "kits"),
        ("decide", "kits", "old"),
        ("expire", "kits"),
        ("arm", "pause", "kits", "a0"),
        ("decide", "kits", "--from", "-"),
        ("verify", "kits"),
        ("backup", tmp_path / "copy"),
        ("delete", "kits", "--yes"),
    ):
        said = doral_(*words, code=1)
        assert "c.db" in said
        assert "doral campaign create" in said
    assert "is not JSON" in doral_("create", "kits", tmp_path / "image.json", code=2)
    assert "time zone" in doral_("create", "kits", doral_.problem, "--at", "2026-01-01", code=2)
    assert "No such file" in doral_("restore", tmp_path / "copy", code=1)
    assert not (tmp_path / "c.db").exists()
    doral_.storage = "memory://"
    assert "--storage" in doral_("create", "kits", doral_.problem, code=2)
    assert "--storage" in doral_("list", code=2)


def test_help_of_every_command() -> None:
    listed = CliRunner().invoke(main, ["campaign", "--help"]).output
    for name in COMMANDS:
        assert f"  {name} " in listed
        shown = CliRunner().invoke(main, ["campaign", name, "--help"])
        assert shown.exit_code == 0
        if name != "arm":
            assert "--storage" in shown.output
    for name in ("add", "pause", "resume", "retire"):
        assert "--storage" in CliRunner().invoke(main, ["campaign", "arm", name, "--help"]).output


def test_storage_from_the_environment(doral_: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    doral_("create", "kits", doral_.problem)
    monkeypatch.setenv("DORAL_STORAGE", doral_.storage)
    assert CliRunner().invoke(main, ["campaign", "list"]).output == "kits\n"


def test_help_is_light() -> None:
    """The main program imports the commands to show its help: neither compiler nor database may come with them."""
    heavy = ("llvmlite", "sqlalchemy", "polars")
    code = f"import doral.cli.campaign, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
