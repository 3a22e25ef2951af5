"""Decisions as a file for other tools, Parquet or CSV, and back. Written page by page: memory does not grow with them.

Names and keys come from outside. A spreadsheet runs text that begins like a formula, so that in CSV such text gets an
apostrophe in front, as OWASP advises; `read_decisions` takes it away again. Parquet holds everything as it is.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from doral._files import replacing
from doral.errors import shown
from doral.live.errors import StorageError
from doral.live.views.decision import Decision
from doral.live.views.files import given_path, write_parquet
from doral.logs.source import FORMULA
from doral.logs.source import NEUTRALISED as NEUTRALISED
from doral.person import Category, Feature

if TYPE_CHECKING:
    import polars as pl

_PAGE = 20_000
_SUFFIXES = (".parquet", ".csv")


COLUMNS = (
    "id", "round", "decided_at", "context", "available", "arm", "value", "price", "return_here", "probability",
    "reason_code", "reason", "cost",
    "actual_cost", "state", "reward", "answered_at", "delay", "key",
)  # fmt: skip
OF_PEOPLE = ("weight", "deadline", "base")  # where a problem says what is known of people; then come their features
_TEXT_COLUMNS = ("id", "context", "arm", "reason_code", "reason", "state", "key")
_AVAILABLE = COLUMNS.index("available")
_IS_FORMULA = re.compile(FORMULA)
_FEATURE, _EFFECT = "feature:", "effect:"


def feature_column(name: str) -> str:
    """The column of a feature: its name, unless that says something else.

    >>> feature_column("age"), feature_column("cost")
    ('age', 'feature:cost')
    """
    is_taken = name in COLUMNS + OF_PEOPLE + _TAKEN or name.startswith((_FEATURE, _EFFECT))
    return _FEATURE + name if is_taken else name


_TAKEN = ("at", "features", "answered_at", "spend", "decision_id")  # columns of files that are read


class _Layout:
    """The columns of a file, and how a decision fills them."""

    def __init__(self, person: Sequence[Feature]) -> None:
        self._names = [one.name for one in person]
        words = {feature_column(one.name) for one in person if isinstance(one, Category)}
        self.columns: tuple[str, ...] = COLUMNS
        if person:
            own = (*map(feature_column, self._names), *(_EFFECT + name for name in self._names))
            self.columns = (*COLUMNS, *OF_PEOPLE, *own)
        self.texts = [place for place, name in enumerate(self.columns) if name in _TEXT_COLUMNS or name in words]
        self._words = words

    def row(self, one: Decision) -> tuple[Any, ...]:
        row = tuple(getattr(one, name) for name in COLUMNS)
        if not self._names:
            return row
        features, effects = one.features or {}, one.effects or {}
        return (
            *row,
            *(getattr(one, name) for name in OF_PEOPLE),
            *(features.get(name) for name in self._names),
            *(effects.get(name) for name in self._names),
        )

    def cells(self, row: tuple[Any, ...]) -> list[Any]:
        """As they are written: lists as JSON, and no formulas."""
        cells = list(row)
        if cells[_AVAILABLE] is not None:
            cells[_AVAILABLE] = json.dumps(cells[_AVAILABLE], ensure_ascii=False)
        for index in self.texts:
            if cells[index] is not None and _IS_FORMULA.match(cells[index]):
                cells[index] = "'" + cells[index]
        return cells

    def schema(self) -> dict[str, Any]:
        import polars as pl

        kinds: dict[str, Any] = {**dict.fromkeys((*_TEXT_COLUMNS, *self._words), pl.String), "round": pl.Int64}
        kinds["available"] = pl.List(pl.String)
        return {name: kinds.get(name, pl.Float64) for name in self.columns}


def write_decisions(path: str | Path, decisions: Iterable[Decision], person: Sequence[Feature] = ()) -> int:
    """One row per decision; the file is there whole or not at all, and a new one is for its owner alone."""
    path = given_path(path, suffixes=_SUFFIXES)
    counted = _Counted(decisions, _Layout(person))
    try:
        with replacing(path, is_private=True) as file:
            if path.suffix == ".csv":
                _write_csv(file, counted)
            else:
                write_parquet(file, counted, counted.layout.schema(), group_rows=_PAGE)
    except OSError as error:
        remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
        raise StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}") from error
    return counted.count


def write_csv_rows(
    file: BinaryIO, decisions: Iterable[Decision], *, has_header: bool, person: Sequence[Feature] = ()
) -> None:
    """The rows that an exported file would have, for those who write them elsewhere, part by part."""
    _write_csv(file, _Counted(decisions, _Layout(person)), has_header=has_header)


def write_parquet_rows(file: BinaryIO, decisions: Iterable[Decision], *, person: Sequence[Feature] = ()) -> None:
    """The whole Parquet file, into something that is only ever written to at its end."""
    counted = _Counted(decisions, _Layout(person))
    write_parquet(file, counted, counted.layout.schema(), group_rows=_PAGE)


def read_decisions(path: str | Path) -> pl.DataFrame:
    """The rows of an exported file as they were, whichever of the two it is; in CSV, a feature of people is a number
    where all its words are.
    """
    import polars as pl

    path = given_path(path, suffixes=_SUFFIXES)
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    schema = _Layout(()).schema()
    frame = pl.read_csv(path, schema_overrides={**schema, "available": pl.String}, infer_schema_length=None)
    own = [name for name in frame.columns if name not in COLUMNS]
    texts = [*_TEXT_COLUMNS, *(name for name in own if frame.schema[name] == pl.String and name not in OF_PEOPLE)]
    numbers = [
        pl.col(name).cast(pl.Float64)
        for name in own
        if name in OF_PEOPLE or name.startswith(_EFFECT) or frame.schema[name] == pl.Int64
    ]
    given = [
        pl.when(pl.col(name).str.contains(NEUTRALISED)).then(pl.col(name).str.slice(1)).otherwise(name).alias(name)
        for name in texts
    ]
    return frame.with_columns(*given, *numbers, pl.col("available").str.json_decode(schema["available"]))


class _Counted:
    """Decisions in pages of some thousand rows, and how many there were."""

    def __init__(self, decisions: Iterable[Decision], layout: _Layout) -> None:
        self.count = 0
        self.layout = layout
        self._remaining = iter(decisions)

    def pages(self) -> Iterator[list[tuple[Any, ...]]]:
        while page := list(map(self.layout.row, islice(self._remaining, _PAGE))):
            self.count += len(page)
            yield page

    def __iter__(self) -> Iterator[pl.DataFrame]:
        import polars as pl

        schema = self.layout.schema()
        for page in self.pages():
            yield pl.DataFrame(page, schema=schema, orient="row")


def _write_csv(file: BinaryIO, decisions: _Counted, *, has_header: bool = True) -> None:
    """Without polars, whose threads a forked process does not have."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    layout = decisions.layout
    if has_header:
        writer.writerow([f"'{name}" if _IS_FORMULA.match(name) else name for name in layout.columns])
    for page in decisions.pages():
        writer.writerows(map(layout.cells, page))
        file.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
    file.write(text.getvalue().encode())
