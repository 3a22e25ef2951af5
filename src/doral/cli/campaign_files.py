"""Rows of a file as requests to a campaign: CSV, JSON lines or Parquet, told apart by the end of its name.

A cell of the latter two is what it would be in CSV: one reading of numbers, times and lists serves all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from doral.cli.campaign_tables import Row, Table, rereadable
from doral.errors import InvalidValue
from doral.live.views.export import NEUTRALISED

_PAGE = 10_000


@contextmanager
def readable(path: Path, table: Table) -> Iterator[Callable[[], Iterator[Row]]]:
    """What gives the rows of a file, as often as it is asked; "-" is standard input, in CSV."""
    if path.suffix == ".parquet":
        yield lambda: _rows_of_parquet(path, table)
        return
    with rereadable(path) as file:

        def rows() -> Iterator[Row]:
            file.seek(0)
            return _rows_of_json(file, table) if path.suffix == ".jsonl" else table.rows(file)

        yield rows


def _rows_of_json(file: TextIO, table: Table) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise InvalidValue(f"row {number}", line.strip()[:80], f"must be an object of JSON: {error}") from None
        if not isinstance(found, dict):
            raise InvalidValue(f"row {number}", line.strip()[:80], "must be an object of JSON")
        yield _row(number, found, table)


def _rows_of_parquet(path: Path, table: Table) -> Iterator[Row]:
    import polars as pl

    frame = pl.scan_parquet(path, glob=False)
    number = 0
    while True:
        try:
            page = frame.slice(number, _PAGE).collect().rows(named=True)
        except pl.exceptions.PolarsError as error:
            raise InvalidValue("file", str(path), f"is no Parquet: {str(error).splitlines()[0]}") from None
        if not page:
            return
        for one in page:
            number += 1
            yield _row(number, one, table)


def _row(number: int, found: Mapping[str, Any], table: Table) -> Row:
    names = list(found)
    table.check_names(names)
    row = table.row(number, names, [_cell(value) for value in found.values()])
    missing = [name for name in table.required if name not in found]
    if missing:
        raise InvalidValue(f"row {number}, column {missing[0]!r}", None, "must not be left out")
    return row


def _cell(value: Any) -> str:
    """As CSV would have it."""
    if value is None or value != value:
        return ""
    if isinstance(value, str):
        return f"'{value}" if re.match(NEUTRALISED, value) else value
    if isinstance(value, datetime):
        return value.isoformat()
    return json.dumps(value)
