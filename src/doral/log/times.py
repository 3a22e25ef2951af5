"""Times as people write them, on one clock: microseconds since 1970 in UTC, or the numbers of the file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown
from doral.log.clock import SECONDS
from doral.log.moments import moments_of
from doral.log.values import numbers_of

if TYPE_CHECKING:
    import polars as pl

MICRO = 1e6  # in a second
DAY_US = 86_400 * MICRO
YEAR_US = 365 * DAY_US
# Numbers that are seconds since 1970 within 1990 to 2100, and what they are thousands of.
_FIRST, _LAST = 631_152_000.0, 4_102_444_800.0
_EPOCHS = (("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9))
_EARLIEST_US, _LATEST_US = -62_135_596_800 * MICRO, 253_402_300_799 * MICRO  # years 1 to 9999, which dates can have
_MAX_NUMBER = 1e19  # nanoseconds since 1970 reach 4e18 in 2100
Kind = Literal["world", "seconds", "rounds", "units"]  # of a clock; "world" also has dates


@dataclass(frozen=True)
class Instants:
    """A column of times: in microseconds since 1970 for a clock of the world, otherwise in the clock's own unit."""

    value: Floats  # NaN where there is none
    is_bad: Flags  # something is there, but no time
    kind: Kind
    scale: float = 1.0  # of a number that is not of the world, on the clock
    is_days: bool = False  # dates without a time of day
    notes: tuple[str, ...] = ()

    @property
    def per_unit(self) -> float:
        """What a second, round or unit of the clock is in these values."""
        return MICRO if self.kind == "world" else 1.0


def times_of(series: pl.Series, *, role: str, unit: str | None, is_rounds: bool = False) -> Instants:
    """The column of arrivals, which decides what the clock is."""
    numbers = _numbers(series)
    if numbers is None:
        return _world(series, role)
    value = numbers[0]
    known = value[np.isfinite(value)]
    middle = float(np.median(known)) if known.size else 0.0
    if (dates := _compact_dates(series.name, known, value)) is not None and unit is None:
        return dates
    for name, factor in _EPOCHS if unit in (None, "seconds", "milliseconds") and not is_rounds else ():
        if _FIRST * factor <= middle <= _LAST * factor:
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
        return times_of(series, role=role, unit=None) if _is_world(series, numbers, role) else _refuse(series, role)
    if numbers is None:
        remedy = f"column {shown(series.name)} has dates, but the times of arrival are numbers; name others with time="
        raise InvalidValue(role, series.name, remedy)
    return Instants(numbers[0] * arrivals.scale, numbers[1], arrivals.kind, scale=arrivals.scale)


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


def durations_of(series: pl.Series, arrivals: Instants, *, unit: str | None) -> Instants:
    """How long answers took, in values of the arrivals."""
    import polars as pl

    if isinstance(series.dtype, pl.Duration):
        if arrivals.kind not in ("world", "seconds"):
            raise InvalidValue("delay", series.name, f"is in units of time, but the log's clock counts {arrivals.kind}")
        micro = series.dt.total_microseconds().cast(pl.Float64).fill_null(np.nan).to_numpy()
        value = micro * (arrivals.per_unit / MICRO)
        return Instants(value, np.zeros(len(series), dtype=bool), arrivals.kind)
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


def no_times(rows: int) -> Instants:
    """Rows in their order, one every round."""
    note = "There is no column of times: rows are in their order, and the clock counts them (rounds)."
    return Instants(np.arange(rows, dtype=np.float64), np.zeros(rows, dtype=bool), "rounds", notes=(note,))


def _seconds(unit: str) -> float:
    return 1e-3 if unit == "milliseconds" else SECONDS[unit]


def _numbers(series: pl.Series) -> tuple[Floats, Flags] | None:
    """The column as numbers, if it is one of numbers."""
    import polars as pl

    from doral.log.values import text_of, without_missing

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


def _world(series: pl.Series, role: str) -> Instants:
    read = moments_of(series, role=role)
    return _of_the_calendar(read.value, read.is_bad, is_days=read.is_days, notes=read.notes)


def _of_the_calendar(micro: Floats, is_bad: Flags, *, notes: tuple[str, ...], is_days: bool = False) -> Instants:
    """Moments before the year 1, or after 9999, are no time."""
    is_outside = (micro < _EARLIEST_US) | (micro > _LATEST_US)
    return Instants(np.where(is_outside, np.nan, micro), is_bad | is_outside, "world", is_days=is_days, notes=notes)
