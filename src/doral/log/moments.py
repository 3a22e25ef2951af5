"""Moments of the world from dates, times and text, in microseconds since 1970 in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown
from doral.log.values import text_of, without_missing

if TYPE_CHECKING:
    import polars as pl

_CLOCK = (
    r"(?:(?:[Tt]|\s+)\s*(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:[.,](?<part>\d{1,9}))?)?"
    r"\s*(?<half>[AaPp][Mm])?\s*(?<zone>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?$"
)
_YEAR_FIRST = r"^(?<year>\d{4})[-/.](?<first>\d{1,2})[-/.](?<last>\d{1,2})" + _CLOCK
_YEAR_LAST = r"^(?<first>\d{1,2})(?<mark>[-/.])(?<last>\d{1,2})[-/.](?<year>\d{4})" + _CLOCK


class Moments(NamedTuple):
    value: Floats
    is_bad: Flags
    is_days: bool
    notes: tuple[str, ...]


def moments_of(series: pl.Series, *, role: str) -> Moments:
    """A column of dates or times, in whatever form."""
    import polars as pl

    nothing_bad = np.zeros(len(series), dtype=bool)
    if series.dtype == pl.Date:
        return Moments(_micro(series.cast(pl.Datetime("us"))), nothing_bad, True, ())
    if isinstance(series.dtype, pl.Datetime):
        zone = series.dtype.time_zone
        plain = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zone else series
        value = _micro(plain.cast(pl.Datetime("us")))
        note = () if zone else (f"Times in column {shown(series.name)} have no zone; they are taken to be in UTC.",)
        return Moments(value, nothing_bad, False, note)
    if series.dtype.is_temporal():
        raise InvalidValue(role, series.name, "holds times of day or durations; dates are needed")
    return _from_text(series, role)


def _from_text(series: pl.Series, role: str) -> Moments:
    import polars as pl

    text = without_missing(text_of(series))
    parts = text.str.extract_groups(_YEAR_FIRST).struct.unnest()
    notes: list[str] = []
    has_other = text.is_not_null() & parts["year"].is_null()
    if has_other.any():
        other = text.set(~has_other, None).str.extract_groups(_YEAR_LAST).struct.unnest()
        if other["year"].is_not_null().any():
            other = _in_order(other, series.name, role, notes)
            parts = parts.select(pl.coalesce(pl.col(name), other[name]).alias(name) for name in parts.columns)
    date = pl.concat_str(
        pl.col("year"), pl.col("first").str.zfill(2), pl.col("last").str.zfill(2), separator="-"
    ).str.to_date("%Y-%m-%d", strict=False)
    hour = pl.col("hour").cast(pl.Int64)
    half = pl.col("half").str.to_lowercase()
    hour = pl.when(half.is_not_null()).then(hour % 12 + pl.when(half == "pm").then(12).otherwise(0)).otherwise(hour)
    second = pl.col("second").cast(pl.Int64).fill_null(0)
    minute = pl.col("minute").cast(pl.Int64)
    part = pl.col("part").str.pad_end(9, "0").cast(pl.Int64).fill_null(0) // 1000
    digits = pl.col("zone").str.replace_all(r"[^0-9]", "").str.pad_end(4, "0")
    sign = pl.when(pl.col("zone").str.starts_with("-")).then(-1).otherwise(1)
    ahead = pl.when(pl.col("zone").str.contains(r"^[+-]")).then(
        sign * (digits.str.slice(0, 2).cast(pl.Int64) * 60 + digits.str.slice(2, 2).cast(pl.Int64))
    )
    is_possible = (hour < 24) & (minute < 60) & (second < 61)
    of_day = pl.when(pl.col("hour").is_null()).then(0).when(is_possible).then((hour * 60 + minute) * 60 + second)
    micro = date.cast(pl.Datetime("us")).dt.epoch("us") + (of_day - ahead.fill_null(0) * 60) * 1_000_000 + part
    done = parts.select(
        micro.cast(pl.Float64).alias("micro"),
        ahead.alias("ahead"),
        pl.col("zone"),
        pl.col("hour").is_null().alias("day"),
    )
    is_read = done["micro"].is_not_null()
    is_bad = (text.is_not_null() & ~is_read).to_numpy()
    if is_bad.any() and 2 * int(is_bad.sum()) > int(text.is_not_null().sum()):
        remedy = f"column {shown(series.name)} should hold times such as 2027-03-31 or 2027-03-31T18:00:00Z"
        raise InvalidValue(role, text.filter(pl.Series(is_bad))[0], remedy)
    notes += _about_zones(done.filter(is_read), series.name)
    is_days = bool(done.filter(is_read)["day"].all()) and bool(is_read.any())
    value = done["micro"].fill_null(np.nan).to_numpy().copy()
    return Moments(value, is_bad, is_days, tuple(notes))


def _in_order(parts: pl.DataFrame, name: str, role: str, notes: list[str]) -> pl.DataFrame:
    """Dates that end with the year: with points the day comes first; with other marks, only the numbers can tell."""
    import polars as pl

    first, last = parts["first"].cast(pl.Int64), parts["last"].cast(pl.Int64)
    is_day_first, is_month_first = bool((first > 12).any()), bool((last > 12).any())
    if bool((parts["mark"].drop_nulls() == ".").all()):
        is_day_first, is_month_first = True, False
    if is_day_first == is_month_first:
        example = parts.drop_nulls("year").row(0, named=True)
        written = example["mark"].join((example["first"], example["last"], example["year"]))
        remedy = f"column {shown(name)}: does the day or the month come first? write dates as 2027-03-31"
        raise InvalidValue(role, written, remedy)
    notes.append(f"Dates in column {shown(name)} begin with the {'day' if is_day_first else 'month'}.")
    if is_day_first:
        parts = parts.rename({"first": "last", "last": "first"})
    return parts


def _about_zones(read: pl.DataFrame, name: str) -> list[str]:
    timed = read.filter(~read["day"])
    if timed.is_empty():
        return []
    n_bare = int(timed["zone"].is_null().sum())
    if n_bare == timed.height:
        return [f"Times in column {shown(name)} have no zone; they are taken to be in UTC."]
    notes = []
    n_zones = timed["ahead"].fill_null(0).filter(timed["zone"].is_not_null()).n_unique()
    if n_zones > 1:
        notes.append(f"Times in column {shown(name)} are in {n_zones} zones; all were turned to UTC.")
    if n_bare:
        notes.append(f"{n_bare:,} times in column {shown(name)} have no zone; they are taken to be in UTC.")
    return notes


def _micro(moments: pl.Series) -> Floats:
    import polars as pl

    return moments.dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
