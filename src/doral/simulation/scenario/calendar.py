"""Arrivals as a log observed them: blocks of time, resampled (block bootstrap, Kuensch 1989)."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats, Ints
from doral._cached import ByDigest, cached_property
from doral._input_types import Numbers
from doral.errors import InvalidValue
from doral.problem import MAX_AGE, MIN_AGE
from doral.simulation.scenario.arrivals import MAX_CHANGES, MAX_SIMULATED, WEEKDAYS, Uniforms, rounded_clocks

MOST_BINS = 2**13  # of time: finer ones say nothing more of how long bursts last
FEWEST = 10  # arrivals, below which nothing can be said of bursts


def block_length(times: Floats, begin: float, end: float) -> float:
    """As a length of time: by the rule of Politis and White (2004), from how counts depend on those before them.

    It makes the error of what blocks say of the spread of a sum the least: their bias is G / b, for G = sum |k| R(k)
    over the lags k of the autocovariance R, and their variance 2 g^2 b / n for blocks side by side and g = sum R(k).
    """
    n = min(times.size, MOST_BINS)
    least = n ** (1.0 / 3.0)  # where counts do not depend on each other: as long as blocks of independent ones
    if n < FEWEST:
        return (end - begin) / n * least
    counts = np.histogram(times, bins=n, range=(begin, end))[0].astype(np.float64)
    covariance = _autocovariance(counts)
    lags = _last_lag(covariance / max(covariance[0], 1e-300), n)
    k = np.arange(1, lags + 1)
    taper = np.clip(2.0 * (1.0 - k / max(lags, 1)), 0.0, 1.0)
    g = covariance[0] + 2.0 * float((taper * covariance[1 : lags + 1]).sum())
    bias = 2.0 * float((taper * k * covariance[1 : lags + 1]).sum())
    bins = (bias * bias / (g * g)) ** (1.0 / 3.0) * least if g > 0.0 else least
    return (end - begin) / n * min(max(bins, least), n / 3.0)


def _autocovariance(counts: Floats) -> Floats:
    n = counts.size
    spectrum = np.fft.rfft(counts - counts.mean(), 2 * n)
    found: Floats = np.fft.irfft(spectrum * spectrum.conj(), 2 * n)[:n] / n
    return found


def _last_lag(correlation: Floats, n: int) -> int:
    """Twice the last lag that is not followed by several which may all be 0."""
    several = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = min(n - 1 - several, math.ceil(math.sqrt(n)) + several)
    is_clear = np.abs(correlation) > 2.0 * math.sqrt(math.log10(n) / n)
    for lag in range(max(most, 0)):
        if not is_clear[lag + 1 : lag + 1 + several].any():
            return min(2 * max(lag, 1), n - 1)
    return min(2 * max(most, 1), n - 1)


_BLOCKS, _FILLERS = 1, 2  # lanes of the draws


class _Blocks(NamedTuple):
    """Observed time in blocks of a length, of which the first and the last may have been observed in part."""

    origin: float  # where the first begins
    length: float
    first: int  # its number on the clock, by which weekdays are counted
    edges: Ints  # (blocks + 1,) of the arrivals of each
    low: Floats  # (blocks,) from where on, since it began, it was observed
    high: Floats  # and up to where

    @property
    def whole(self) -> Ints:
        return np.flatnonzero((self.low <= 0.0) & (self.high >= self.length))


class Calendar(ByDigest):
    """Arrivals as they were observed, for problems that end with a date (`until`).

    In every run, blocks of observed time are drawn with replacement and put one after the other until the end.

    Args:
        times: When they came, in units of the clock, from 0.
        contexts: The number of the context of each, from 0, where that is known; None: the scenario's shares say it.
        day: How long a day is, in units of the clock. Blocks are then days, each drawn from those of its weekday as
            far as there are any, or weeks, where over 7^3 days were observed. None: the clock has no days.
        block: How long blocks are, in units of the clock; None: by `day`, or as long as bursts last.
        watched: When the last of them could have come; None: about when the last did.
        resampled: False: exactly these arrive in every run. Default: True.

    >>> Calendar([0.5, 1.25, 30.0, 49.5], day=24)
    <Calendar: 4 arrivals from 0.5 to 49.5, day 24, drawn in blocks of 24>
    """

    times: Floats
    contexts: Ints | None
    day: float | None
    block: float
    watched: float
    resampled: bool

    def __init__(
        self,
        times: Numbers,
        contexts: Numbers | None = None,
        day: float | None = None,
        block: float | None = None,
        *,
        watched: float | None = None,
        resampled: bool = True,
    ) -> None:
        if not isinstance(resampled, bool | np.bool_):
            raise InvalidValue("resampled", resampled, "must be True or False")
        clocks = _checked_times(times)
        order = np.argsort(clocks, kind="stable")
        self.times = clocks[order]
        self.contexts = None if contexts is None else _checked_contexts(contexts, clocks.size)[order]
        for array in (self.times, self.contexts):
            if array is not None:
                array.flags.writeable = False
        self.day = None if day is None else _check.finite_number("day", day, at_least=MIN_AGE, at_most=MAX_AGE)
        last = float(self.times[-1])
        if watched is not None:
            watched = _check.finite_number("watched", watched, at_least=last, at_most=MAX_AGE, hint=", the last time")
        self.watched = last + 0.5 * self._gap if watched is None else watched
        if block is not None:
            block = _check.finite_number("block", block, at_least=MIN_AGE, at_most=MAX_AGE)
        self.block = self._own_block() if block is None else block
        if (self.watched - self._begin) / self.block > MAX_CHANGES:
            field, value = ("day", day) if block is None else ("block", block)
            raise InvalidValue(field, value, "is too short: over a million would have been observed")
        self.resampled = bool(resampled)

    @property
    def _gap(self) -> float:
        """The mean time between two of them; of a single one, a unit of the clock."""
        span = float(self.times[-1] - self.times[0])
        return span / (self.times.size - 1) if span > 0.0 else 1.0

    @property
    def _begin(self) -> float:
        """When the first could have come: as long before it as the last is thought to be before the end."""
        return max(0.0, float(self.times[0]) - 0.5 * self._gap)

    def _own_block(self) -> float:
        """Of n independent days, n^(1/3) together cut least apart for what they repeat (Hall, Horowitz, Jing 1995)."""
        if self.day is None:
            return max(MIN_AGE, block_length(self.times, self._begin, self.watched))
        n_days = (self.watched - self._begin) / self.day
        return self.day * (WEEKDAYS if n_days >= WEEKDAYS**3 else 1)

    @cached_property
    def _blocks(self) -> _Blocks:
        """On the clock, where they are whole days: hours and weekdays stay in their places."""
        is_by_clock = self.day is not None and math.isclose(self.block, self.day * round(self.block / self.day))
        first = int(self._begin // self.block) if is_by_clock else 0
        found = self._cut(first * self.block if is_by_clock else self._begin, self.block, first)
        if found.whole.size == 0:  # nothing to fill the others up with: all of it is one
            return self._cut(self._begin, max(MIN_AGE, self.watched - self._begin), 0)
        return found

    def _cut(self, origin: float, length: float, first: int) -> _Blocks:
        number = max(1, math.ceil((self.watched - origin) / length))
        home = np.clip(np.floor((self.times - origin) / length), 0, number - 1)
        low, high = np.zeros(number), np.full(number, length)
        low[0], high[-1] = max(0.0, self._begin - origin), min(length, self.watched - origin - (number - 1) * length)
        return _Blocks(origin, length, first, np.searchsorted(home, np.arange(number + 1)), low, high)

    @property
    def rate(self) -> float:
        """How many come in a unit of the clock."""
        return self.times.size / max(self.watched - self._begin, MIN_AGE)

    def shares(self, n_contexts: int) -> Floats | None:
        """(J,) how often each context came, where that is known.

        Args:
            n_contexts: How many contexts there are.
        """
        if self.contexts is None:
            return None
        return np.bincount(self.contexts, minlength=n_contexts) / self.contexts.size

    def check(self, until: float, n_contexts: int) -> None:
        """Complain about what does not fit the problem.

        Args:
            until: The end, in units of the clock.
            n_contexts: How many contexts there are.
        """
        if self.contexts is not None and self.contexts.max() >= n_contexts:
            remedy = f"must be from 0 to {n_contexts - 1}: the problem has {n_contexts} contexts"
            raise InvalidValue("contexts of Calendar", int(self.contexts.max()), remedy)
        if until / self._blocks.length > MAX_CHANGES:
            raise InvalidValue("block", self._blocks.length, f"is too short: until {until:g} there are over a million")
        if self.rate * until > MAX_SIMULATED / 2:
            remedy = f"is too late: at the pace of the calendar, over {MAX_SIMULATED // 2:,} would arrive"
            raise InvalidValue("until", until, remedy)

    def drawn(self, until: float, uniforms: Uniforms) -> tuple[Floats, Ints]:
        """When they arrive in one run, and in which contexts (none where those are not known); at least one does.

        Args:
            until: The end, in units of the clock.
            uniforms: Draws from 0 to 1, by number and lane.
        """
        who, times = self._resampled(until, uniforms) if self.resampled else (np.arange(self.times.size), self.times)
        is_in_time = times <= until
        who, times = (who[is_in_time], times[is_in_time]) if is_in_time.any() else (np.zeros(1, int), np.array([until]))
        contexts = np.zeros(0, dtype=np.int64) if self.contexts is None else self.contexts[who]
        return rounded_clocks(times, until), contexts

    def _resampled(self, until: float, uniforms: Uniforms) -> tuple[Ints, Floats]:
        """Which of the observed arrivals come, and when."""
        blocks, n_places = self._blocks, max(1, math.ceil(until / self._blocks.length))
        chosen = self._chosen(np.arange(blocks.low.size), n_places, uniforms(n_places, _BLOCKS))
        filler = self._chosen(blocks.whole, n_places, uniforms(n_places, _FILLERS))
        # What a block lacks that was observed in part, before and after, is that of another.
        base, low, high = blocks.origin + filler * blocks.length, blocks.low[chosen], blocks.high[chosen]
        begin, end = blocks.edges[filler], blocks.edges[filler + 1]
        upto = np.where(low > 0.0, np.clip(np.searchsorted(self.times, base + low), begin, end), begin)
        since = np.where(high < blocks.length, np.clip(np.searchsorted(self.times, base + high), begin, end), end)
        firsts = np.column_stack([begin, blocks.edges[chosen], since]).ravel()
        sizes = np.column_stack([upto, blocks.edges[chosen + 1], end]).ravel() - firsts
        who = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        moved = (np.arange(n_places)[:, None] - np.column_stack([filler, chosen, filler])) * blocks.length
        times = self.times[who] + np.repeat(moved.ravel() - blocks.origin, sizes)
        return who, np.maximum.accumulate(np.maximum(times, 0.0)) if times.size else times

    def _chosen(self, among: Ints, n_places: int, uniforms: Floats) -> Ints:
        """A block for every place, of its weekday where there is one."""
        if self.day is None or self._blocks.length != self.day:
            return among[_picked(uniforms, among.size)]
        chosen = np.empty(n_places, dtype=np.int64)
        weekdays, places = (among + self._blocks.first) % WEEKDAYS, np.arange(n_places) % WEEKDAYS
        for weekday in range(WEEKDAYS):
            here, alike = places == weekday, among[weekdays == weekday]
            alike = alike if alike.size else among
            chosen[here] = alike[_picked(uniforms[here], alike.size)]
        return chosen

    @cached_property
    def digest(self) -> str:
        """A fingerprint: equal calendars have the same."""
        found = hashlib.sha256(repr((self.day, self.block, self.watched, self.resampled)).encode())
        found.update(self.times.tobytes())
        found.update(b"" if self.contexts is None else b"contexts" + self.contexts.tobytes())
        return found.hexdigest()

    def __repr__(self) -> str:
        day = "" if self.day is None else f", day {self.day:g}"
        how = f"drawn in blocks of {self.block:g}" if self.resampled else "the same in every run"
        size = f"{self.times.size:,} arrivals from {self.times[0]:g} to {self.times[-1]:g}"
        return f"<Calendar: {size}{day}, {how}>"

    def _repr_html_(self) -> str:
        from doral.pages.notebook import card

        facts = [
            ("Arrivals", f"{self.times.size:,}, from {self.times[0]:g} to {self.times[-1]:g} on the clock"),
            ("Contexts", "not known" if self.contexts is None else f"{np.unique(self.contexts).size:,}"),
            ("A day", "not known" if self.day is None else f"{self.day:g}"),
            ("In a run", f"drawn in blocks of {self.block:g}" if self.resampled else "exactly these"),
        ]
        return card("Calendar", facts)


def _picked(uniforms: Floats, n: int) -> Ints:
    return np.minimum((uniforms * n).astype(np.int64), n - 1)


def _checked_times(value: object) -> Floats:
    times = _numbers("times of Calendar", value)
    if not 1 <= times.size <= MAX_SIMULATED:
        raise InvalidValue("number of times of Calendar", times.size, f"must be from 1 to {MAX_SIMULATED:,}")
    is_right = (times >= 0.0) & (times <= MAX_AGE)  # which NaN is not
    if not is_right.all():
        wrong = float(times[int(np.argmin(is_right))])
        raise InvalidValue("times of Calendar", wrong, f"must be from 0, where the clock begins, to {MAX_AGE:g}")
    return times.astype(np.float64)


def _checked_contexts(value: object, n: int) -> Ints:
    contexts = _numbers("contexts of Calendar", value)
    if contexts.size != n:
        raise InvalidValue("number of contexts of Calendar", contexts.size, f"must be one for every time, {n}")
    is_right = (contexts >= 0) & (contexts == np.floor(contexts)) & (contexts < MAX_SIMULATED)
    if not is_right.all():
        wrong = contexts[int(np.argmin(is_right))].item()
        raise InvalidValue("contexts of Calendar", wrong, "must be the numbers of contexts, from 0")
    return contexts.astype(np.int64)


def _numbers(field: str, value: object) -> NDArray[np.float64]:
    try:
        array = np.array(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iuf"):
        raise InvalidValue(field, value, "must be a list of numbers")
    return array
