"""Rows of CSV as requests to a campaign. What is wrong is said with its row and column; the header is row 1."""

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
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, TypeAlias

from doral.cli.campaign_words import Time, parse_number, parse_time
from doral.errors import DoralError, InvalidValue, UnknownName, shown
from doral.live.errors import KeyReused
from doral.live.views.export import NEUTRALISED

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
