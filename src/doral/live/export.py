"""Decisions as a file for other tools, Parquet or CSV, and back. Written page by page: memory does not grow with them.

Names and keys come from outside. A spreadsheet runs text that begins like a formula, so that in CSV such text gets an
apostrophe in front, as OWASP advises; `read_decisions` takes it away again. Parquet holds everything as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from doral._files import replacing
from doral.errors import shown
from doral.live.decision import Decision
from doral.live.errors import StorageError
from doral.live.parquet import write_parquet
from doral.live.paths import given_path

if TYPE_CHECKING:
    import polars as pl

_PAGE = 20_000
_SUFFIXES = (".parquet", ".csv")
# What spreadsheets take for the beginning of a formula; also behind blanks and quotes, which some of them drop.
# (Characters as they are: polars and Python write them differently in a pattern.)
_SKIPPED = "\\s'\"\u2018\u2019\u201c\u201d\u200b\ufeff"
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the latter are the full-width ones
_FORMULA = rf"^(?:[{_SKIPPED}]*[{_SIGNS}]|[\t\r\n])"
NEUTRALISED = _FORMULA.replace("^", "^'", 1)


def write_decisions(path: str | Path, decisions: Iterable[Decision]) -> int:
    """One row per decision; the file is there whole or not at all, and a new one is for its owner alone."""
    path = given_path(path, suffixes=_SUFFIXES)
    counted = _Counted(decisions)
    try:
        with replacing(path, is_private=True) as file:
            if path.suffix == ".csv":
                _write_csv(file, counted)
            else:
                write_parquet(file, counted, _schema(), group_rows=_PAGE)
    except OSError as error:
        remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
        raise StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}") from error
    return counted.count


def write_csv_rows(file: BinaryIO, decisions: Iterable[Decision], *, has_header: bool) -> None:
    """The rows that an exported file would have, for those who write them elsewhere, part by part."""
    _write_csv(file, _Counted(decisions), has_header=has_header)


def read_decisions(path: str | Path) -> pl.DataFrame:
    """The rows of an exported file as they were, whichever of the two it is."""
    import polars as pl

    path = given_path(path, suffixes=_SUFFIXES)
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    schema = _schema()
    frame = pl.read_csv(path, schema={**schema, "available": pl.String})
    given = [
        pl.when(pl.col(name).str.contains(NEUTRALISED)).then(pl.col(name).str.slice(1)).otherwise(name).alias(name)
        for name in _texts()
    ]
    return frame.with_columns(*given, pl.col("available").str.json_decode(schema["available"]))


class _Counted:
    """Decisions as frames of some thousand rows, and how many there were."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        self.count = 0
        self._remaining = iter(decisions)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        import polars as pl

        schema = _schema()
        while page := [tuple(getattr(one, name) for name in schema) for one in islice(self._remaining, _PAGE)]:
            self.count += len(page)
            yield pl.DataFrame(page, schema=schema, orient="row")


def _write_csv(file: BinaryIO, pages: Iterable[pl.DataFrame], *, has_header: bool = True) -> None:
    import polars as pl

    if has_header:
        pl.DataFrame(schema={**_schema(), "available": pl.String}).write_csv(file)
    harmless = [
        pl.when(pl.col(name).str.contains(_FORMULA)).then("'" + pl.col(name)).otherwise(name).alias(name)
        for name in _texts()
    ]
    for page in pages:
        lists = [None if one is None else json.dumps(one, ensure_ascii=False) for one in page["available"].to_list()]
        cells = page.with_columns(*harmless, pl.Series("available", lists, dtype=pl.String))
        cells.write_csv(file, include_header=False)


def _texts() -> list[str]:
    import polars as pl

    return [name for name, kind in _schema().items() if kind == pl.String]


def _schema() -> dict[str, Any]:
    import polars as pl

    return {
        "id": pl.String,
        "round": pl.Int64,
        "decided_at": pl.Float64,
        "context": pl.String,
        "available": pl.List(pl.String),
        "arm": pl.String,
        "value": pl.Float64,
        "price": pl.Float64,
        "probability": pl.Float64,
        "reason": pl.String,
        "cost": pl.Float64,
        "actual_cost": pl.Float64,
        "state": pl.String,
        "reward": pl.Float64,
        "answered_at": pl.Float64,
        "delay": pl.Float64,
        "key": pl.String,
    }
