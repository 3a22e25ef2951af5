"""Campaigns are verified, copied, put away and removed, from a shell."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import doral
from doral.cli.campaign import MOST_LINES, verification_lines
from doral.live.views.verify import Difference, Stretch, Verification
from tests.cli.campaign_shell import Shell
from tests.cli.processes import environment
from tests.live import damage

BEGAN = 1_767_225_600


@pytest.fixture
def kits(doral_: Shell) -> Shell:
    doral_("create", "kits", doral_.problem, "--seed", 1, "--at", BEGAN)
    doral_(
        "decide",
        "kits",
        "--from",
        "-",
        typed=f"context,key,at\nold,v1,{BEGAN}\nyoung,v2,{BEGAN + 1}\nold,v3,{BEGAN + 2}\n",
    )
    return doral_


def test_verify_says_what_was_checked(kits: Shell) -> None:
    checked, written, _ = kits("verify", "kits").splitlines()
    (found,) = kits.json("verify", "kits")
    assert checked.endswith(str(found["head"]))
    assert re.findall(r"\d+", checked)[0] == "4"
    assert re.findall(r"\d+", written)[:2] == ["1", "4"]
    assert (found["events"], found["n_differences"]) == (4, 0)


def test_differences_are_information_and_their_lines_are_few() -> None:
    some = tuple(Difference(event=n, decision_id=f"t-{n}", recorded="a0", chosen=None) for n in range(2, 1_002))
    engines = (
        Stretch(first=1, last=10, engine={"doral": "0.1.0"}),
        Stretch(first=11, last=20, engine={"doral": "0.2.0"}),
    )
    found = Verification(events=5_000, head="ab", engines=engines, differences=some, n_differences=2_345)
    lines = verification_lines("kits", found)
    assert lines[1].endswith("doral 0.1.0")
    assert "2,345" in lines[3]
    assert lines[4] == "  t-2  a0, now -"
    assert lines[-1] == f"  and {2_345 - MOST_LINES:,} more"
    assert len(lines) == 4 + MOST_LINES + 1


def test_a_damaged_log_exits_with_1(kits: Shell) -> None:
    with doral.open(kits.storage) as store:
        damage.rewrite(store.campaign("kits"), "UPDATE events SET context = 1 - context WHERE sequence = 3")
    assert "event 3" in kits("verify", "kits", code=1)


def test_a_backup_comes_back(kits: Shell, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    before = kits("show", "kits", "--json")
    assert str(copy) in kits("backup", copy)
    kits("decide", "kits", "old")
    kits.storage = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert kits("restore", copy) == "restored kits\n"
    assert kits("show", "kits", "--json") == before
    assert "kits" in kits("restore", copy, code=2)
    assert "'kits'" in kits("backup", tmp_path / "other", "--campaign", "kit", code=2)


def test_a_key_is_erased_and_stays_used(kits: Shell) -> None:
    assert kits.json("forget", "kits", "v1") == [{"campaign": "kits", "events": 1}]
    assert kits.json("decisions", "kits")[0]["key"] is None
    assert "v1" not in kits("decisions", "kits", "--json")


def test_health(kits: Shell) -> None:
    assert kits("health", "kits")
    assert kits.json("health", "kits")


def test_nothing_is_deleted_where_nobody_can_be_asked(kits: Shell) -> None:
    assert "add --yes" in kits("delete", "kits", code=2, typed="kits\n")
    assert "'kits'" in kits("delete", "kit", "--yes", code=2)
    assert kits("list") == "kits\n"
    assert kits("delete", "kits", "--yes") == "deleted kits\n"
    assert kits("list") == ""


@pytest.mark.parametrize(("typed", "code", "left"), [("kits", 0, []), ("kit", 2, ["kits"])])
def test_at_a_terminal_the_name_is_asked_for_again(kits: Shell, typed: str, code: int, left: list[str]) -> None:
    mine, its = pty.openpty()
    os.write(mine, f"{typed}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "doral", "campaign", "delete", "kits", "--storage", kits.storage],
        stdin=its,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(its)
    os.close(mine)
    assert done.returncode == code, done.stderr
    assert "kits" in done.stderr
    assert done.stdout == ("deleted kits\n" if code == 0 else "")
    assert json.loads(kits("list", "--json")) == left
