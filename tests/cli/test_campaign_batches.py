"""Batches from CSV: all of a file or nothing, and what is wrong is said with its row and column."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys

import pytest

from doral.cli.rows import text as as_given
from tests.cli.campaign_shell import Shell
from tests.cli.processes import environment

BEGAN = 1_767_225_600


@pytest.fixture
def kits(doral_: Shell) -> Shell:
    doral_("create", "kits", doral_.problem, "--seed", 1, "--at", BEGAN)
    return doral_


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def count(kits: Shell) -> int:
    return len(kits("decisions", "kits").splitlines())


def test_arrivals_answers_and_back_again(kits: Shell) -> None:
    lines = 'context,key,available,at\nold,v1,"[""a0""]",\nyoung,=1+1,,2026-01-01T00:00Z\n\n"old",,[],\n'
    # As a spreadsheet saves it: with a mark in front, and line ends of its own.
    path = kits.file("arrivals.csv", b"\xef\xbb\xbf" + lines.replace("\n", "\r\n").encode())
    made = rows_of(kits("decide", "kits", "--from", path))
    assert [one["context"] for one in made] == ["old", "young", "old"]
    assert [one["key"] for one in made] == ["v1", "'=1+1", ""]  # no spreadsheet runs it
    assert (made[0]["available"], made[2]["state"], made[1]["decided_at"]) == ('["a0"]', "skipped", f"{BEGAN}.0")
    # What was written is read as it was given: the key is the same.
    again = kits.json("decide", "kits", "--from", "-", typed="context,key,at\nyoung,'=1+1,2026-01-01T00:00Z\n")
    assert (again[0]["id"], again[0]["key"]) == (made[1]["id"], "=1+1")

    played = [one["id"] for one in made if one["arm"]]
    answers = "decision_id,reward,actual_cost,key,at\n" + "".join(f"{one},-0.5,0,f-{one},\n" for one in played)
    said = kits("feedback", "kits", "--from", kits.file("answers.csv", answers))
    assert said.startswith(f"took {len(played)} answer")
    assert kits("feedback", "kits", "--from", kits.file("answers.csv", answers)) == said
    as_made = answers.replace("decision_id", "id", 1)  # as `decide` names the column
    assert kits("feedback", "kits", "--from", kits.file("answers.csv", as_made)) == said
    rewards = {str(one["id"]): one["reward"] for one in kits.json("decisions", "kits")}
    assert played
    assert [rewards[one] for one in played] == [-0.5] * len(played)


def test_records(kits: Shell) -> None:
    header = "context,arm,at,reward,answered_at,cost,probability,spend,key\n"
    text = f"{header}old,a1,{BEGAN + 5},0.5,{BEGAN + 8},0.25,0.5,TRUE,r1\nyoung,,{BEGAN + 1},,,,,,\n"
    made = rows_of(kits("record", "kits", "--from", "-", typed=text))
    assert [(one["arm"], one["state"], one["delay"]) for one in made] == [
        ("a1", "returned", "3.0"),
        ("", "skipped", ""),
    ]
    assert "spent 0.25" in kits("show", "kits")
    assert kits("record", "kits", "--from", "-", typed=header).count("\n") == 1


@pytest.mark.parametrize(
    ("command", "text", "part"),
    [
        ("decide", "", "header & context"),
        ("decide", "key\nv1\n", "'key' & 'context'"),
        ("decide", "contxt\nold\n", "'contxt' & 'context'"),
        ("decide", "context;key\nold;1\n", "header & commas"),
        ("decide", "context,key,key\nold,1,2\n", "appears twice"),
        ("decide", "context\nold\nyoung,x\n", "row 3 = 'young,x':"),
        ("decide", "context,key\nold,1\n,2\n", "row 3, column 'context' = ''"),
        ("decide", "context,available\nold,a0\n", "row 2, column 'available' = 'a0'"),
        ("decide", 'context,available\nold,"[1]"\n', "row 2, column 'available' = '[1]'"),
        ("decide", 'context,available\nold,"[""a9""]"\n', "row 2, column 'available' & 'a9'"),
        ("decide", "context\nold\n\nodl\nold\nodl\n", "rows 4, 6, column 'context' & 'odl'"),
        ("decide", "context,at\nold,\nold,noon\n", "row 3, column 'at' = 'noon'"),
        (
            "decide",
            "context,at\nold,\nold,2025-01-01T00:00Z\n",
            "row 3, column 'at' = 2025-01-01T00",
        ),
        ("decide", "context,key\nold,a\nold,b\nyoung,a\n", "rows 2, 4, column 'key' & 'a'"),
        ("decide", "context,key\nold,a\told\n", "row 2, column 'key' = 'a\\told'"),
        ("decide", 'context,key\nold,"a\n', "row = 2:"),
        ("decide", b"context\nold\n\xff\xfe\n", "UTF-8"),
        ("feedback", "decision_id,reward\nID,1\n7,1\n", "row 3, column 'decision_id' & '7'"),
        ("feedback", "decision_id,reward\nID,1\nID,2\n", "rows 2, 3, column 'decision_id'"),
        ("feedback", 'decision_id,reward\nID,"0,5"\n', "row 2, column 'reward' = '0,5'"),
        ("feedback", "decision_id,reward\nID,inf\n", "row 2, column 'reward' = inf"),
        ("feedback", "decision_id,reward\nID,1e99\n", "row 2, column 'reward' = 1e+99"),
        ("feedback", "decision_id,reward,actual_cost\nID,1,-1\n", "row 2, column 'actual_cost' = -1.0"),
        ("record", f"context,arm,at\nold,a0,{BEGAN}\nold,a9,{BEGAN}\n", "row 3, column 'arm' & 'a9'"),
        (
            "record",
            f"context,arm,at,reward\nold,a0,{BEGAN},1\n",
            "row 2, column 'answered_at' = None",
        ),
        ("record", f"context,arm,at,spend\nold,a0,{BEGAN},2\n", "row 2, column 'spend' = '2'"),
        ("record", "context,arm,at\nold,a0,\n", "row 2, column 'at' = ''"),
    ],
)
def test_a_file_with_a_mistake_changes_nothing(kits: Shell, command: str, text: str | bytes, part: str) -> None:
    made = kits.json("decide", "kits", "old", "--available", "a0")[0]
    if isinstance(text, str):
        text = text.replace("ID", str(made["id"]))
    before = kits("show", "kits", "--json")
    said = kits(command, "kits", "--from", kits.file("rows.csv", text), code=2)
    assert all(word in said for word in part.split(" & "))
    assert said.count("\n") == 1
    assert kits("show", "kits", "--json") == before


def test_a_mistake_of_the_file_is_found_before_the_first_batch_is_stored(kits: Shell) -> None:
    said = kits("decide", "kits", "--from", "-", "--batch", 1, code=2, typed="context,at\nold,\nold,noon\n")
    assert "row 3" in said
    assert count(kits) == 0


def test_when_a_later_batch_is_refused_it_says_what_is_stored(kits: Shell) -> None:
    text = "context,key\nold,a\nold,b\nold,c\nodl,d\nold,e\n"
    said = kits("decide", "kits", "--from", "-", "--batch", 2, code=2, typed=text)
    assert "row 5, column 'context'" in said
    assert re.search(r"\b3\b.* stored.*\b4\b", said)
    assert [one["key"] for one in kits.json("decisions", "kits")] == ["a", "b"]
    # The corrected file can be given again: what has a key is stored once.
    whole = rows_of(kits("decide", "kits", "--from", "-", "--batch", 2, typed=text.replace("odl", "old")))
    assert [one["key"] for one in whole] == list("abcde")
    assert count(kits) == 5
    assert "nothing was stored" in kits("decide", "kits", "--from", "-", code=2, typed=text.replace("d\n", "x\n"))


def test_files_that_cannot_be_read(kits: Shell) -> None:
    assert "No such file" in kits("decide", "kits", "--from", kits.folder / "none.csv", code=1)
    assert "directory" in kits("decide", "kits", "--from", kits.folder, code=1)
    assert "unknown campaign" in kits("decide", "kit", "--from", kits.folder / "none.csv", code=2)


def test_a_pipe_is_read_as_a_file_is(kits: Shell) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"context,key\nold,p1\nyoung,p2\n")
    os.close(writing)
    command = [
        sys.executable,
        "-m",
        "doral",
        "campaign",
        "decide",
        "kits",
        "--from",
        f"/dev/fd/{reading}",
        "--batch",
        "1",
    ]
    done = subprocess.run(
        command,
        env={**environment(), "DORAL_STORAGE": kits.storage},
        pass_fds=[reading],
        capture_output=True,
        text=True,
        check=True,
    )
    os.close(reading)
    assert [one["key"] for one in rows_of(done.stdout)] == ["p1", "p2"]


@pytest.mark.parametrize("text", ["=1", "'=1", "''=1", " @x", "\u201c-1", "\uff1d1", "plain", "it's", "'quoted'", "-"])
def test_cells_come_back_as_they_were_given(kits: Shell, text: str) -> None:
    made = kits.json("decide", "kits", "old", "--key", text)[0]
    path = kits.folder / "out.csv"
    kits("decisions", "kits", "--out", path)
    assert as_given("key", rows_of(path.read_text())[0]["key"]) == text == made["key"]
