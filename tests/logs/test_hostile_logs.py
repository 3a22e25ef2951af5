"""Whatever is given, a message says what is wrong and what to do: no traceback, and no log of nonsense."""

from __future__ import annotations

import gzip
import math
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doral
from doral.errors import DoralError, InvalidValue
from doral.logs.log import SKIPPED, Log
from tests.logs.tables import table, written


def is_sound(log: Log) -> None:
    """What every log promises, whatever it was read from."""
    n = len(log)
    assert n >= 1
    assert (np.diff(log.time) >= 0.0).all()
    assert np.isfinite(log.time).all()
    assert log.time[0] == 0.0
    assert ((log.arm >= SKIPPED) & (log.arm < len(log.arms))).all()
    assert ((log.context >= 0) & (log.context < len(log.contexts))).all()
    assert (np.isnan(log.reward) == np.isinf(log.delay)).all()
    assert (log.delay >= 0.0).all()
    assert (log.watched >= 0.0).all()
    heard = log.is_answered
    assert (log.delay[heard] <= log.watched[heard] * (1 + 1e-9) + 1e-6).all()
    assert (log.cost >= 0.0).all()
    assert (log.cost[~log.is_served] == 0.0).all()
    assert not (log.paid < 0.0).any()
    known = log.probability[~np.isnan(log.probability)]
    assert ((known > 0.0) & (known <= 1.0)).all()
    assert log.reading.rows == n + sum(one.rows for one in log.reading.dropped)
    assert log.key == () or len(log.key) == n
    assert log.reading.text().startswith("Read ")
    assert repr(log).startswith("<Log ")


HEADER = "time,arm,reward,answered_at\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"  \n\n", "is blank"),
        ("a.csv", HEADER.encode(), "there are no rows"),
        ("a.csv", b"arm,reward", "there are no rows"),
        ("a.csv", b"\x00\x01\x02" * 1000, "is not text"),
        ("a.csv", bytes(range(1, 256)) * 40, "is not text"),
        ("a.parquet", b"arm,reward\na,1\n", "is no Parquet file"),
        ("a.parquet", b"PAR1" + b"x" * 100, "cannot be read as a table"),
        ("a.csv", b"<!DOCTYPE html><html><body>404</body></html>", "page of the web"),
        ("a.csv", b'{"arm": ["a"]}', "is JSON"),
        ("a.xlsx", b"PK\x03\x04" + b"x" * 100, "save the sheet as CSV"),
        ("a.csv", "arm,reward\na,1\n".encode("utf-16") + b"\x00", "cannot be read as a table"),
        ("a.csv", "arm,reward\na,1\n".encode("utf-32"), "is not text"),
        ("a.csv", b"a,1,2026-01-01\nb,0,2026-01-02\na,0,2026-01-03\n", "seems to hold data"),
        ("a.csv", b"Report of March\n\narm,reward\na,1\n", "does not name the columns"),
        ("a.csv", b"Report of March,,\narm,reward,time\na,1,2\n", "does not name the columns"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00broken", "cannot be read as a table"),
        ("a.csv", b"x" * 200_000, "a first line of more than"),
        ("a.csv", b"arm,reward\na,1,2,3\n", "more cells than the header"),
        ("a.csv", b'arm,reward\n"a,1\nb,0\n', "not closed"),
        ("a.csv", b"word\nanother\n", "say with arm="),
        ("a.csv", b"arm,reward,reward\na,1,0\n", ""),
        ("a.csv", b"arm,reward,time\na,1,25:61\n", "should hold times"),
        ("a.csv", b"arm,reward,time\na,1,2026-02-31\n", "should hold times"),
        ("a.csv", ",".join(f"c{one}" for one in range(9_000)).encode() + b"\n1\n", "number of columns = 9000"),
    ],
)
def test_files_that_are_no_logs(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    path = written(tmp_path, content, name)
    if not expected:
        is_sound(doral.read_log(path))
        return
    with pytest.raises(InvalidValue) as caught:
        doral.read_log(path)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 1_500


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    for path, expected in (
        (tmp_path, "is a folder"),
        (tmp_path / "no.csv", "no such file"),
        ("a\0b", "no path|no such file"),
        ("x" * 5_000, "no path|no such file"),
        ("/dev/null", "not an ordinary file"),
        ("", "is a folder|no such"),
        (None, "must be the path"),
        (7, "must be the path"),
        ([{"arm": "a"}], "must be the path"),
        (b"log.csv", "must be the path"),
    ):
        with pytest.raises(InvalidValue, match=expected):
            doral.read_log(path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"arm": "abc", "reward": [1]},
        {"arm": ["a"], "reward": [1, 2]},
        {1: ["a"]},
        {"arm": [["a"], ["b"]], "reward": [1, 0]},
        {"arm": [b"\xff"], "reward": [1]},
        {"arm": [None, None], "reward": [1, 0]},
        {"arm": ["a"], "reward": [{"x": 1}]},
        {"arm": ["a"], "reward": [1], "time": [True]},
        {"arm": ["a" * 300], "reward": [1]},
        {"arm": ["a"], "reward": [math.nan], "time": [math.nan]},
        pl.DataFrame(),
        pl.DataFrame({"arm": [], "reward": []}),
        pl.LazyFrame({"arm": ["a"], "reward": [1]}).select(pl.col("nothing")),
        pl.LazyFrame({"arm": ["a"], "reward": ["x"]}).with_columns(pl.col("reward").cast(pl.Int64)),
    ],
)
def test_tables_that_are_no_logs(source: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        doral.read_log(source)
    assert len(str(caught.value)) < 1_500


@pytest.mark.parametrize(
    "options",
    [
        {"arm": 3},
        {"time": ["time"]},
        {"context": 5},
        {"context": [5]},
        {"context": "nowhere"},
        {"context": ["context", "context"]},
        {"feedback": "loud"},
        {"strata": -1},
        {"strata": True},
        {"max_rows": 0},
        {"max_rows": 10},
        {"observed_until": []},
        {"observed_until": True},
        {"observed_until": math.nan},
        {"positive": 1},
        {"nothing": "nobody"},
        {"arms": ["x"]},
        {"time_unit": "parsec"},
        {"answered": "answered_at", "delay": "cost"},
        {"answered": "arm"},
        {"time": "arm"},
        {"cost": "arm"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        doral.read_log(table(), **options)


def test_ten_thousand_arms_are_refused_at_once() -> None:
    arms = [f"arm {one}" for one in range(10_000)] * 10
    begin = time.process_time()
    with pytest.raises(InvalidValue, match=r"number of arms in column 'arm' = 10000: are more than 200.*arms="):
        doral.read_log({"arm": arms, "reward": [1] * 100_000})
    assert time.process_time() - begin < 2.0
    few = doral.read_log({"arm": arms, "reward": [1] * 100_000}, arms=["arm 1", "arm 2"])
    assert len(few) == 20


def test_much_garbage_is_refused_at_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = rng.choice(np.frombuffer(b"abcdefghijk,;\n", dtype=np.uint8), 30_000_000).tobytes()
    for content in (rng.bytes(30_000_000), letters, letters.replace(b"\n", b" ")):
        path = written(tmp_path, content)
        begin = time.process_time()
        with pytest.raises(InvalidValue):
            doral.read_log(path)
        assert time.process_time() - begin < 3.0


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doral.logs.source._MAX_UNPACKED", 1 << 20)
    path = written(tmp_path, gzip.compress(b"arm,reward\n" + b"a,1\n" * 1_000_000), "bomb.csv.gz")
    with pytest.raises(InvalidValue, match="unpacks to more"):
        doral.read_log(path)


def test_one_row_one_arm_all_open_and_strange_names(tmp_path: Path) -> None:
    for rows in (
        {"arm": ["a"], "reward": [1]},
        {"arm": ["a"] * 9, "reward": [None] * 9},
        {"arm": ["a"] * 9, "reward": [None] * 9, "answered_at": [None] * 9, "time": ["2026-01-01"] * 9},
        {"arm": ["=SUM(A1)", "+1", "ü€\u202e", "a\tb"], "reward": [1, 0, 1, 0], "context": ["@x", "-", "\u0000", "x"]},
    ):
        log = doral.read_log(rows)
        is_sound(log)
        again = doral.read_log(log.to_frame())
        assert (again.arms, again.contexts) == (log.arms, log.contexts)
    open_ = doral.read_log({**table(), "reward": [None] * 200, "answered_at": [None] * 200})
    assert not open_.is_answered.any()
    latin = written(tmp_path, "arm,reward,context\nä,1,Bayamón\n".encode("latin-1"))
    log = doral.read_log(latin)
    assert (log.arms, log.contexts) == (("ä",), ("Bayamón",))
    assert "Windows-1252" in log.reading.text()


FAR_US = [1_767_225_600_000_000, 253_402_300_800_000_000, 1_767_225_600_000_000]  # the second is in the year 10,000


@pytest.mark.parametrize(
    "times", [["1767225600", "-62135596801", "1767225600"], pl.Series(FAR_US).cast(pl.Datetime("us", "UTC"))]
)
def test_times_that_no_calendar_has_are_no_times(times: Any) -> None:
    """As numbers, and as moments of a table, which can hold more years than there are."""
    log = doral.read_log({"arm": ["a", "b", "a"], "reward": [1, 0, 1], "time": times})
    is_sound(log)
    assert log.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert len(log) == 2
    assert "1 row" in log.reading.text()


CELL = st.one_of(
    st.sampled_from(
        ["", "0", "1", "-1", "1e400", "nan", "inf", "NA", "yes", "no", "a", "b", "'=1", "=1", "1,5", "1,234"]
    ),
    st.sampled_from(
        ["2026-01-01", "2026-01-01T10:00Z", "1/2/2026", "31.12.2026", "9999-12-31", "0001-01-01", "1767225600"]
    ),
    st.text(max_size=6),
    st.floats().map(str),
)
NAMES = ["time", "arm", "reward", "answered_at", "cost", "paid", "probability", "observed_until", "id", "context", "x"]
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@MANY
@given(st.data())
def test_cells_of_any_kind(data: st.DataObject) -> None:
    names = ["arm", "reward", *data.draw(st.lists(st.sampled_from(NAMES), unique=True))]
    n = data.draw(st.integers(0, 12))
    rows = {name: data.draw(st.lists(CELL, min_size=n, max_size=n)) for name in dict.fromkeys(names)}
    try:
        log = doral.read_log(rows, context=["context", "x"] if {"context", "x"} <= set(rows) else None)
    except InvalidValue:
        return
    is_sound(log)
    is_sound(doral.read_log(log.to_frame()))


VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.datetimes(), st.dates(),
    st.timedeltas(), st.binary(max_size=3), st.complex_numbers(), st.lists(st.integers(), max_size=2), st.decimals(),
)  # fmt: skip


@MANY
@given(st.data())
def test_values_of_any_kind(data: st.DataObject) -> None:
    names = ["arm", "reward", *data.draw(st.lists(st.sampled_from(NAMES), unique=True))]
    n = data.draw(st.integers(1, 6))
    kinds = {
        name: data.draw(st.sampled_from([VALUE, st.integers(-5, 5), st.floats(), st.datetimes()])) for name in names
    }
    rows = {name: data.draw(st.lists(kinds[name], min_size=n, max_size=n)) for name in dict.fromkeys(names)}
    try:
        log = doral.read_log(rows)
    except InvalidValue:
        return
    is_sound(log)


@MANY
@given(
    content=st.one_of(st.binary(max_size=300), st.text(alphabet="arm,ewd\n\"';1 0\t\r", max_size=200).map(str.encode))
)
def test_bytes_of_any_kind(tmp_path: Path, content: bytes) -> None:
    for start in (b"", b"arm,reward\n", b"arm;reward;time\r\na;1;2026-01-01\r\n"):
        path = written(tmp_path, start + content)
        try:
            log = doral.read_log(path)
        except DoralError:
            continue
        is_sound(log)
