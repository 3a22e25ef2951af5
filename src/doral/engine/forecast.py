"""Where the end is a date: how many arrivals are still expected, from the pace so far.

    arrivals to come  =  level  x  integral of the rhythm over the time that is left

The rhythm is a factor per hour of the day times one per weekday, on average 1. Hours that were seen on several days
show how much they differ by chance; means of hours are shrunk to their common mean by what exceeds that (empirical
Bayes), so that without a rhythm there is none. The level is a random walk in noise: time is cut into spans, neighbours
among which give the noise, and those far apart (by whole weeks, where there are weeks) the drift; a Kalman filter then
weights recent spans as that asks for, and all alike where the level stands still. Before enough has been seen, a first
guess counts as one that may be wrong by a factor.

`now.horizon` follows the forecast with every arrival: what counts rounds that are left need not know of dates.
"""

from __future__ import annotations

import math

from doral._arrays import Floats, Record
from doral.compiled import kernel, position, rare
from doral.engine.state import HOURS, SPANS, WEEKDAYS, Forecast, State, clock_passed
from doral.problem import MAX_HORIZON

FEWEST_SPANS = 8  # before these have passed, neither noise nor drift is known
FEWEST_PAIRS = 4  # of spans that are far apart
NEWTON_STEPS = 40  # six are enough unless arrivals are rare: there, each step is one of the logarithm
MOST_WAIT, WAIT_SHARE = 32, 8  # arrivals between two looks: a share of those so far

SEEN, ARRIVALS, SQUARES = 0, 1, 2  # rows of sums by hour and by weekday: how often, how many came, and their squares
HOUR, WEEKDAY = 0, 1  # rows of `cycles`


@kernel
def follow_arrivals(state: State) -> None:
    """Count the last arrivals and move the horizon to what is forecast."""
    now, pace = state.now[0], state.forecast.pace[0]
    _count_last(state)
    pace.last = now.clock
    span = int(clock_passed(state) / pace.span)
    if now.round >= pace.look_at or span != pace.looked:
        pace.looked = span
        pace.look_at = now.round + max(1, min(MOST_WAIT, now.round // WAIT_SHARE))
        _learn_pace(state)
    if now.clock > now.until:
        now.horizon = now.round
    else:
        now.horizon = now.round + 1 + int(_arrivals_ahead(state) + 0.5)


@kernel
def _arrivals_ahead(state: State) -> float:
    """How many are forecast from now until the end."""
    now = state.now[0]
    ahead = _rhythm_until(state.forecast, max(now.until, now.clock)) - _rhythm_until(state.forecast, now.clock)
    return max(0.0, min(float(MAX_HORIZON), state.forecast.pace[0].level * ahead))


def rhythm_until(forecast: Forecast, clock: float) -> float:
    """The integral of the rhythm up to here, from the beginning of the first week: time, where there is no rhythm."""
    if forecast.day == 0.0:
        return clock
    days = (forecast.time_of_week + clock) / forecast.day
    whole = math.floor(days)
    hours = (days - whole) * HOURS
    hour, weeks = min(HOURS - 1, int(hours)), math.floor(whole / WEEKDAYS)
    weekday = int(whole - weeks * WEEKDAYS)
    of_day = forecast.hour_factors[hour] * (hours - hour)
    for h in range(hour):
        of_day += forecast.hour_factors[h]
    passed = weeks * WEEKDAYS + forecast.weekday_factors[weekday] * of_day / HOURS
    for d in range(weekday):
        passed += forecast.weekday_factors[d]
    return passed * forecast.day


_rhythm_until = kernel(rhythm_until)


@kernel
def _count_last(state: State) -> None:
    """The arrivals since the last tick came when the clock showed what it did then."""
    now, forecast = state.now[0], state.forecast
    pace = forecast.pace[0]
    _make_room(state)
    is_timed = forecast.day > 0.0
    if now.round == 0:  # whatever was before is no silence
        if is_timed:
            forecast.cycles[HOUR].now = _unit(state, now.clock, HOURS)
            forecast.cycles[WEEKDAY].now = _unit(state, now.clock, 1)
        return
    arrivals = float(now.round - pace.counted)
    if arrivals > 0.0:
        pace.counted = now.round
        span = int((pace.last - now.opened) / pace.span)
        forecast.spans[position(max(0, min(SPANS - 1, span)))] += arrivals
        if is_timed:
            _count(forecast.cycles[HOUR], forecast.hours, _unit(state, pace.last, HOURS), arrivals)
            _count(forecast.cycles[WEEKDAY], forecast.weekdays, _unit(state, pace.last, 1), arrivals)


@kernel
def _unit(state: State, clock: float, per_day: int) -> int:
    """The number of the hour, or of the day."""
    return math.floor((state.forecast.time_of_week + clock) / state.forecast.day * per_day)


@kernel
def _make_room(state: State) -> None:
    """Time has gone beyond the last span: two become one."""
    forecast = state.forecast
    pace, spans = forecast.pace[0], forecast.spans
    while clock_passed(state) > SPANS * pace.span:
        for i in range(SPANS // 2):
            spans[i] = spans[2 * i] + spans[2 * i + 1]
        for i in range(SPANS // 2, SPANS):
            spans[i] = 0.0
        pace.span *= 2.0


@kernel
def _count(cycle: Record, sums: Floats, unit: int, arrivals: float) -> None:
    """Arrivals in an hour (or a day): if it is a later one, those before are over, with all who came in them."""
    n = sums.shape[1]
    if unit > cycle.now:
        if cycle.is_whole != 0:
            over = position(cycle.now % n)
            sums[SEEN, over] += 1.0
            sums[ARRIVALS, over] += cycle.count
            sums[SQUARES, over] += cycle.count * cycle.count
        silent = unit - cycle.now - 1
        rest = silent % n
        for i in range(n):
            is_in_rest = (i - cycle.now - 1) % n < rest
            sums[SEEN, i] += silent // n + is_in_rest
        cycle.now, cycle.count, cycle.is_whole = unit, 0.0, 1
    cycle.count += arrivals


@rare
def _learn_pace(state: State) -> None:
    """Rhythm and level, from all that has been counted."""
    now, forecast = state.now[0], state.forecast
    pace = forecast.pace[0]
    if forecast.day > 0.0:
        _set_factors(forecast.hours, forecast.hour_factors)
        _set_factors(forecast.weekdays, forecast.weekday_factors)
    exposure = _rhythm_until(state.forecast, now.clock) - _rhythm_until(state.forecast, now.opened)
    guess, sure = forecast.guess, forecast.guess_weight
    weight, level = 0.0, guess
    if exposure > 0.0 and pace.counted > 0:
        mean = pace.counted / exposure
        passed = clock_passed(state) / pace.span
        if passed >= FEWEST_SPANS:
            mean *= _filtered(state, mean, min(SPANS, int(passed)))
            weight = 1.0 / pace.error
            level = (sure * guess + weight * mean) / (sure + weight)
        else:  # however many came in a span, they may have come for the same reason
            weight = pace.counted * (1.0 + passed) / (pace.counted + 1.0 + passed)
            level = guess * math.exp(_likeliest(weight, mean / guess, sure))
    pace.level = level
    pace.error = 1.0 / (sure + weight)


@kernel
def _likeliest(weight: float, pace: float, sure: float) -> float:
    """The likeliest logarithm of the level, in times the guess, after so many arrivals at that pace.

    The guess may be wrong by a factor (a normal law of the logarithm, of this precision), arrivals are Poisson's:

        weight - weight / pace e^y - sure y = 0

    A hundred in the first second are so many more than expected by then, and no pace: y stays below weight/sure.
    """
    y = min(weight / sure, max(0.0, math.log(pace)))  # at or above the root, from where Newton's steps only go down
    for _ in range(NEWTON_STEPS):
        drawn = weight / pace * math.exp(y)
        y += (weight - drawn - sure * y) / (drawn + sure)
    return y


@kernel
def _set_factors(sums: Floats, factors: Floats) -> None:
    """Means per hour (or weekday) over their common mean, shrunk by how far they would differ by chance."""
    n = factors.size
    common, chance, least = 0.0, 0.0, math.inf
    for i in range(n):
        seen = sums[SEEN, i]
        least = min(least, seen)
        if seen >= 2.0:
            mean = sums[ARRIVALS, i] / seen
            common += mean / n
            chance += (sums[SQUARES, i] - seen * mean * mean) / (seen * (seen - 1.0)) / n
    between = -chance
    if least >= 2.0:
        for i in range(n):
            off = sums[ARRIVALS, i] / sums[SEEN, i] - common
            between += off * off / (n - 1)
    keep = between / (between + max(0.0, chance)) if between > 0.0 and common > 0.0 and least >= 2.0 else 0.0
    for i in range(n):
        factors[i] = 1.0 + keep * (sums[ARRIVALS, i] / sums[SEEN, i] / common - 1.0) if keep > 0.0 else 1.0


@kernel
def _set_exposures(state: State) -> None:
    """The rhythm's part of every span, as far as it has passed."""
    now, forecast = state.now[0], state.forecast
    before = _rhythm_until(state.forecast, now.opened)
    for i in range(SPANS):
        after = _rhythm_until(state.forecast, min(now.clock, now.opened + (i + 1) * forecast.pace[0].span))
        forecast.exposures[i] = after - before
        before = after


@kernel
def _relative(state: State, mean: float, span: int) -> float:
    """Return the level of a span relative to the mean; 1 where no arrival was to be expected."""
    exposure = state.forecast.exposures[span]
    return state.forecast.spans[span] / (exposure * mean) if exposure > 0.0 else 1.0


@kernel
def _lag(state: State, n: int) -> int:
    """How many spans apart drift is looked for: a quarter of all, at the same time of the week."""
    week = WEEKDAYS * state.forecast.day / state.forecast.pace[0].span
    weeks = max(1.0, math.floor(n / 4 / week + 0.5)) if week > 0.0 else 0.0
    return max(2, int(weeks * week + 0.5) if week > 0.0 else n // 4)


@kernel
def _filtered(state: State, mean: float, n: int) -> float:
    """The level now, relative to the mean, from n spans that have passed and what there is of one more."""
    pace, lag = state.forecast.pace[0], _lag(state, n)
    near, far, usual = 0.0, 0.0, 0.0
    _set_exposures(state)
    for i in range(n):
        usual += state.forecast.exposures[i] / n
    for i in range(n - 1):
        step = _relative(state, mean, i + 1) - _relative(state, mean, i)
        near += step * step / (n - 1)
    pace.noise = max(0.5 * near, n / pace.counted)  # no less than that of independent arrivals
    pace.drift = 0.0
    if n - lag >= FEWEST_PAIRS:
        for i in range(n - lag):
            step = _relative(state, mean, i + lag) - _relative(state, mean, i)
            far += step * step / (n - lag)
        # Without drift both are twice the noise, give or take the standard error of such a mean.
        pace.drift = max(0.0, far - 2.0 * pace.noise * (1.0 + 2.0 / math.sqrt(n - lag))) / (lag - 1)
    level, variance = 1.0, math.inf
    for i in range(min(n + 1, SPANS)):
        exposure = state.forecast.exposures[i]
        if exposure > 0.0:
            noise = pace.noise * usual / exposure
            gain = 1.0 if math.isinf(variance) else (variance + pace.drift) / (variance + pace.drift + noise)
            level += gain * (_relative(state, mean, i) - level)
            variance = gain * noise
    pace.error = variance
    return level
