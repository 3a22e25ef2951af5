"""What all commands have in common: one spelling for one idea, whole help, examples that can be typed, JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from doral.cli.app import app
from doral.cli.command import FAILED, INTERRUPTED, MISUSED, as_typed

MAIN: Any = typer.main.get_command(app)  # (Typer's own click is private)
MOST_COMMANDS = 40
# Long options that mean the same idea of different things, each with the values that it takes.
TWO_VALUES = {
    "--key": {"TEXT", "COLUMN"},  # of a request; the column of keys in a log
    "--cost": {"NUMBER", "COLUMN", "COST"},
    "--reward": {"NUMBER", "COLUMN"},
    "--probability": {"NUMBER", "COLUMN"},
    "--deadline": {"TIME", "NUMBER"},
}


def leaves(group: Any = MAIN, words: tuple[str, ...] = ("doral",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that the help lists, with the words that are typed."""
    if not hasattr(group, "commands"):
        yield words, group
        return
    for name, member in group.commands.items():
        if not member.hidden:
            yield from leaves(member, (*words, name))


COMMANDS = dict(leaves())
IDS = [" ".join(words) for words in COMMANDS]


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_there_are_about_as_many_commands_as_a_page_lists() -> None:
    assert len(COMMANDS) <= MOST_COMMANDS


def test_an_option_is_one_idea_everywhere() -> None:
    shorts, values = defaultdict(set), defaultdict(set)
    for command in COMMANDS.values():
        for one in command.params:
            if one.param_type_name != "option" or one.hidden:
                continue
            (long,) = [word for word in one.opts if word.startswith("--")]
            for word in one.opts:
                if not word.startswith("--"):
                    shorts[word].add(long)
            values[long].add(None if one.is_flag else one.metavar)
    assert {short for short, longs in shorts.items() if len(longs) > 1} == set()
    assert {long: found for long, found in values.items() if len(found) > 1 and TWO_VALUES.get(long) != found} == {}


@pytest.mark.parametrize("words", COMMANDS, ids=IDS)
def test_help_is_whole_and_plain(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = call(*words[1:], "--help")
    assert done.exit_code == 0
    assert not re.search(r"[<>]|\{[A-Z]|\[\[|x[<>]=|\x1b|…", done.stdout.replace("{context: ", "")), done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    command = COMMANDS[words]
    for one in command.params:
        assert one.hidden or len((one.help or "").split()) >= 2, one.name
    (example,) = [line for line in done.stdout.splitlines() if line.startswith("  Example: ")]
    assert shlex.split(example)[1 : 1 + len(words)] == list(words)


@pytest.mark.parametrize("words", COMMANDS, ids=IDS)
def test_an_example_can_be_typed(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    context = command.make_context("doral", shlex.split(command.example)[len(words) :])
    assert context.params


WITHOUT_JSON = {"serve"}
UNDONE = {"init", "create", "backup", "restore"}  # what they make can be deleted
CHANGING = {
    *("decide", "feedback", "correct", "cancel", "expire", "record", "pause", "resume", "close", "delete", "forget"),
    *("top-up", "extend", "repair-clock", "add", "retire", "revoke"),
}


@pytest.mark.parametrize("words", COMMANDS, ids=IDS)
def test_results_are_json_and_changes_can_be_tried(words: tuple[str, ...]) -> None:
    options = {word for one in COMMANDS[words].params for word in one.opts}
    assert ("--json" in options) is (words[-1] not in WITHOUT_JSON)
    assert ("--dry-run" in options) is (words[-1] in CHANGING)


def test_messages_name_options_as_they_are_typed() -> None:
    names = {"observed_until": "--observed-until", "feedback": "--feedback", "reward": "REWARD"}
    assert as_typed("observed_until='2026-01-01' says otherwise", names) == "--observed-until 2026-01-01 says otherwise"
    assert as_typed("charm=3 is no option", names) == "charm=3 is no option"
    assert as_typed("reward = None: must be a number", names) == "REWARD: must be a number"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert call("init", "kits.toml").exit_code == 0
    return tmp_path


def test_exit_codes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("campaign", "list").exit_code == FAILED
    assert call("campaign", "create", "kits", "missing.toml").exit_code in (FAILED, MISUSED)
    assert call("campaign", "create", "kits", "kits.toml", "--policy", "dorl").exit_code == MISUSED

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("doral.simulation.api.simulate", interrupted)
    done = call("simulate", "stress/tiny", "-p", "random")
    assert (done.exit_code, done.stdout) == (INTERRUPTED, "")
    assert done.stderr.count("\n") == 1


def test_a_dry_run_stores_nothing_and_says_the_same(here: Path) -> None:
    created = call("campaign", "create", "kits", "kits.toml", "--seed", "1", "--json")
    assert json.loads(created.stdout) == {"created": "kits"}
    decided = [json.loads(call("campaign", "decide", "kits", "younger", "--json").stdout) for _ in range(6)]
    made = next(one for one in decided if one["arm"] is not None)
    (here / "arrivals.csv").write_text("context\nolder\nyounger\n")
    before = call("campaign", "verify", "kits", "--json").stdout
    for words in (
        ("decide", "kits", "older"),
        ("decide", "kits", "--from", "arrivals.csv"),
        ("feedback", "kits", made["id"], "1"),
        ("cancel", "kits", made["id"]),
        ("record", "kits", "older", "letter", "--at", str(made["decided_at"])),
        ("top-up", "kits", "100"),
        ("expire", "kits"),
        ("arm", "retire", "kits", "letter"),
        ("pause", "kits"),
        ("close", "kits"),
        ("delete", "kits"),
    ):
        tried = call("campaign", *words, "--dry-run", "--json")
        assert tried.exit_code == 0, tried.output
        assert "dry run" in tried.stderr
        assert all(isinstance(json.loads(line), dict) for line in tried.stdout.splitlines())
        assert tried.stdout
        assert call("campaign", "verify", "kits", "--json").stdout == before
    tried = json.loads(call("campaign", "feedback", "kits", made["id"], "1", "--dry-run", "--json").stdout)
    kept = json.loads(call("campaign", "feedback", "kits", made["id"], "1", "--json").stdout)
    assert {**tried, "answered_at": 0, "delay": 0} == {**kept, "answered_at": 0, "delay": 0}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("reproduce", "--runs", "0"), "experiment reproduce"),
        (("compare", "-s", "stress/tyni"), "experiment compare"),
        (("experiment", "compare", "--scenario", "stress/tyni"), "argument"),
        (("experiment", "compare", "--table-only", "--runs", "0"), "--main-only"),
        (("experiment", "reproduce", "--comparison-only", "--out=x", "--runs", "0"), "--out-dir"),
        (("plan", "missing.csv", "--out", "x"), "--out-dir"),
    ],
)
def test_old_spellings_say_the_new_one(old: tuple[str, ...], new: str) -> None:
    done = call(*old)
    assert done.exit_code in (FAILED, MISUSED)  # each is wrong otherwise, so that nothing runs
    assert any(new in line for line in done.stderr.splitlines() if line.startswith("doral: "))
    for word in old[1:]:
        assert not word.startswith("--") or "No such option" not in done.stderr


def test_old_campaign_commands_work(here: Path) -> None:
    (here / "arrivals.csv").write_text("context,key\nolder,a\nyounger,b\n")
    assert call("campaign", "create", "-f", "kits.toml", "kits", "--option", "accept=2").exit_code == 0
    for words, new in (
        (("decide-many", "kits", "arrivals.csv"), "decide --from"),
        (("export", "kits", "out.csv"), "decisions --out"),
        (("expire", "kits", "--now", "2100-01-01T00:00Z", "--clock-tolerance", "1e10"), "--at"),
        (("decisions", "kits", "-n", "1"), "--limit"),
    ):
        done = call("campaign", *words)
        assert done.exit_code == 0, done.output
        assert new in done.stderr
    assert (here / "out.csv").read_text().count("\n") == 3


def test_a_budget_is_a_total(here: Path) -> None:
    rows = ["time,arm,reward,cost"]
    rows += [f"2026-01-{1 + i % 28:02},{'ab'[i % 2]},{int(i % 3 == 0)},{1 + i % 2}" for i in range(200)]
    (here / "log.csv").write_text("\n".join(rows))
    words = ("evaluate", "log.csv", "-p", "lp", "--json", "--feedback", "explicit", "--budget")
    plenty, little = (json.loads(call(*words, total).stdout) for total in ("400", "40"))
    costs = [max(one["cost"] for one in found["values"] if one["policy"] != "status-quo") for found in (plenty, little)]
    assert costs[1] == pytest.approx(40 / 200, rel=0.05)
    assert costs[0] > costs[1]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("simulate", "missing.toml"), "SCENARIO 'missing.toml':"),
        (("simulate", "missing.tom"), "SCENARIO 'missing.tom':"),
        (("plan", "missing.csv"), "LOG 'missing.csv':"),
        (("evaluate", "."), "LOG '.':"),
        (("campaign", "create", "kits", "missing.toml"), "FILE 'missing.toml':"),
        (("campaign", "list", "--storage", "http://x"), "--storage 'http://...':"),
        (("campaign", "report", "kits"), "'show'"),
        (("campaign", "exprot", "kits"), "No such command"),
        (("simulate", "stress/tiny", "--runs", "many"), "must be a whole number"),
        (("simulate", "stress/tiny", "--polcy", "random"), "--policy"),
        (("campaign", "decisions", "kits", "--limit", "9" * 30), "campaigns.db"),
        (("serve", "--webhook", "https://x", "--webhook-secret-file", "noise"), "UTF-8"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_typed(words: tuple[str, ...], named: str, here: Path) -> None:
    (here / "noise").write_bytes(bytes(range(256)))
    done = call(*words)
    assert done.exit_code in (FAILED, MISUSED)
    assert isinstance(done.exception, SystemExit)
    assert named in done.stderr
    assert done.stdout == ""
    assert "export" not in done.stderr  # names that the help does not list are not advised
