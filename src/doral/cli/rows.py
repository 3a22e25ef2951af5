"""Rows of a file as requests to a campaign: CSV, JSON lines or Parquet, told apart by the end of its name.

What is wrong is said with its row and column; the header is row 1. A cell of JSON or Parquet is what it would be in
CSV: one reading of numbers, times and lists serves all.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO, TypeAlias

from doral.cli.options import Time, parse_number, parse_time
from doral.errors import DoralError, InvalidValue, UnknownName, shown
from doral.live.errors import CampaignError, KeyReused, OutcomeUnknown, StorageError
from doral.live.views.export import NEUTRALISED, feature_column
from doral.person import Number

if TYPE_CHECKING:
    from doral.live.views.decision import Decision
    from doral.problem import Problem

_PAGE = 10_000  # rows of Parquet that are read together

Cell: TypeAlias = Callable[[str, str], Any]  # from the name of a column and a text

_MOST_ROWS_NAMED = 3
_MOST_SHOWN_CHARACTERS = 120


class Row(NamedTuple):
    number: int
    content: dict[str, Any]  # by column; empty cells are left out


@dataclass(frozen=True, kw_only=True)
class Table:
    """The columns that a file may have, and what each row must be."""

    required: Mapping[str, Cell]
    optional: Mapping[str, Cell]
    may_be_empty: frozenset[str] = frozenset()  # of those required: an empty cell is None
    check: Callable[[dict[str, Any]], object]  # refuses what no campaign would take
    also: Mapping[str, str] = field(default_factory=dict)  # other names of columns, as other commands write them

    @property
    def columns(self) -> dict[str, Cell]:
        return {**self.required, **self.optional}

    def rows(self, file: TextIO) -> Iterator[Row]:
        """Row by row, empty ones left out."""
        lines = _lines(file)
        header = [self.also.get(name.strip(), name.strip()) for name in next(lines, (1, []))[1]]
        self._check_header(header)
        for number, cells in lines:
            if any(cell.strip() for cell in cells):
                yield self.row(number, header, cells)

    def check_names(self, header: Sequence[str]) -> None:
        """Columns that nobody knows, or that are there twice."""
        for name in header:
            if name not in self.columns:
                if ";" in name or "\t" in name:
                    raise InvalidValue("header", ",".join(header)[:_MOST_SHOWN_CHARACTERS], "separate cells by commas")
                raise UnknownName("column", name, self.columns)
            if header.count(name) > 1:
                raise InvalidValue("header", name, "appears twice; name each column once")

    def _check_header(self, header: Sequence[str]) -> None:
        known = ", ".join(self.columns)
        self.check_names(header)
        for name in self.required:
            if name not in header:
                remedy = f"lacks the column {name!r}; the first row names the columns, of: {known}"
                raise InvalidValue("header", ",".join(header), remedy)

    def row(self, number: int, header: Sequence[str], cells: Sequence[str]) -> Row:
        """From texts, one for each column."""
        if len(cells) != len(header):
            remedy = f"must have {len(header)} cells, as the header has; put text with commas into quotes"
            raise InvalidValue(f"row {number}", ",".join(cells)[:_MOST_SHOWN_CHARACTERS], remedy)
        content: dict[str, Any] = {}
        for name, text in zip(header, cells, strict=True):
            if text.strip():
                with _placed(number):
                    content[name] = self.columns[name](name, text)
            elif name in self.may_be_empty:
                content[name] = None
            elif name in self.required:
                raise InvalidValue(_place(number, name), text, "must not be empty")
        with _placed(number):
            self.check(content)
        return Row(number, content)


def placed(error: DoralError, batch: Sequence[Row]) -> str:
    """What a campaign says when it refuses a batch, with the rows and the column that it means, if it means any."""
    for column, is_meant in _suspects(error):
        numbers = [row.number for row in batch if column in row.content and is_meant(row.content[column])]
        if numbers:
            place = f"{_listed(numbers)}, column {column!r}"
            if isinstance(error, InvalidValue) and error.field == column:
                return str(InvalidValue(place, error.value, error.remedy))
            return f"{place}: {error}"
    return str(error)


def _suspects(error: DoralError) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Columns that an error may be about, and whether a value in one of them is the one it means."""
    if isinstance(error, UnknownName):
        yield error.kind, lambda value: value == error.name
        if error.kind == "arm":
            yield "available", lambda value: error.name in value
    elif isinstance(error, KeyReused):
        yield "key", lambda value: str(error).startswith(f"key = {shown(value)}:")
    elif isinstance(error, InvalidValue):
        yield error.field, lambda value: value == error.value
    words = {word.strip("'\":,;") for word in str(error).split()}
    yield "decision_id", lambda value: value in words or f"decision_id = {shown(value)}:" in str(error)


def text(_: str, cell: str) -> str:
    """As it stands, without the apostrophe that an export puts in front of what a spreadsheet would run.

    >>> text("key", "'=1+1"), text("key", "'s-Hertogenbosch")
    ('=1+1', "'s-Hertogenbosch")
    """
    return cell[1:] if re.match(NEUTRALISED, cell) else cell


def number(column: str, cell: str) -> float:
    return parse_number(column, cell)


def time(column: str, cell: str) -> Time:
    return parse_time(column, cell.strip())


def names(column: str, cell: str) -> list[str]:
    """A list in JSON."""
    try:
        found = json.loads(cell)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidValue(column, cell, 'must be a JSON list of names, such as ["clinic-a", "clinic-b"]')
    return found


def flag(column: str, cell: str) -> bool:
    word = cell.strip().lower()
    if word not in ("true", "false"):
        raise InvalidValue(column, cell, "must be true or false")
    return word == "true"


def in_batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while batch := list(islice(rows, size)):
        yield batch


@contextmanager
def rereadable(path: Path) -> Iterator[TextIO]:
    """A file, or standard input for "-", as text that can be read a second time."""
    is_input = str(path) == "-"
    with sys.stdin.buffer if is_input else path.open("rb") as given, tempfile.TemporaryFile() as copy:
        source: BinaryIO = given
        if is_input or not given.seekable():
            shutil.copyfileobj(given, copy)
            copy.seek(0)
            source = copy
        with TextIOWrapper(source, encoding="utf-8-sig", newline="") as file:
            yield file


def _lines(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Numbered as a spreadsheet does it."""
    number = 0
    reader = csv.reader(file, strict=True)
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UnicodeError:
            remedy = 'must be text in UTF-8; in a spreadsheet, save as "CSV UTF-8"'
            raise InvalidValue("file", getattr(file, "name", None) or "standard input", remedy) from None
        except csv.Error as error:
            raise InvalidValue("row", number, f"is no CSV: {error}; is a quote missing?") from None
        yield number, cells


@contextmanager
def _placed(row: int) -> Iterator[None]:
    """What is wrong with a value, with its row."""
    try:
        yield
    except InvalidValue as error:
        raise InvalidValue(_place(row, error.field), error.value, error.remedy) from None


def _place(row: int, column: str) -> str:
    return f"row {row}, column {column!r}"


def _listed(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    shown_ones = ", ".join(map(str, numbers[:_MOST_ROWS_NAMED]))
    more = len(numbers) - _MOST_ROWS_NAMED
    return f"rows {shown_ones}" + (f" and {more:,} more" if more > 0 else "")


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


def arrival_table(problem: Problem) -> Table:
    """Return the columns of arrivals to decide for."""
    from doral.live.kinds.decide import arrival_of

    def check(content: dict[str, Any]) -> None:
        request = gathered(problem, content)
        arrival_of(request)
        _check_person(problem, request)

    required, optional = _context_and_person(problem)
    return Table(required=required, optional={**optional, "available": names, "key": text, "at": time}, check=check)


def answer_table() -> Table:
    """Return the columns of answers."""
    from doral.live.kinds.answer import answer_of

    return Table(
        required={"decision_id": text, "reward": number},
        optional={"actual_cost": number, "key": text, "at": time},
        check=answer_of,
        also={"id": "decision_id"},  # as decisions are written
    )


def record_table(problem: Problem) -> Table:
    """Return the columns of decisions that were made elsewhere."""
    from doral.live.kinds.record import record_of

    def check(content: dict[str, Any]) -> None:
        request = gathered(problem, content)
        record_of(request)
        missing = {"reward", "answered_at"} - request.keys()
        if len(missing) == 1:
            raise InvalidValue(missing.pop(), None, "give reward and answered_at together, or neither")
        _check_person(problem, request)

    required, optional = _context_and_person(problem)
    return Table(
        required={**required, "arm": text, "at": time},
        optional={
            **optional,
            "reward": number,
            "answered_at": time,
            "cost": number,
            "probability": number,
            "spend": flag,
            "key": text,
        },
        may_be_empty=frozenset(("arm",)),
        check=check,
    )


def _context_and_person(problem: Problem) -> tuple[dict[str, Cell], dict[str, Cell]]:
    context: dict[str, Cell] = {"context": text}
    person: dict[str, Cell] = {}
    if problem.person:
        kinds = {feature_column(one.name): number if isinstance(one, Number) else text for one in problem.person}
        person = {"weight": number, "deadline": number, **kinds}
    return (context, person) if problem.n_contexts > 1 else ({}, {**context, **person})


def gathered(problem: Problem, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a request: its features are one argument."""
    if not problem.person:
        return dict(content)
    columns = {feature_column(one.name): one.name for one in problem.person}
    rest = {name: value for name, value in content.items() if name not in columns}
    return {**rest, "features": {columns[name]: content[name] for name in content if name in columns}}


def _check_person(problem: Problem, request: Mapping[str, Any]) -> None:
    """Refuse what a campaign would refuse of a row, before anything is stored."""
    from doral.live.events.person import asked_of, person_for
    from doral.live.kinds.decide import context_for

    person_for(problem, asked_of(*(request.get(name) for name in ("features", "weight", "deadline"))))
    if request.get("context") is None:
        context_for(problem, None)


def store_rows(
    path: Path,
    table: Table,
    size: int,
    step: Callable[[list[dict[str, Any]]], list[Decision]],
    tell: Callable[[list[Decision]], object],
) -> None:
    """Store the rows of a file in batches, each whole or not at all.

    Args:
        path: The file.
        table: Its columns. The whole file is checked by it before anything is stored.
        size: Of a batch.
        step: Stores a batch.
        tell: Called with what became of each batch, and once where there are no rows.
    """
    with readable(path, table) as rows:
        for _ in rows():  # a mistake in the last row is found before the first is stored
            pass
        last = 0
        for batch in in_batches(rows(), size):
            try:
                made = step([row.content for row in batch])
            except DoralError as error:
                raise _refused(error, batch, last) from error
            last = batch[-1].number
            tell(made)
        if not last:
            tell([])


def _refused(error: DoralError, batch: Sequence[Row], last: int) -> DoralError:
    """Return the error with its place, and what is true now."""
    if isinstance(error, OutcomeUnknown):
        done = f"rows {batch[0].number} to {batch[-1].number} may be stored or not; those after them are not"
    elif last:
        done = f"the rows up to {last} are stored, those from {batch[0].number} on are not"
    else:
        done = "nothing was stored"
    words = f"{placed(error, batch)}; {done}"
    return StorageError(words) if isinstance(error, StorageError) else CampaignError(words)
