"""`doral campaign ...` where people have features: as words, as columns of files, and in what is printed."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import polars as pl
import pytest

from doral.live.views.export import read_decisions
from tests.cli.campaign_shell import Shell
from tests.live import people

ADA = ("-f", "age=71", "--feature", "clinic=north", "-f", "km=-3.5")
HEADER = "age,clinic,km,weight,deadline,key"


@pytest.fixture
def kits(doral_: Shell) -> Shell:
    path = doral_.file("people.json", json.dumps(people.make_problem().to_dict()))
    doral_("create", "kits", path, "--seed", 1, "--clock", "rounds")
    return doral_


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_one_decision(kits: Shell) -> None:
    made = kits.json("decide", "kits", *ADA, "--weight", 2, "--deadline", 5)[0]
    assert made["features"] == {"age": 71.0, "clinic": "north", "km": -3.5}
    assert (made["weight"], made["deadline"]) == (2.0, 5.0)
    assert made["effects"] == {"age": 0.0, "clinic": 0.0, "km": 0.0}  # nothing is known yet
    said = kits("decide", "kits", "everyone", *ADA)
    assert "age=71 (+0), clinic=north (+0), km=-3.5 (+0)" in said
    assert "clinic=north" in kits("decisions", "kits")
    recorded = kits.json("record", "kits", "-", "a1", "--at", 1, *ADA)[0]
    assert recorded["features"] == made["features"]
    shown = kits.json("show", "kits", "--served")[0]
    served: Any = shown["served"]
    assert [one["group"] for one in served["clinic"]] == ["north"]
    assert "clinic north: " in kits("show", "kits", "--served")
    kits("verify", "kits")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-f", "age=71"), "feature 'clinic'"),
        ((*ADA, "-f", "height=2"), "height"),
        (("-f", "age=old", "-f", "clinic=north", "-f", "km=1"), "must be a number"),
        (("-f", "age"), "NAME=VALUE"),
        ((*ADA, "-f", "age=2"), "given twice"),
        ((*ADA, "--deadline", "600"), "60"),
    ],
)
def test_wrong_words(kits: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in kits("decide", "kits", *words, code=2)


def test_batches_of_every_kind(kits: Shell) -> None:
    lines = f"{HEADER}\n71,north,3.5,2,,v1\n20,'=moor,1e1,,5,v2\n"
    made = rows_of(kits("decide", "kits", "--from", kits.file("one.csv", lines)))
    assert [(one["age"], one["clinic"], one["weight"]) for one in made] == [
        ("71.0", "north", "2.0"),
        ("20.0", "'=moor", ""),
    ]
    objects: list[dict[str, Any]] = [
        {"age": 71, "clinic": "north", "km": 3.5, "weight": 2, "key": "v1"},
        {"age": 20, "clinic": "=moor", "km": 10, "deadline": 5, "key": "v2"},
    ]
    again = kits.file("one.jsonl", "\n".join(map(json.dumps, objects)) + "\n\n")
    assert rows_of(kits("decide", "kits", "--from", again)) == made  # by the keys
    pl.DataFrame(objects).write_parquet(kits.folder / "one.parquet")
    assert rows_of(kits("decide", "kits", "--from", kits.folder / "one.parquet")) == made
    records = f"arm,at,{HEADER}\na1,1,50,west,2,,,r1\n"
    recorded = rows_of(kits("record", "kits", "--from", "-", typed=records))[0]
    assert (recorded["clinic"], recorded["state"]) == ("west", "pending")
    pl.DataFrame([{"decision_id": recorded["id"], "reward": 0.5}]).write_parquet(kits.folder / "answers.parquet")
    assert kits("feedback", "kits", "--from", kits.folder / "answers.parquet").startswith("took 1 answer")
    kits("decisions", "kits", "--out", kits.folder / "all.parquet")
    frame = read_decisions(kits.folder / "all.parquet")
    assert frame["clinic"].to_list() == ["north", "=moor", "west"]
    assert kits("forget", "kits", "v1") != ""
    assert kits.json("decisions", "kits")[0].get("features") is None


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("one.csv", "age,clinic\n71,north\n", "feature 'km'"),
        ("one.csv", "age,clinic,km\n71,north,1\nold,north,1\n", "row 3, column 'age'"),
        ("one.csv", "age,clinic,km,height\n71,north,1,2\n", "height"),
        ("one.jsonl", '{"age": 71, "clinic": "north", "km": 1}\n{"age": 71', "row 2"),
        ("one.jsonl", '{"age": 71, "clinic": "north", "km": true}', "must be a number"),
        ("one.jsonl", "[1]", "row 1"),
        ("one.parquet", "no", "is no Parquet"),
    ],
)
def test_nothing_is_stored_of_a_wrong_file(kits: Shell, name: str, text: str, said: str) -> None:
    assert said in kits("decide", "kits", "--from", kits.file(name, text), code=2)
    assert kits("decisions", "kits") == ""
