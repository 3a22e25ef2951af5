"""What came of rows, after how long, and whether silence is a zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue
from doral.logs.cleaning import Sieve, absurd_delays, grain_of
from doral.logs.log import Assumption
from doral.logs.times import DAY_US, MICRO, Instants, durations_of, one_time, times_like, told_moment
from doral.logs.values import text_of
from doral.problem import MAX_REWARD, Feedback

if TYPE_CHECKING:
    import polars as pl

_GRAINS = (DAY_US, 3_600 * MICRO, 60 * MICRO, MICRO)


@dataclass(frozen=True)
class Waits:
    """Delays of all rows of a file on the clock, infinite where there is no answer; None where nobody says any."""

    delay: Floats | None
    is_never: Flags  # of these it is said that no answer came
    notes: list[str | Assumption] = field(default_factory=list)
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
    notes: list[str | Assumption] = []
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
    n_early, n_answered = int((is_early & sieve.kept).sum()), int((np.isfinite(read.value) & sieve.kept).sum())
    if n_early > max(0.5 * n_answered, 3.0):
        why = f"{n_early:,} of {n_answered:,} answers lie before their decisions; are time= and answered= swapped?"
        raise InvalidValue("answered", column.name, why)
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
) -> tuple[Floats, Flags, list[str | Assumption]]:
    """How long each row was watched, whose answers came later than that, and what was assumed."""
    notes: list[str | Assumption] = []
    sieve.require_rows()
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
        why = "the latest time in the file: answers are known until then"
        if waits.delay is not None:
            notes.append(Assumption(what="observed_until", value=told_moment(latest, times), why=why))
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


@dataclass
class Outcomes:
    """Rewards and delays of all rows of a file, on the clock."""

    reward: Floats  # NaN where there is no answer
    delay: Floats  # infinite where there is none
    feedback: Feedback
    has_delays: bool
    notes: list[str | Assumption]


def match_answers(
    sieve: Sieve,
    reward: Floats | None,
    delay: Floats | None,
    *,
    is_late: Flags,
    is_never: Flags,
    feedback: Feedback | None,
) -> Outcomes:
    """`is_late` rows were answered after all that was observed; of `is_never` it is said that no answer came."""
    notes: list[str | Assumption] = []
    if reward is not None:
        is_wild = ~np.isnan(reward) & ~(np.abs(reward) <= MAX_REWARD)
        wild = reward
        sieve.drop(is_wild, f"have a reward that is not finite or beyond {MAX_REWARD:g}", lambda row: wild[row])
    if delay is None:
        assert reward is not None
        return _at_once(sieve, reward, feedback, notes)
    has_answer = np.isfinite(delay)
    if reward is None:
        if feedback is None:
            why = "there is no column of rewards: an answer counts as 1, and zeros are never heard"
            notes.append(Assumption(what="feedback", value="silent", why=why))
        said: Feedback = feedback or "silent"
        return Outcomes(np.where(has_answer, 1.0, np.nan), delay, said, True, notes)
    has_reward = ~np.isnan(reward)
    own = reward
    sieve.drop(has_answer & ~has_reward, "were answered, but have no reward")
    is_lost = has_reward & ~has_answer & ~is_late & ~is_never
    hears_zeros = bool((sieve.kept & has_answer & (reward <= 0.0)).any())
    is_silent_zero = is_lost & (reward == 0.0)
    if feedback != "explicit" and not hears_zeros and (sieve.kept & is_silent_zero).any():
        if feedback is None:
            why = "no zero has a time of answer, so that zeros are what was never heard"
            notes.append(Assumption(what="feedback", value="silent", why=why))
        feedback, is_lost = "silent", is_lost & ~is_silent_zero
    why = "have a reward, but nobody says when it came"
    sieve.drop(is_lost, why, lambda row: f"reward {own[row]:g}")
    if feedback is None:
        feedback = _guessed(sieve.kept, reward, has_answer, notes)
    if feedback == "silent":
        is_zero = has_answer & (reward == 0.0)
        if rows := int((sieve.kept & is_zero).sum()):
            notes.append(f"{rows:,} answers of 0 are taken as not heard: feedback is silent.")
        has_answer = has_answer & ~is_zero
    return Outcomes(
        np.where(has_answer, reward, np.nan),
        np.where(has_answer, delay, np.inf),
        feedback,
        has_delays=True,
        notes=notes,
    )


def _at_once(sieve: Sieve, reward: Floats, feedback: Feedback | None, notes: list[str | Assumption]) -> Outcomes:
    why = "no column says when answers came (answered=, delay=): rewards are known at once"
    notes.append(Assumption(what="delay", value="0", why=why))
    is_known = ~np.isnan(reward)
    said = feedback or _guessed(sieve.kept, reward, is_known, notes)
    if said == "silent":
        is_known &= reward != 0.0
    if n_open := int((sieve.kept & ~is_known).sum()):
        notes.append(f"{n_open:,} rows without a reward are taken as not answered.")
    delay = np.where(is_known, 0.0, np.inf)
    return Outcomes(np.where(is_known, reward, np.nan), delay, said, False, notes)


def _guessed(kept: Flags, reward: Floats, has_answer: Flags, notes: list[str | Assumption]) -> Feedback:
    """Answers that all say the same, where others have none, are silent feedback: zeros are never heard."""
    heard = reward[kept & has_answer]
    has_open = bool((kept & ~has_answer).any())
    if has_open and heard.size and heard.min() > 0.0 and heard.min() == heard.max():
        why = f"all {heard.size:,} answers are {heard[0]:g}, and other rows have none"
        notes.append(Assumption(what="feedback", value="silent", why=why))
        return "silent"
    if not has_open and heard.size > 1 and heard.min() == heard.max() != 0.0:
        why = (
            f"all {heard.size:,} rows have the reward {heard[0]:g}: rows in which nothing came of it seem to be "
            "missing, and without them no arm can be compared"
        )
        notes.append(Assumption(what="feedback", value="explicit", why=why))
    if has_open:
        why = f"answers differ: {heard.min():g} to {heard.max():g}" if heard.size else "there are no answers yet"
        notes.append(Assumption(what="feedback", value="explicit", why=why))
    return "explicit"
