"""Times in many forms on one clock, and how long was watched."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import InvalidValue
from doral.logs.clock import Clock
from tests.logs.tables import said

T0 = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = 3_600.0


def log_with(times: Any, **more: Any) -> doral.Log:
    columns: dict[str, Any] = {name: more.pop(name) for name in ("answered_at", "delay", "observed") if name in more}
    return doral.read_log({"arm": ["a"] * len(times), "reward": [1] * len(times), "time": times, **columns}, **more)


@pytest.mark.parametrize(
    "times",
    [
        [T0, T0 + timedelta(hours=1)],
        ["2026-03-02T12:00:00Z", "2026-03-02T13:00:00Z"],
        ["2026-03-02 12:00", "2026-03-02 13:00:00.000"],
        ["2026-03-02T14:00:00+02:00", "2026-03-02T08:00:00-0500"],
        ["2026/3/2 12:00:00", "2026/3/2 13:00:00"],
        ["02.03.2026 12:00", "02.03.2026 13:00"],
        ["3/2/2026 12:00 PM", "3/2/2026 1:00 pm"],
        [T0.timestamp(), T0.timestamp() + HOUR],
        [int(T0.timestamp() * 1e3), int((T0.timestamp() + HOUR) * 1e3)],
        [str(int(T0.timestamp())), str(int(T0.timestamp() + HOUR))],
        pl.Series([T0, T0 + timedelta(hours=1)]).dt.convert_time_zone("Asia/Tokyo"),
        np.array(["2026-03-02T12:00", "2026-03-02T13:00"], dtype="datetime64[s]"),
    ],
)
def test_one_moment_in_many_forms(times: Any) -> None:
    if next(iter(times)) == "3/2/2026 12:00 PM":  # nothing says which comes first
        with pytest.raises(InvalidValue, match="day or the month"):
            log_with(times)
        times = [*times, "3/31/2026 12:00 PM"]
    log = log_with(times)
    assert log.start == T0
    assert log.time[:2].tolist() == [0.0, HOUR]
    assert log.clock.unit == "seconds"


def test_zones_are_said() -> None:
    assert "in 2 zones" in said(log_with(["2026-03-02T14:00:00+02:00", "2026-03-02T12:00:00Z"]))
    mixed = log_with(["2026-03-02T14:00:00+02:00", "2026-03-02T12:30:00"])
    assert "1 times in column 'time' have no zone" in said(mixed)
    assert mixed.time.tolist() == [0.0, 0.5 * HOUR]
    assert "seconds since 1970" in said(log_with([T0.timestamp()]))


def test_days_are_days() -> None:
    for days in ([date(2026, 3, 2), date(2026, 3, 4)], ["2026-03-02", "2026-03-04"], [20260302, 20260304]):
        log = log_with(days, answered_at=days)
        assert log.time.tolist() == [0.0, 2 * 24 * HOUR]
        assert log.delay.tolist() == [0.0, 0.0]
        assert log.clock.told == "days"
        assert "whole days" in said(log)
    # A decision at noon that is answered on the same day, of which only the date is kept.
    log = log_with([T0, T0 + timedelta(hours=1)], answered_at=["2026-03-02", "2026-03-05"])
    assert log.delay[0] == 0.0
    assert log.delay[1] == (2 * 24 + 11) * HOUR
    assert "less than the rounding" in said(log)


def test_numbers_count_what_is_said() -> None:
    log = log_with([5.0, 7.0], delay=[1.0, 2.0])
    assert (log.clock.unit, log.start) == ("units", None)
    assert log.time.tolist() == [0.0, 2.0]
    assert "time_unit=" in said(log)
    log = log_with([5.0, 7.0], delay=[1.0, 2.0], time_unit="days", delay_unit="hours")
    assert log.time.tolist() == [0.0, 48 * HOUR]
    assert log.delay.tolist() == [HOUR, 2 * HOUR]
    log = doral.read_log({"arm": ["a"] * 3, "reward": [1] * 3, "delay": [0, 1, 2]})
    assert log.clock.unit == "rounds"
    assert log.time.tolist() == [0, 1, 2]
    assert log.delay.tolist() == [0, 1, 2]


def test_a_duration_says_its_unit() -> None:
    times = [T0, T0 + timedelta(hours=1)]
    with pytest.raises(InvalidValue, match="delay_unit"):
        log_with(times, delay=[1, 2])
    assert log_with(times, delay=[1, 2], delay_unit="min").delay.tolist() == [60, 120]
    rows = {"arm": ["a"] * 2, "reward": [1] * 2, "time": times, "delay_hours": [1, 2]}
    assert doral.read_log(rows).delay.tolist() == [HOUR, 2 * HOUR]
    assert log_with(times, delay=[timedelta(hours=1), None]).delay[0] == HOUR
    with pytest.raises(InvalidValue, match="one of milliseconds"):
        log_with(times, delay=[1, 2], delay_unit="parsec")
    with pytest.raises(InvalidValue, match="counts rounds"):
        doral.read_log({"arm": ["a"], "reward": [1], "delay": [1]}, delay_unit="hours")
    with pytest.raises(InvalidValue, match="is it a duration"):
        log_with(times, answered_at=[1, 2])


def test_a_unit_that_only_a_name_says_is_told() -> None:
    rows = {"arm": ["a"] * 2, "reward": [1] * 2, "pan_day": [4, 7]}
    log = doral.read_log(rows, time="pan_day")
    assert log.time.tolist() == [0.0, 3 * 24 * HOUR]
    assert "Times in column 'pan_day' are taken to be days, by its name." in log.reading.text()
    assert "to be days" not in doral.read_log(rows, time="pan_day", time_unit="hours").reading.text()


def test_a_duration_may_be_one_of_python() -> None:
    assert Clock("seconds", "days").duration("deadline", timedelta(hours=36)) == 36 * HOUR
    for clock, wrong in ((Clock("rounds", "rounds"), timedelta(1)), (Clock("seconds", "days"), timedelta(-1))):
        with pytest.raises(InvalidValue, match="deadline"):
            clock.duration("deadline", wrong)


def test_rows_are_put_in_the_order_of_time() -> None:
    times = [T0 + timedelta(hours=one) for one in (3, 1, 2, 1)]
    log = doral.read_log({"arm": ["a"] * 4, "reward": [0, 1, 2, 3], "time": times})
    assert log.reward.tolist() == [1, 3, 2, 0]
    assert log.time.tolist() == [0.0, 0.0, HOUR, 2 * HOUR]


def test_watched_until() -> None:
    times = [T0, T0 + timedelta(hours=1)]
    heard = [T0 + timedelta(hours=5), None]
    rows = {"arm": ["a"] * 2, "reward": [1, None], "time": times, "answered_at": heard}
    log = doral.read_log(rows)
    assert log.watched.tolist() == [5 * HOUR, 4 * HOUR]
    assert "observed_until" in {one.what for one in log.reading.assumptions}
    for until in (T0 + timedelta(hours=9), "2026-03-02T21:00Z", (T0 + timedelta(hours=9)).timestamp()):
        assert doral.read_log(rows, observed_until=until).watched.tolist() == [9 * HOUR, 8 * HOUR]
    day = doral.read_log(rows, observed_until="2026-03-02")
    assert day.watched.tolist() == [12 * HOUR, 11 * HOUR]  # a day lasts until it is over
    early = doral.read_log(rows, observed_until=T0 + timedelta(hours=2))
    assert not early.is_answered.any()
    assert np.isnan(early.reward).all()
    assert "1 answers came after" in said(early)
    late = doral.read_log(rows, observed_until=T0 + timedelta(minutes=30))
    assert [one.why for one in late.reading.dropped] == ["arrived after all that was observed"]
    column = doral.read_log({**rows, "seen": [T0 + timedelta(hours=6), None]}, observed_until="seen")
    assert column.watched.tolist() == [6 * HOUR, 4 * HOUR]
    with pytest.raises(InvalidValue, match="neither a column nor a time"):
        doral.read_log(rows, observed_until="soon")


@pytest.mark.parametrize(("typical", "told"), [(5.0, "seconds"), (600.0, "minutes"), (5e4, "hours"), (9e5, "days")])
def test_the_unit_that_is_told_is_that_of_delays(typical: float, told: str) -> None:
    times = [T0 + timedelta(days=one) for one in range(9)]
    log = log_with(times, answered_at=[one + timedelta(seconds=typical) for one in times])
    assert log.clock.told == told


def test_times_of_the_exact_microsecond_survive() -> None:
    rng = np.random.default_rng(0)
    micro = np.sort(rng.integers(0, 10**12, 500))
    times = [T0 + timedelta(microseconds=int(one)) for one in micro]
    log = log_with([one.isoformat() for one in times])
    np.testing.assert_array_equal(np.rint(log.time * 1e6).astype(np.int64), micro - micro[0])
