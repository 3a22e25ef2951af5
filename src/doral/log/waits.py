"""How long answers took, and how long they were waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Flags, Floats
from doral.log.cleaning import Sieve, absurd_delays, grain_of
from doral.log.times import DAY_US, MICRO, Instants, durations_of, one_time, times_like
from doral.log.values import text_of

if TYPE_CHECKING:
    import polars as pl

_GRAINS = (DAY_US, 3_600 * MICRO, 60 * MICRO, MICRO)


@dataclass(frozen=True)
class Waits:
    """Delays of all rows of a file on the clock, infinite where there is no answer; None where nobody says any."""

    delay: Floats | None
    is_never: Flags  # of these it is said that no answer came
    notes: list[str] = field(default_factory=list)
    is_days: bool = False  # answers have dates without a time of day


def waits_of(
    sieve: Sieve,
    answered: pl.Series | None,
    delays: pl.Series | None,
    times: Instants,
    unit: str | None,
    *,
    is_measured: bool = False,
) -> Waits:
    """From the times of answers, or from durations; what `is_measured` by a machine has no slips."""
    rows = times.value.size
    column = answered if answered is not None else delays
    if column is None:
        return Waits(None, np.zeros(rows, dtype=bool))
    notes: list[str] = []
    if answered is not None:
        read = times_like(answered, times, role="answered")
        delay = read.value - times.value
        grain = _rounding(sieve, times, read)
    else:
        read = durations_of(column, times, unit=unit)
        delay, grain = read.value, 0.0
    notes += read.notes
    text = text_of(column)
    sieve.drop(read.is_bad, "have an answer whose time cannot be read", lambda row: text[row])
    is_never = np.isposinf(read.value)
    is_tiny = (delay < 0.0) & (delay > -grain)
    if n_tiny := int((sieve.kept & is_tiny).sum()):
        notes.append(f"{n_tiny:,} answers lie before their decisions by less than the rounding of times: delay 0.")
    delay = np.where(is_tiny, 0.0, delay) / times.per_unit
    own = delay
    is_early = (delay < 0.0) | np.isneginf(delay)
    sieve.drop(is_early, "were answered before they were decided", lambda row: text[row])
    delay = np.where(np.isnan(delay), np.inf, delay)
    start = times.value / times.per_unit

    def span(off: Flags) -> float:
        """From the first arrival to the last that is known of all others."""
        others = sieve.kept & ~off
        is_heard = others & np.isfinite(delay)
        last = max(float(start[sieve.kept].max()), float((start + own)[is_heard].max(initial=-np.inf)))
        return last - float(start[sieve.kept].min())

    if is_measured:
        return Waits(delay, is_never, notes, read.is_days)
    off = absurd_delays(delay, span, sieve.kept)
    sieve.drop(off, "have a delay that is longer than all else in the log and beyond its tail", lambda row: text[row])
    return Waits(delay, is_never, notes, read.is_days)


def _rounding(sieve: Sieve, times: Instants, answers: Instants) -> float:
    """How far an answer may seem to lie before its decision: as far as the coarser of both columns is rounded."""
    if times.kind != "world":
        return 0.0
    return max(grain_of(one.value[sieve.kept], _GRAINS) for one in (times, answers))


def observe(
    sieve: Sieve, waits: Waits, times: Instants, column: pl.Series | None, moment: object
) -> tuple[Floats, Flags, list[str]]:
    """How long each row was watched, whose answers came later than that, and what was assumed."""
    notes: list[str] = []
    kept, per_unit = sieve.kept, times.per_unit
    ends = (
        times.value
        if waits.delay is None
        else times.value + np.where(np.isfinite(waits.delay), waits.delay, 0.0) * per_unit
    )
    latest = float(max(times.value[kept].max(), ends[kept].max()))
    if column is not None:
        read = times_like(column, times, role="observed_until")
        text = text_of(column)
        sieve.drop(read.is_bad, "have an end of observation that cannot be read", lambda row: text[row])
        until = read.value + _rest_of_day(times, waits, is_days=read.is_days)
        if n_open := int((kept & np.isnan(until)).sum()):
            notes.append(
                f"{n_open:,} rows do not say until when they were observed: until the latest time in the file."
            )
        until = np.where(np.isnan(until), latest, until)
    elif moment is not None:
        value, is_days = one_time(moment, times, role="observed_until")
        until = np.full(times.value.size, value + _rest_of_day(times, waits, is_days=is_days))
    else:
        until = np.full(times.value.size, latest)
        notes.append("Answers are taken to be known until the latest time in the file; observed_until= says otherwise.")
    watched = (until - times.value) / per_unit
    sieve.drop(watched < 0.0, "arrived after all that was observed")
    sieve.require_rows()
    if waits.delay is None:
        return watched, np.zeros(watched.size, dtype=bool), notes
    is_late = np.isfinite(waits.delay) & (waits.delay > watched * (1.0 + 1e-12))
    if n_late := int((sieve.kept & is_late).sum()):
        notes.append(f"{n_late:,} answers came after what was observed: they count as not yet answered.")
    return watched, is_late, notes


def _rest_of_day(times: Instants, waits: Waits, *, is_days: bool) -> float:
    """A day of observation ends when it ends, unless all times are days."""
    is_finer = times.kind == "world" and is_days and not (times.is_days and (waits.delay is None or waits.is_days))
    return DAY_US if is_finer else 0.0
