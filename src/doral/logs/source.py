"""Where a log comes from: files and tables of any library, refused before they are read where they are none."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doral._arrays import Floats
from doral.errors import InvalidValue, shown
from doral.logs.log import SKIPPED, Log

if TYPE_CHECKING:
    import polars as pl

SOURCE = "source"  # the field that messages name
MAX_COLUMNS = 5_000  # of more, a table was turned on its side
# A spreadsheet runs text that begins like a formula. In CSV such text gets an apostrophe in front, as OWASP advises;
# reading takes it away again. (Characters as they are: polars and Python write them differently in a pattern.)
_SKIPPED = "\\s'\"\u2018\u2019\u201c\u201d\u200b\ufeff"  # some spreadsheets drop blanks and quotes in front
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the latter are the full-width ones
FORMULA = rf"^(?:[{_SKIPPED}]*[{_SIGNS}]|[\t\r\n])"
NEUTRALISED = FORMULA.replace("^", "^'", 1)
_SAMPLE = 1 << 16  # bytes: a header fits, and a look at them tells text from the rest
_MAX_UNPACKED = 4 << 30  # bytes: a small file may unpack to any size
_SEPARATORS = (",", ";", "\t", "|")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # as spreadsheets save "Unicode text"
_SEP_LINE = re.compile(rb"\A(?:\xef\xbb\xbf)?\"?sep=(.)\"?\r?\n")  # a first line for spreadsheets
_LOOKS_LIKE_DATA = re.compile(r"[+-]?\d+(?:[.,]\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T].*)?")
_REFUSED = (
    (b"PK\x03\x04", "is a zip file or a spreadsheet; save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "is an old spreadsheet; save the sheet as CSV"),
    (b"%PDF", "is a PDF; save the table as CSV"),
    (b"SQLite format 3", "is a database; a campaign's log comes from `campaign.export('log.parquet')`"),
)


@dataclass(frozen=True)
class Opened:
    """A table of which only the names of columns were read as yet."""

    name: str
    names: tuple[str, ...]
    load: Callable[[int], pl.DataFrame]  # of at most so many rows
    is_text: bool = False  # its cells are text, whatever they mean
    has_decimal_comma: bool = False  # columns are separated by semicolons because of it
    notes: list[str] = field(default_factory=list)


def open_source(source: object) -> Opened:
    """Open a path, a data frame of any library, an Arrow table, or a mapping from names to columns."""
    import polars as pl

    if isinstance(source, pl.LazyFrame):
        with readable(source):
            names = tuple(source.collect_schema().names())
        lazy = source
        return _checked(Opened("frame", names, lambda rows: lazy.head(rows).collect()))
    with readable(source):
        return _open_other(source)


def _open_other(source: object) -> Opened:
    import polars as pl

    if type(source).__module__.split(".")[0] == "narwhals" and hasattr(source, "to_native"):
        return open_source(source.to_native())
    if isinstance(source, pl.DataFrame):
        frame = source
    elif type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
        frame = from_pandas(source)
    elif hasattr(source, "__arrow_c_stream__"):
        frame = from_arrow(source)
    elif hasattr(source, "to_arrow_table"):  # relations of DuckDB
        frame = from_arrow(source.to_arrow_table())
    elif isinstance(source, Mapping):
        frame = from_mapping(source)
    elif isinstance(source, str | os.PathLike):
        return _checked(_open_file(source))
    else:
        remedy = "must be the path of a CSV or Parquet file, a data frame, an Arrow table, or a mapping of columns"
        raise InvalidValue(SOURCE, source, remedy)
    return _checked(Opened("frame", tuple(frame.columns), frame.head))


@contextmanager
def readable(source: object, *, is_ours: bool = False) -> Iterator[None]:
    """What goes wrong within, while a table is read, is an error of the table; what `is_ours` may also be a bug."""
    import polars as pl

    try:
        yield
    except InvalidValue:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeError, OSError, EOFError, zlib.error) as e:
        first = str(e).strip().splitlines()[:1]
        raise InvalidValue(SOURCE, source, f"cannot be read as a table: {first[0][:200] if first else e!r}") from e
    except (TypeError, ValueError, OverflowError, MemoryError) as e:
        if is_ours:
            raise
        raise InvalidValue(SOURCE, source, f"cannot be read as a table: {str(e)[:200] or type(e).__name__}") from e


def _checked(opened: Opened) -> Opened:
    if not opened.names:
        raise InvalidValue(SOURCE, opened.name, "has no columns; give a table whose first line names them")
    if len(opened.names) > MAX_COLUMNS:
        raise InvalidValue(
            "number of columns", len(opened.names), f"must be at most {MAX_COLUMNS:,}; is it on its side?"
        )
    return opened


def _open_file(given: str | os.PathLike[str]) -> Opened:
    try:
        path = Path(os.fsdecode(given))
        is_folder, is_there = path.is_dir(), path.exists()
    except (ValueError, OSError) as error:  # a NUL in it, or a name longer than any
        raise InvalidValue(SOURCE, str(given), "is no path that a file can have") from error
    if is_folder:
        raise InvalidValue(SOURCE, str(path), "is a folder; give a file in it")
    if not is_there:
        raise InvalidValue(SOURCE, str(path), "there is no such file")
    if not path.is_file():
        raise InvalidValue(SOURCE, str(path), "is not an ordinary file")
    with readable(str(path)):
        return _open_bytes(path)


def _open_bytes(path: Path) -> Opened:
    import polars as pl

    shown_path, is_packed = str(path), False
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
    if not sample:
        raise InvalidValue(SOURCE, shown_path, "is empty")
    if sample[:4] == b"PAR1":
        names = tuple(pl.scan_parquet(path).collect_schema().names())
        return Opened(path.name, names, lambda rows: pl.scan_parquet(path).head(rows).collect())
    if path.suffix.lower() == ".parquet":
        raise InvalidValue(SOURCE, shown_path, "is named .parquet but is no Parquet file")
    if sample[:2] == b"\x1f\x8b":
        is_packed = True
        with gzip.open(path) as unpacked:
            sample = unpacked.read(_SAMPLE)
    is_utf_16 = sample.startswith(_UTF_16)
    if is_utf_16:
        sample = sample.decode("utf-16", errors="ignore").encode()
    _refuse_other_kinds(sample, shown_path)
    return _open_text(path, sample, is_packed=is_packed, is_utf_16=is_utf_16)


def _refuse_other_kinds(sample: bytes, path: str) -> None:
    for start, remedy in _REFUSED:
        if sample.startswith(start):
            raise InvalidValue(SOURCE, path, remedy)
    begin = sample.removeprefix(b"\xef\xbb\xbf").lstrip()[:200].lower()
    if not begin:
        raise InvalidValue(SOURCE, path, "is blank")
    if begin.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")):
        raise InvalidValue(SOURCE, path, "is a page of the web or XML, not a table; was the download refused?")
    if begin.startswith((b'{"', b"[{", b"{\n", b"[\n")):
        raise InvalidValue(SOURCE, path, "is JSON; give a CSV or Parquet file, or a mapping of columns")
    # Text has hardly any control characters beside tabs and ends of lines; bytes of anything else have one in eight.
    controls = len(re.findall(rb"[\x00-\x08\x0e-\x1f\x7f]", sample))
    if b"\0" in sample or controls > len(sample) / 100:
        raise InvalidValue(SOURCE, path, "is not text; give a CSV or Parquet file")


def _open_text(path: Path, sample: bytes, *, is_packed: bool, is_utf_16: bool) -> Opened:
    import polars as pl

    said = _SEP_LINE.match(sample)
    begin = sample[said.end() :] if said else sample.removeprefix(b"\xef\xbb\xbf")
    header, *following = re.split(rb"\r\n|\n|\r", begin.lstrip(b"\r\n"), maxsplit=5)
    if len(header) >= _SAMPLE - 8:
        raise InvalidValue(
            SOURCE, str(path), f"has a first line of more than {_SAMPLE:,} bytes; it should name the columns"
        )
    is_western = not _is_utf8(header)
    line = header.decode("cp1252" if is_western else "utf-8", errors="replace")
    separator = (
        said[1].decode("ascii", errors="replace") if said else max(_SEPARATORS, key=lambda one: _cells(line, one))
    )
    notes: list[str] = []
    options = {"separator": separator, "infer_schema": False, "encoding": "utf8"}
    names = tuple(pl.read_csv(io.BytesIO(line.encode() + b"\n"), **options).columns)  # type: ignore[arg-type]
    below = next((one for one in (part.decode("utf-8", errors="replace") for part in following[:4]) if one.strip()), "")
    is_blank = [not one.strip() or one.startswith("_duplicated_") for one in names]
    if sum(is_blank) > len(names) / 2 or (len(names) == 1 and max(_cells(below, one) for one in _SEPARATORS) > 1):
        remedy = (
            f"the first line, {shown(line.strip()[:60])}, does not name the columns; remove lines above their names"
        )
        raise InvalidValue(SOURCE, str(path), remedy)
    notes += _repeated(names, line)
    options["skip_rows"] = 1 if said else 0

    def as_utf8(data: bytes | Path) -> bytes:
        notes.append("The file is not in UTF-8; it was read as Windows-1252 (Western European).")
        return (data if isinstance(data, bytes) else data.read_bytes()).decode("cp1252", errors="replace").encode()

    def load(rows: int) -> pl.DataFrame:
        data: bytes | Path = _unpacked(path) if is_packed else path
        if is_utf_16:
            data = (data if isinstance(data, bytes) else data.read_bytes()).decode("utf-16").encode()
        if _has_open_quote(data):  # all that follows would be one cell
            raise InvalidValue(SOURCE, str(path), 'has a quote (") that is not closed; write one in a cell as ""')
        if b"\r" in sample and b"\n" not in sample:  # ends of lines as old spreadsheets write them
            data = (data if isinstance(data, bytes) else data.read_bytes()).replace(b"\r", b"\n")
        try:
            frame = pl.read_csv(as_utf8(data) if is_western else data, n_rows=rows, **options)  # type: ignore[arg-type]
        except pl.exceptions.ComputeError as error:
            if "utf-8" in str(error).lower() or "utf8" in str(error).lower():
                frame = pl.read_csv(as_utf8(data), n_rows=rows, **options)  # type: ignore[arg-type]
            elif "more fields" in str(error) or "found more" in str(error):
                quoted = f"put cells that contain {shown(separator)} in quotes"
                remedy = f"a line has more cells than the header ({len(names)}); {quoted}"
                raise InvalidValue(SOURCE, str(path), remedy) from error
            else:
                raise
        _refuse_data_as_names(frame, str(path))
        return _without_apostrophes(_without_repeated_names(frame, notes))

    return Opened(path.name, names, load, is_text=True, has_decimal_comma=separator == ";", notes=notes)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cells(line: str, separator: str) -> int:
    return len(re.sub(r'"[^"]*"', "", line).split(separator))


def _refuse_data_as_names(frame: pl.DataFrame, path: str) -> None:
    """A file without a line of names would lose a row, and its columns would be called by what that row says."""
    names = [one for one in frame.columns if one.strip()]
    if names == [str(one) for one in range(len(names))] or frame.height == 0:
        return
    numbers = [one for one in names if _LOOKS_LIKE_DATA.fullmatch(one.strip())]
    values = [one for one in names if one not in numbers and (frame[one].head(1_000) == one).any()]
    if numbers and len(numbers) + len(values) > max(1.0, 0.6 * len(names)):
        listed = ", ".join(shown(one[:20]) for one in names[:4])
        remedy = f"the first line seems to hold data ({listed}), not names of columns; put a line with names above it"
        raise InvalidValue(SOURCE, path, remedy)


def _without_repeated_names(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Files that were put one below the other have their line of names several times."""
    import polars as pl

    own = [one for one in frame.columns if one.strip() and "_duplicated_" not in one]
    if len(own) < 2 or not (frame[own[0]] == own[0]).any():
        return frame
    repeats = pl.all_horizontal(pl.col(one).eq_missing(one) for one in own)
    n_repeats = int(frame.select(repeats.sum()).item())
    if n_repeats:
        notes.append(f"{n_repeats:,} lines repeat the names of the columns: they are no rows.")
    return frame.filter(~repeats)


def _repeated(names: tuple[str, ...], header: str) -> list[str]:
    """Columns of the same name, of which all but the first were given another."""
    found = [name.rpartition("_duplicated_")[0] for name in names if "_duplicated_" in name and name not in header]
    return [
        f"Several columns are named {shown(one)}: the first is taken for it." for one in dict.fromkeys(found) if one
    ]


def _has_open_quote(data: bytes | Path) -> bool:
    if isinstance(data, bytes):
        return data.count(b'"') % 2 == 1
    with data.open("rb") as file:
        return sum(part.count(b'"') for part in iter(lambda: file.read(1 << 22), b"")) % 2 == 1


def _unpacked(path: Path) -> bytes:
    parts, size = [], 0
    with gzip.open(path) as file:
        while part := file.read(1 << 22):
            size += len(part)
            if size > _MAX_UNPACKED:
                raise InvalidValue(SOURCE, str(path), f"unpacks to more than {_MAX_UNPACKED >> 30} GiB")
            parts.append(part)
    return b"".join(parts)


def _without_apostrophes(frame: pl.DataFrame) -> pl.DataFrame:
    """Cells that begin like formulas were given one, in files that are for spreadsheets."""
    import polars as pl

    suspects = [name for name in frame.columns if frame[name].str.starts_with("'").any()]
    return frame.with_columns(
        pl.when(pl.col(name).str.contains(NEUTRALISED))
        .then(pl.col(name).str.slice(1))
        .otherwise(pl.col(name))
        .alias(name)
        for name in suspects
    )


def from_mapping(given: Mapping[Any, Any]) -> pl.DataFrame:
    """Columns of equal length, by name."""
    import polars as pl

    columns = {}
    for name, values in given.items():
        if not isinstance(name, str):
            raise InvalidValue("name of a column", name, "must be a string")
        if (
            isinstance(values, str | bytes | Mapping)
            or not hasattr(values, "__len__")
            or not hasattr(values, "__iter__")
        ):
            raise InvalidValue(f"column {shown(name)}", values, "must be a list or an array, one value for every row")
        if type(values).__module__.split(".")[0] == "pandas":
            columns[name] = _from_pandas(name, values)
        else:
            columns[name] = values if isinstance(values, pl.Series) else column_of(name, values)
    lengths = {name: len(one) for name, one in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest, longest = min(lengths, key=lambda one: lengths[one]), max(lengths, key=lambda one: lengths[one])
        said = f"{shown(shortest)} has {lengths[shortest]:,} values and {shown(longest)} {lengths[longest]:,}"
        raise InvalidValue(SOURCE, sorted(lengths)[:5], f"columns must be equally long: {said}")
    return pl.DataFrame({name: one.alias(name) for name, one in columns.items()})


def from_arrow(source: Any) -> pl.DataFrame:
    """Read anything that offers the Arrow PyCapsule interface; what Arrow cannot hand over becomes text."""
    import polars as pl

    frame = pl.DataFrame(source)
    odd = [name for name, kind in frame.schema.items() if kind == pl.Object]
    return frame.with_columns(column_of(name, frame[name].to_list()).alias(name) for name in odd)


def from_pandas(frame: Any) -> pl.DataFrame:
    """Read column by column, without Arrow, which pandas does not need for ordinary columns either.

    An index with a name is a column like any other: `set_index("time")` must not lose the times.
    """
    import polars as pl

    if named := [name for name in frame.index.names if name is not None and name not in frame.columns]:
        frame = frame.reset_index(level=named)

    names = [" ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in frame.columns]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue("name of a column", name, "appears twice; give each its own name")
    return pl.DataFrame([_from_pandas(name, frame.iloc[:, place]) for place, name in enumerate(names)])


def _from_pandas(name: str, column: Any) -> pl.Series:
    import polars as pl

    kind = getattr(column.dtype, "kind", "O")
    if hasattr(column.dtype, "pyarrow_dtype"):  # kept by Arrow: such columns have other methods
        import pyarrow

        arrow = pyarrow.array(column)
        return column_of(name, arrow)
    if kind == "M":  # moments; those with a zone are kept in UTC
        zone = getattr(column.dtype, "tz", None)
        plain = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        moments = pl.Series(name, plain.to_numpy(dtype="datetime64[us]"))
        return moments if zone is None else moments.dt.replace_time_zone("UTC")
    if kind == "m":
        return pl.Series(name, column.to_numpy().astype("timedelta64[us]"))
    if isinstance(column.dtype, np.dtype) and kind in "biuf":
        return pl.Series(name, column.to_numpy())
    is_missing = np.asarray(column.isna(), dtype=bool)
    values = np.array(column.astype(object), dtype=object)  # a copy: pandas 3 hands out what cannot be written to
    values[is_missing] = None
    return column_of(name, values.tolist())


def column_of(name: str, values: Any) -> pl.Series:
    """As they are where they are of one kind, as text where they are not."""
    import polars as pl

    try:
        series = pl.Series(name, values)
        if series.dtype != pl.Object:
            return series
    except (
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
    ):
        pass
    return pl.Series(name, [None if one is None else _text_of(one) for one in values], dtype=pl.String)


def _text_of(value: object) -> str:
    try:
        return str(value).encode("utf-8", errors="replace").decode()
    except Exception:  # noqa: BLE001  (a foreign __str__ may raise anything)
        return f"<{type(value).__name__}>"


_TIME = {"seconds": "time_seconds", "rounds": "round", "units": "time"}  # columns that say their unit


def frame_of(log: Log) -> pl.DataFrame:
    """One row per arrival; what is not known is empty. With silent feedback, a zero is there but was never heard."""
    import polars as pl

    def at(times: Floats) -> pl.Series:
        if log.start is None:
            return pl.Series(times).set(pl.Series(~np.isfinite(times)), None)
        is_known = np.isfinite(times)
        micro = np.zeros(times.size, dtype=np.int64)
        micro[is_known] = np.rint(times[is_known] * 1e6).astype(np.int64)
        start = pl.Series([log.start]).dt.epoch("us")[0]
        moments = pl.Series(micro + start).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        return moments.set(pl.Series(~is_known), None)

    def known(values: Floats) -> pl.Series:
        return pl.Series(values).fill_nan(None)

    arms, contexts = np.array([*log.arms, None], dtype=object), np.array(log.contexts, dtype=object)
    columns: dict[str, pl.Series] = {}
    if log.key:
        columns["id"] = pl.Series(log.key)
    columns["time" if log.start is not None else _TIME[log.clock.unit]] = at(log.time)
    columns["context"] = pl.Series(contexts[log.context].tolist(), dtype=pl.String)
    places = np.where(log.arm == SKIPPED, len(log.arms), log.arm)
    columns["arm"] = pl.Series(arms[places].tolist(), dtype=pl.String)
    is_silent = log.feedback == "silent"
    columns["reward"] = known(np.where(np.isnan(log.reward), 0.0, log.reward) if is_silent else log.reward)
    if log.has_delays or is_silent:
        columns["answered_at"] = at(log.time + log.delay)
    columns["observed_until"] = at(log.time + log.watched)
    columns["cost"] = pl.Series(log.cost)
    columns["paid"] = known(log.paid)
    if log.told != "none":
        columns["probability"] = known(log.probability)
    return pl.DataFrame({name: one.alias(name) for name, one in columns.items()})
