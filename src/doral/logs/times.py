"""Times in any notation on one clock: microseconds since 1970 in UTC, or the numbers of the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown
from doral.logs.clock import SECONDS
from doral.logs.columns import hints_at
from doral.logs.values import numbers_of, text_of, without_missing

if TYPE_CHECKING:
    import polars as pl

MICRO = 1e6  # in a second
DAY_US = 86_400 * MICRO
YEAR_US = 365 * DAY_US
# Numbers that are seconds since 1970 within 1990 to 2100, and what they are thousands of.
EPOCH_FIRST, EPOCH_LAST = 631_152_000.0, 4_102_444_800.0
EPOCHS = (("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))
_EARLIEST_US, _LATEST_US = -62_135_596_800 * MICRO, 253_402_300_799 * MICRO  # years 1 to 9999, which dates can have
# Days since 1899-12-30, as spreadsheets count them, from 2000 to 2100.
_SERIAL_FIRST, _SERIAL_LAST, _SERIAL_OF_1970 = 36_526.0, 73_051.0, 25_569.0
_MAX_NUMBER = 1e19  # nanoseconds since 1970 reach 4e18 in 2100
Kind = Literal["world", "seconds", "rounds", "units"]  # of a clock; "world" also has dates
_CLOCK = (
    r"(?:(?:[Tt]|\s+)\s*(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2})(?:[.,](?<part>\d{1,9}))?)?"
    r"\s*(?<half>[AaPp][Mm])?\s*(?<zone>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?$"
)
_YEAR_FIRST = r"^(?<year>\d{4})[-/.](?<first>\d{1,2})[-/.](?<last>\d{1,2})" + _CLOCK
_YEAR_LAST = r"^(?<first>\d{1,2})(?<mark>[-/.])(?<last>\d{1,2})[-/.](?<year>\d{4}|\d{2})" + _CLOCK
_DAY_MONTH = (
    r"^(?:\p{L}+\.?,?\s+)?(?<day>\d{1,2})(?:st|nd|rd|th|\.)?[\s-]*(?<month>\p{L}{3,})\.?,?[\s-]+"
    r"(?<year>\d{4})(?<rest>.*)$"
)
_MONTH_DAY = r"^(?:\p{L}+,\s+)?(?<month>\p{L}{3,})\.?\s+(?<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?<year>\d{4})(?<rest>.*)$"
_MONTHS = (
    "jan january januar jänner janvier janv enero ene januari gennaio gen janeiro",
    "feb february februar février févr fevr febrero februari febbraio fevereiro",
    "mar march märz mrz mars marzo maart mrt março", "apr april avril avr abril abr aprile",
    "may mai mayo mei maggio maio", "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho", "aug august août aout agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october okt oktober octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dez dezember décembre déc diciembre dic dicembre dezembro",
)  # fmt: skip
_MONTH_NUMBERS = {word: f"{month:02d}" for month, words in enumerate(_MONTHS, start=1) for word in words.split()}
# Dates that databases and spreadsheets write where there is none: 9999-12-31, 1900-01-01, 1970-01-01.
_NEVER_US = 29_348_006_400 * MICRO  # the year 2900
_NULL_DATES_US = (0.0, -2_208_988_800 * MICRO, -62_135_596_800 * MICRO)
DateOrder = Literal["day-first", "month-first"]


class Moments(NamedTuple):
    """Moments of a column, in microseconds since 1970 in UTC."""

    value: Floats
    is_bad: Flags
    is_days: bool
    notes: tuple[str, ...]


def moments_of(series: pl.Series, *, role: str, order: DateOrder | None = None) -> Moments:
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
    return _from_text(series, role, order)


def _from_text(series: pl.Series, role: str, order: DateOrder | None) -> Moments:
    import polars as pl

    text = _of_periods(_without_month_names(without_missing(text_of(series)).str.replace(r"\[[^\]]*\]$", "")))
    parts = text.str.extract_groups(_YEAR_FIRST).struct.unnest()
    notes: list[str] = []
    has_other = text.is_not_null() & parts["year"].is_null()
    if has_other.any():
        other = text.set(~has_other, None).str.extract_groups(_YEAR_LAST).struct.unnest()
        if other["year"].is_not_null().any():
            other = _in_order(other, series.name, role, notes, order)
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
        remedy = f"column {shown(series.name)} should hold times such as 2027-03-31 or 2027-03-31T18:00:00+01:00"
        raise InvalidValue(role, text.filter(pl.Series(is_bad))[0], remedy)
    notes += _about_zones(done.filter(is_read), series.name)
    is_days = bool(done.filter(is_read)["day"].all()) and bool(is_read.any())
    value = done["micro"].fill_null(np.nan).to_numpy().copy()
    return Moments(value, is_bad, is_days, tuple(notes))


def order_of(series: pl.Series) -> DateOrder | None:
    """Return the order of day and month in a column of dates as text, where it can be seen."""
    import polars as pl

    if series.dtype != pl.String:
        return None
    parts = series.drop_nulls().unique().str.strip_chars().str.extract_groups(_YEAR_LAST).struct.unnest()
    first, last = parts["first"].cast(pl.Int64), parts["last"].cast(pl.Int64)
    is_day_first, is_month_first = bool((first > 12).any()), bool((last > 12).any())
    if is_day_first == is_month_first:
        return None
    return "day-first" if is_day_first else "month-first"


def _of_periods(text: pl.Series) -> pl.Series:
    """Months as 2027-03 and weeks as 2027-W09, by their first days; 2027年3月1日 as 2027-3-1."""
    import polars as pl

    if text.str.contains(r"^\d{4}\s?[年년]").any():
        text = text.str.replace(r"^(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]", "${1}-${2}-${3}")
    if text.str.contains(r"^\d{4}-\d{2}$").any():
        text = text.str.replace(r"^(\d{4}-\d{2})$", "${1}-01")
    if text.str.contains(r"^\d{4}-W\d{1,2}(?:-[1-7])?$").any():
        weeks = text.str.extract_groups(r"^(?<year>\d{4})-W(?<week>\d{1,2})(?:-(?<day>[1-7]))?$").struct.unnest()
        monday = weeks["year"] + "-W" + weeks["week"].str.zfill(2) + "-" + weeks["day"].fill_null("1")
        days = monday.str.to_date("%G-W%V-%u", strict=False).cast(pl.String)
        text = pl.select(pl.coalesce(days, text)).to_series().alias(text.name)
    return text


def _without_month_names(text: pl.Series) -> pl.Series:
    """3 March 2026 as 3.03.2026."""
    import polars as pl

    is_named = text.str.contains(r"\p{L}{3,}").fill_null(value=False) & ~text.str.contains(r"^\d{4}-").fill_null(
        value=False
    )
    if not is_named.any():
        return text
    for form in (_DAY_MONTH, _MONTH_DAY):
        parts = text.str.extract_groups(form).struct.unnest()
        month = parts["month"].str.to_lowercase().replace_strict(_MONTH_NUMBERS, default=None, return_dtype=pl.String)
        plain = parts["day"] + "." + month + "." + parts["year"] + parts["rest"]
        text = pl.select(pl.coalesce(pl.when(is_named).then(plain), text)).to_series().alias(text.name)
    return text


def _in_order(parts: pl.DataFrame, name: str, role: str, notes: list[str], order: DateOrder | None) -> pl.DataFrame:
    """Dates that end with the year: with points the day comes first; with other marks, only the numbers can tell."""
    import polars as pl

    is_short = parts["year"].str.len_chars() == 2
    if is_short.any():  # 31.12.26; with hyphens, the year may be first
        is_unclear = is_short & (parts["mark"] == "-")
        parts = parts.with_columns(
            pl.when(is_unclear)
            .then(None)
            .when(is_short)
            .then("20" + pl.col("year"))
            .otherwise(pl.col("year"))
            .alias("year")
        )
        parts = parts.with_columns(
            pl.when(is_unclear).then(None).otherwise(pl.col(one)).alias(one) for one in ("first", "last", "mark")
        )
    first, last = parts["first"].cast(pl.Int64), parts["last"].cast(pl.Int64)
    is_day_first, is_month_first = bool((first > 12).any()), bool((last > 12).any())
    if bool((parts["mark"].drop_nulls() == ".").all()):
        is_day_first, is_month_first = True, False
    if not is_day_first and not is_month_first and order is not None:
        is_day_first, is_month_first = order == "day-first", order == "month-first"
    if is_day_first == is_month_first and parts["year"].is_not_null().any():
        example = parts.drop_nulls("year").row(0, named=True)
        written = example["mark"].join((example["first"], example["last"], example["year"]))
        remedy = (
            f"column {shown(name)}: does the day or the month come first? say date_order='day-first' or 'month-first'"
        )
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


@dataclass(frozen=True)
class Instants:
    """A column of times: in microseconds since 1970 for a clock of the world, otherwise in the clock's own unit."""

    value: Floats  # NaN where there is none
    is_bad: Flags  # something is there, but no time
    kind: Kind
    scale: float = 1.0  # of a number that is not of the world, on the clock
    is_days: bool = False  # dates without a time of day
    notes: tuple[str, ...] = ()
    order: DateOrder | None = None  # of day and month, where the year comes last

    @property
    def per_unit(self) -> float:
        """What a second, round or unit of the clock is in these values."""
        return MICRO if self.kind == "world" else 1.0


def times_of(
    series: pl.Series, *, role: str, unit: str | None, is_rounds: bool = False, order: DateOrder | None = None
) -> Instants:
    """The column of arrivals, which decides what the clock is."""
    numbers = _numbers(series)
    if numbers is None:
        return _world(series, role, order)
    value = numbers[0]
    known = value[np.isfinite(value)]
    middle = float(np.median(known)) if known.size else 0.0
    if (dates := _compact_dates(series.name, known, value)) is not None and unit is None:
        return dates
    is_dated = unit is None and not is_rounds and hints_at("any_time", series.name)
    if is_dated and is_of_spreadsheets(known):
        note = f"Numbers in column {shown(series.name)} are read as the days of spreadsheets, since 1899-12-30."
        micro = np.rint((value - _SERIAL_OF_1970) * DAY_US)
        return replace(_of_the_calendar(micro, numbers[1], notes=(note,)), is_days=not (known % 1).any())
    for name, factor in EPOCHS if unit in (None, "seconds", "milliseconds") and not is_rounds else ():
        if EPOCH_FIRST * factor <= middle <= EPOCH_LAST * factor:
            note = f"Times in column {shown(series.name)} are read as {name} since 1970, in UTC."
            return _of_the_calendar(np.rint(value * (MICRO / factor)), numbers[1], notes=(note,))
    if unit == "rounds" or (unit is None and is_rounds):
        return Instants(value, numbers[1], "rounds")
    if unit is not None:
        return Instants(value * _seconds(unit), numbers[1], "seconds", scale=_seconds(unit))
    note = f"Nobody says what the numbers in column {shown(series.name)} count; say it with time_unit= ('days', ...)."
    return Instants(value, numbers[1], "units", notes=(note,))


def times_like(series: pl.Series, arrivals: Instants, *, role: str) -> Instants:
    """Another column of times, on the clock of the arrivals."""
    numbers = _numbers(series)
    if arrivals.kind == "world":
        if not _is_world(series, numbers, role):
            return _refuse(series, role)
        return times_of(series, role=role, unit=None, order=arrivals.order)
    if numbers is None:
        remedy = f"column {shown(series.name)} has dates, but the times of arrival are numbers; name others with time="
        raise InvalidValue(role, series.name, remedy)
    return Instants(numbers[0] * arrivals.scale, numbers[1], arrivals.kind, scale=arrivals.scale)


def is_of_spreadsheets(known: Floats) -> bool:
    """Whether numbers can be days as spreadsheets count them, of this century."""
    return known.size > 0 and bool(known.min() >= _SERIAL_FIRST and known.max() <= _SERIAL_LAST)


def one_time(value: object, arrivals: Instants, *, role: str) -> tuple[float, bool]:
    """A single moment that the caller gives, and whether it is a date without a time of day."""
    import polars as pl

    if isinstance(value, bool) or not isinstance(value, str | int | float | datetime | date):
        raise InvalidValue(role, value, "must be a column, a date such as '2027-03-31', or a number on the log's clock")
    moment: object = value
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        read = times_like(pl.Series(role, [moment]), arrivals, role=role)
    except InvalidValue as error:
        raise InvalidValue(role, value, "is neither a column nor a time on the clock of the log") from error
    if not np.isfinite(read.value[0]):
        raise InvalidValue(role, value, "is neither a column nor a time such as '2027-03-31' or '2027-03-31T18:00Z'")
    return float(read.value[0]), read.is_days


_AMOUNT = r"(\d+(?:[.,]\d+)?)"
_DURATION_UNITS = (  # of P1DT4H, of words such as "1 day, 4 h", and what one is in seconds
    ("W", r"w|weeks?|wochen?|semaines?|semanas?", 604_800.0),
    ("D", r"d|days?|tagen?|tag|jours?|j|d[ií]as?", 86_400.0),
    ("H", r"h|hrs?|hours?|std|stunden?|heures?|horas?", 3_600.0),
    ("M", r"m|min|mins|minutes?|minuten|minutos?", 60.0),
    ("S", r"s|sec|secs|seconds?|sekunden?|secondes?|segundos?", 1.0),
)
_OF_WORDS = "^" + "".join(rf"(?:{_AMOUNT}\s*(?:{words})\.?(?:[,\s]+|$))?" for _, words, _ in _DURATION_UNITS) + "$"
_ISO = [f"(?:{_AMOUNT}{letter})?" for letter, _, _ in _DURATION_UNITS]
_OF_ISO = f"^P{''.join(_ISO[:2])}(?:T{''.join(_ISO[2:])})?$"
_OF_CLOCKS = r"^(?:(\d+)\s*(?:d|days?|tage?|jours?|d[ií]as?)[,\s]+)?(\d{1,4}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$"


def duration_seconds(text: pl.Series) -> pl.Series:
    """Return durations such as "1 day, 04:05:00", "3 h 20 min" and "PT5H" in seconds; null where it is none.

    >>> import polars as pl
    >>> duration_seconds(pl.Series(["1 day, 04:05:00", "3 h 20 min", "PT5H", "soon"])).to_list()
    [101100.0, 12000.0, 18000.0, None]
    """
    import polars as pl

    units = [factor for _, _, factor in _DURATION_UNITS]
    found = []
    for pattern, factors in ((_OF_CLOCKS, units[1:]), (_OF_WORDS, units), (_OF_ISO, units)):
        case = "" if pattern is _OF_ISO else "(?i)"
        parts = text.str.extract_groups(case + pattern).struct.unnest()
        numbers = [
            parts[name].str.replace(",", ".", literal=True).cast(pl.Float64, strict=False) * factor
            for name, factor in zip(parts.columns, factors, strict=True)
        ]
        total = pl.select(pl.sum_horizontal(numbers)).to_series()
        is_some = pl.select(pl.any_horizontal([one.is_not_null() for one in numbers])).to_series()
        found.append(total.set(~is_some, None))
    return pl.select(pl.coalesce(found)).to_series()


def durations_of(series: pl.Series, arrivals: Instants, *, unit: str | None) -> Instants:
    """How long answers took, in values of the arrivals."""
    import polars as pl

    if isinstance(series.dtype, pl.Duration):
        if arrivals.kind not in ("world", "seconds"):
            raise InvalidValue("delay", series.name, f"is in units of time, but the log's clock counts {arrivals.kind}")
        micro = series.dt.total_microseconds().cast(pl.Float64).fill_null(np.nan).to_numpy()
        value = micro * (arrivals.per_unit / MICRO)
        return Instants(value, np.zeros(len(series), dtype=bool), arrivals.kind)
    if series.dtype == pl.String:
        text = without_missing(text_of(series))
        seconds = duration_seconds(text)
        if 2 * seconds.is_not_null().sum() > text.is_not_null().sum():
            if arrivals.kind not in ("world", "seconds"):
                remedy = f"is in units of time, but the log's clock counts {arrivals.kind}"
                raise InvalidValue("delay", series.name, remedy)
            value = seconds.cast(pl.Float64).fill_null(np.nan).to_numpy() * arrivals.per_unit
            return Instants(value, (text.is_not_null() & seconds.is_null()).to_numpy(), arrivals.kind)
    value, is_bad = _possible(*numbers_of(series, role="delay"))
    notes: tuple[str, ...] = ()
    if arrivals.kind in ("rounds", "units"):
        if unit is not None and unit != arrivals.kind:
            remedy = f"the log's clock counts {arrivals.kind}; name a column of dates as time=, or say time_unit="
            raise InvalidValue("delay_unit", unit, remedy)
        scale = 1.0
    else:
        if unit is None and arrivals.kind == "seconds":
            scale = arrivals.scale
            notes = (f"Delays in column {shown(series.name)} are taken to be in the unit of the times.",)
        elif unit is None and arrivals.is_days:
            scale, notes = DAY_US, (f"Delays in column {shown(series.name)} are taken to be in days, as times are.",)
        elif unit is None or unit == "rounds":
            remedy = f"say with delay_unit= what column {shown(series.name)} is in: {', '.join(SECONDS)}"
            raise InvalidValue("delay_unit", unit, remedy)
        else:
            scale = _seconds(unit) * arrivals.per_unit
    return Instants(value * scale, is_bad, arrivals.kind, scale=scale, notes=notes)


def with_time_of_day(days: pl.Series, clocks: pl.Series) -> pl.Series:
    """Dates and times of day as one column of text."""
    import polars as pl

    plain = (
        days.cast(pl.Date) if days.dtype.is_temporal() else text_of(days).str.replace(r"[T ]00:00(:00)?(\.0+)?$", "")
    )
    return (plain.cast(pl.String) + " " + text_of(clocks)).alias(days.name)


def told_moment(value: float, times: Instants) -> str:
    """A time of the arrivals' clock in words."""
    if times.kind != "world":
        return f"{value:g} {times.kind}"
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value):%Y-%m-%d %H:%M:%S}"


def no_times(rows: int) -> Instants:
    """Rows in their order, one every round."""
    note = "There is no column of times: rows are in their order, and the clock counts them (rounds)."
    return Instants(np.arange(rows, dtype=np.float64), np.zeros(rows, dtype=bool), "rounds", notes=(note,))


def _seconds(unit: str) -> float:
    return 1e-3 if unit == "milliseconds" else SECONDS[unit]


def _numbers(series: pl.Series) -> tuple[Floats, Flags] | None:
    """The column as numbers, if it is one of numbers."""
    import polars as pl

    from doral.logs.values import text_of, without_missing

    if series.dtype.is_numeric() or series.dtype == pl.Null:
        return _possible(*numbers_of(series, role="time"))
    if series.dtype == pl.Boolean:
        raise InvalidValue("column", series.name, "holds yes and no; a time was expected")
    if series.dtype.is_temporal():
        return None
    text = without_missing(text_of(series))
    parsed = text.cast(pl.Float64, strict=False)
    n_text, n_parsed = int(text.is_not_null().sum()), int(parsed.is_not_null().sum())
    if 2 * n_parsed <= n_text:  # mostly something else
        return None
    return _possible(parsed.fill_null(np.nan).to_numpy().copy(), (text.is_not_null() & parsed.is_null()).to_numpy())


def _possible(value: Floats, is_bad: Flags) -> tuple[Floats, Flags]:
    """Numbers that no clock can show are none; infinity stays, where something never comes."""
    is_wild = np.isfinite(value) & (np.abs(value) > _MAX_NUMBER)
    return np.where(is_wild, np.nan, value), is_bad | is_wild


def _is_world(series: pl.Series, numbers: tuple[Floats, Flags] | None, role: str) -> bool:
    if numbers is None or not np.isfinite(numbers[0]).any():
        return True
    return times_of(series, role=role, unit=None).kind == "world"


def _refuse(series: pl.Series, role: str) -> Instants:
    remedy = f"column {shown(series.name)} has numbers, but the times of arrival are dates"
    if role == "answered":
        remedy += "; is it a duration? then name it with delay= and delay_unit="
    raise InvalidValue(role, series.name, remedy)


def _compact_dates(name: str, known: Floats, value: Floats) -> Instants | None:
    """20200131 and the like, where all are dates."""
    import polars as pl

    if not known.size or known.min() < 19_000_101 or known.max() > 21_001_231 or (known % 1).any():
        return None
    text = pl.Series(np.where(np.isfinite(value), value, 0).astype(np.int64)).cast(pl.String)
    days = text.str.to_date("%Y%m%d", strict=False)
    if int(days.is_not_null().sum()) < known.size:
        return None
    micro = days.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
    note = f"Numbers in column {shown(name)} are read as dates (YYYYMMDD)."
    return Instants(micro, np.zeros(value.size, dtype=bool), "world", is_days=True, notes=(note,))


def _world(series: pl.Series, role: str, order: DateOrder | None) -> Instants:
    read = moments_of(series, role=role, order=order)
    found = _of_the_calendar(read.value, read.is_bad, is_days=read.is_days, notes=read.notes)
    return replace(found, order=order)


def _of_the_calendar(micro: Floats, is_bad: Flags, *, notes: tuple[str, ...], is_days: bool = False) -> Instants:
    """Moments before the year 1, or after 9999, are no time; dates that stand for none are missing."""
    known = micro[np.isfinite(micro)]
    middle = float(np.median(known)) if known.size else 0.0
    is_null = (micro >= _NEVER_US) & (micro <= _LATEST_US)
    for null in _NULL_DATES_US if abs(middle) > YEAR_US else ():
        is_null |= micro == null
    if is_null.any():
        dates = sorted(
            {f"{np.datetime64(int(one), 'us').astype('datetime64[D]')}" for one in np.unique(micro[is_null])}
        )
        notes = (*notes, f"{int(is_null.sum()):,} dates such as {dates[0]} stand for no date.")
        micro = np.where(is_null, np.nan, micro)
    is_outside = (micro < _EARLIEST_US) | (micro > _LATEST_US)
    return Instants(np.where(is_outside, np.nan, micro), is_bad | is_outside, "world", is_days=is_days, notes=notes)
