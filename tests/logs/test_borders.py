"""Tables of other libraries, of the versions that are pinned and of the newest (`make test-newest`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import doral
from tests.logs.tables import same, table

ROOT = Path(__file__).parent.parent.parent


def _pandas() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(table())


def _pandas_of_arrow() -> Any:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    return arrow.table(table()).to_pandas(types_mapper=pandas.ArrowDtype)


def _pandas_of_words() -> Any:
    """Text as `string`, categories and nullable numbers."""
    return _pandas().astype({"context": "category", "arm": "string", "reward": "Float64"})


def _pandas_with_an_index() -> Any:
    return _pandas().set_index("time")


def _arrow() -> Any:
    return pytest.importorskip("pyarrow").table(table())


def _arrow_batches() -> Any:
    return _arrow().to_reader(max_chunksize=17)


def _narwhals() -> Any:
    return pytest.importorskip("narwhals").from_native(pl.DataFrame(table()))


def _narwhals_lazy() -> Any:
    return pytest.importorskip("narwhals").from_native(pl.DataFrame(table()).lazy())


def _narwhals_of_pandas() -> Any:
    return pytest.importorskip("narwhals").from_native(_pandas())


class _Capsule:
    """Nothing but the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pl.DataFrame(table()).__arrow_c_stream__(requested_schema)


KINDS = (
    _pandas, _pandas_of_arrow, _pandas_of_words, _pandas_with_an_index, _arrow, _arrow_batches, _narwhals,
    _narwhals_lazy, _narwhals_of_pandas, _Capsule,
)  # fmt: skip


@pytest.mark.parametrize("made", KINDS)
def test_a_table_of_any_library_is_the_same_log(made: Callable[[], Any]) -> None:
    log = doral.read_log(made())
    same(doral.read_log(pl.DataFrame(table())), log)
    assert log.arms == ("kit", "visit")


def test_text_of_pandas_with_gaps_is_read() -> None:
    """The text of pandas 3 hands out arrays that cannot be written to."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"arm": ["a", None, "b", "a"], "reward": ["yes", "no", None, "yes"]})
    log = doral.read_log(frame)
    assert log.arms == ("a", "b")
    assert log.arm.tolist() == [0, -1, 1, 0]
    assert log.is_answered.tolist() == [True, True, False, True]


def test_a_relation_of_duckdb_is_read() -> None:
    """In a process of its own: DuckDB complains at the end of one that it has leaked."""
    pytest.importorskip("duckdb")
    program = (
        "import duckdb, doral, polars as pl\n"
        "from tests.logs.tables import same, table\n"
        "frame = pl.DataFrame(table())\n"
        "same(doral.read_log(frame), doral.read_log(duckdb.sql('select * from frame')))\n"
        "print('same')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "same\n", done.stderr
