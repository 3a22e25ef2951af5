"""The folder of a plan: files that other programs read, whole, and harmless to spreadsheets."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doral.errors import InvalidValue
from doral.logs.source import FORMULA
from doral.planning.plan import Plan
from doral.planning.report.folder import as_csv, as_json, plain, policy_dict, save, start_command, to_dict
from doral.planning.report.tables import TABLE_NAMES, tables
from doral.problem import Problem
from tests.planning.plans import HOSTILE_ARMS, a_plan, hostile_plan, minimal_plan, wide_plan


def refuse(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def rows_of(plan: Plan, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(as_csv(tables(plan)[name]).decode().splitlines()))


def test_a_folder_has_the_page_the_plan_the_problem_the_policy_figures_and_tables(tmp_path: Path) -> None:
    page = save(a_plan(), tmp_path / "new" / "plan")
    folder = page.parent
    assert page.name == "index.html"
    names = {one.name for one in folder.iterdir()}
    assert {"plan.json", "problem.json", "policy.json", "returns.png", "returns.pdf", "policies.csv"} <= names
    assert (folder / "returns.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "returns.pdf").read_bytes().startswith(b"%PDF")
    assert not [name for name in names if name.startswith(".")]
    # Another plan in the same folder: what it does not have is gone, and what is not ours stays.
    (folder / "notes.txt").write_text("mine")
    save(minimal_plan(), folder)
    left = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert not left.keys() & {"returns.png", "returns.pdf", "policies.csv"}
    assert left["notes.txt"] == b"mine"
    # The same plan again: the same bytes.
    save(minimal_plan(), folder)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == left


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("mine")
    with pytest.raises(InvalidValue, match="must be a folder"):
        save(minimal_plan(), tmp_path / "plan")


@pytest.mark.parametrize("make", [a_plan, hostile_plan, minimal_plan, wide_plan])
def test_a_plan_is_json_without_numbers_that_are_none(make: Callable[[], Plan]) -> None:
    plan = make()
    found = json.loads(as_json(to_dict(plan)), parse_constant=refuse)
    assert tuple(found["answer"]) == plan.answer
    assert found["waiting"] == plan.waiting.to_dict()
    assert len(found["curves"]) == len(plan.curves)
    assert found["log"]["reading"]["dropped"] == [plain(one) for one in plan.log.reading.dropped]
    assert tuple(found["log"]["arms"]) == plan.log.arms


def test_what_json_cannot_hold_becomes_null() -> None:
    odd = {"a": np.float64("nan"), "b": (np.inf, np.int64(3)), "c": np.array([1.0, np.nan]), "d": {1: Path("x")}}
    assert plain(odd) == {"a": None, "b": [None, 3], "c": [1.0, None], "d": {"1": "x"}}


@pytest.mark.parametrize("make", [a_plan, hostile_plan, wide_plan])
def test_the_problem_reads_as_the_same_problem(make: Callable[[], Plan]) -> None:
    plan = make()
    assert Problem.from_dict(json.loads(as_json(plan.problem.to_dict()))) == plan.problem


def test_the_policy_has_its_options_and_reasons() -> None:
    plan = a_plan()
    assert policy_dict(plan)["options"] == {"cutoff": 9.0, "accept": 3}
    assert policy_dict(plan)["reasons"] == list(plan.recommendation.reasons)
    said = "doral campaign create NAME problem.json --policy doral-otf:cutoff=9.0,accept=3"
    assert start_command(plan) == said


def test_no_cell_of_a_table_is_run_as_a_formula() -> None:
    plan = hostile_plan()
    made = tables(plan)
    assert set(made) <= set(TABLE_NAMES)
    for one in made.values():
        for row in csv.reader(as_csv(one).decode().splitlines()):
            for cell in row:
                is_number = re.fullmatch(r"-[\d.e-]+", cell) is not None
                assert cell.startswith("'") or is_number or not re.match(FORMULA, cell), cell
    assert [row["arm"].removeprefix("'") for row in rows_of(plan, "arms")] == [*HOSTILE_ARMS, "nothing"]


def test_tables_hold_the_numbers_of_the_plan_in_units_that_they_name() -> None:
    plan = a_plan()
    waits = rows_of(plan, "waiting")
    assert [float(row["wait_days"]) for row in waits] == [float(day) for day in range(1, 15)]
    assert [float(row["value"]) for row in waits] == [one.value for one in plan.waiting.waits]
    assert len(rows_of(plan, "returns")) == sum(len(one.ages) for one in plan.curves)
    assert sum(int(row["rows"]) for row in rows_of(plan, "contexts")) == len(plan.log)
    assert sum(int(row["rows"]) for row in rows_of(plan, "arms")) == len(plan.log)
    by_policy = {row["policy"]: row for row in rows_of(plan, "policies")}
    assert (by_policy["doral-otf"]["is_clear"], by_policy["d-linucb"]["is_clear"]) == ("True", "False")
