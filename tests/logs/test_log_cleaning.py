"""What is left out of a log is counted, with examples; what is only rare stays."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import doral
from doral.errors import InvalidValue
from doral.logs.cleaning import absurd_delays, isolated_times
from tests.logs.tables import START, said, table


def why(log: doral.Log) -> dict[str, int]:
    return {one.why: one.rows for one in log.reading.dropped}


def only(log: doral.Log) -> str:
    (reason,) = log.reading.dropped
    assert reason.rows == 1
    assert len(log) == log.reading.rows - 1
    return f"{reason.why} | {reason.examples[0]}"


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("answered_at", START - timedelta(days=1), "answered before they were decided | row 6"),
        ("answered_at", datetime(2099, 12, 31, tzinfo=UTC), "longer than all else .* | row 6: 2099"),
        ("time", datetime(1900, 1, 1, tzinfo=UTC), "stands for none | row 6: 1900"),
        ("time", datetime(2199, 1, 1, tzinfo=UTC), "lies apart from all others .* | row 6: 2199"),
        ("time", None, "have no time | row 6"),
        ("reward", float("inf"), "not finite .* | row 6: inf"),
        ("reward", 1e10, "not finite or beyond 1e\\+09 | row 6: 1"),
        ("reward", None, "were answered, but have no reward | row 6"),
        ("answered_at", None, "have a reward, but nobody says when it came | row 6: reward"),
        ("cost", -1.0, "have a cost .* | row 6: -1"),
        ("cost", 1e16, "have a cost .* | row 6: 1e\\+16"),
    ],
)
def test_a_bad_row_is_left_out_and_said(column: str, value: Any, expected: str) -> None:
    rows = table()
    place = 5
    assert rows["reward"][place] is not None
    rows[column][place] = value
    log = doral.read_log(rows)
    assert re.search(expected.replace(" | ", r" \| "), only(log)), only(log)
    assert log.end <= 250 * 3_600.0


def test_probabilities() -> None:
    rows = {**table(), "probability": [0.5] * 200}
    rows["probability"][7] = 0.0
    assert "probability that what was done cannot have | row 8" in only(doral.read_log(rows))
    rows["probability"][7] = 50.0
    with pytest.raises(InvalidValue, match="probability = 50.0: in row 8 .* per cent"):
        doral.read_log(rows)
    rows["probability"][7] = None
    assert doral.read_log(rows).told == "some"


def test_duplicates() -> None:
    rows = table()
    twice = {name: [*values, *values[:3]] for name, values in rows.items()}
    log = doral.read_log(twice)
    assert why(log) == {"are equal to an earlier row in every column, its time included": 3}
    keyed = {"id": [*range(200), 0, 1, 2], **twice}
    keyed["reward"] = [*rows["reward"], 7.0, *rows["reward"][1:3]]
    log = doral.read_log(keyed)
    assert sorted(why(log).values()) == [1, 2]
    assert log.reading.dropped[0].why == "have the id of an earlier row, but say something else"
    assert len(set(log.key)) == len(log) == 200
    # People may come again, and equal rows without a time may be different people.
    people = doral.read_log({"user_id": [*range(200), 0, 1, 2], **twice})
    assert len(people) == 203
    assert "not for duplicates" in said(people)
    bare = doral.read_log({"arm": ["a"] * 50, "reward": [1, 0] * 25})
    assert len(bare) == 50
    assert "48 rows are equal to others and were kept" in said(bare)


def test_a_busy_log_of_days_has_no_duplicates() -> None:
    rng = np.random.default_rng(0)
    days = [f"2026-03-{one:02d}" for one in rng.integers(1, 28, 2_000)]
    log = doral.read_log({"arm": rng.choice(["a", "b"], 2_000), "reward": rng.integers(0, 2, 2_000), "date": days})
    assert len(log) == 2_000


def test_nothing_left_says_why() -> None:
    with pytest.raises(InvalidValue, match=r"nothing is left of 2 rows: 2 rows: have a cost .*row 1: -1"):
        doral.read_log({"arm": ["a", "a"], "reward": [1, 0], "cost": [-1, -1]})
    with pytest.raises(InvalidValue, match=r"positive= .*'maybe', 'perhaps'"):
        doral.read_log({"arm": ["a", "a"], "reward": ["maybe", "perhaps"]})
    with pytest.raises(InvalidValue, match="there are no rows"):
        doral.read_log({"arm": [], "reward": []})


@pytest.mark.parametrize("index", [0.7, 1.0, 2.0])
def test_heavy_tails_are_not_absurd(index: float) -> None:
    """Pareto's tails, also without a mean: of 400 logs, hardly any loses a row; the level is 1 in 100."""
    rng = np.random.default_rng(int(10 * index))
    lost = 0
    for _ in range(400):
        delay = (1.0 - rng.random(1_000)) ** (-1.0 / index)
        kept = np.ones(delay.size, dtype=bool)
        lost += bool(absurd_delays(delay, lambda off, d=delay: float(d[~off].max()), kept).any())  # type: ignore[misc]
    assert lost <= 12  # binomial(400, 0.01): above that in 1 of 1,000


@pytest.mark.parametrize("slips", [1, 3])
def test_slips_are_absurd(slips: int) -> None:
    """Three hours on average, and years in some rows."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(50):
        delay = rng.lognormal(1.0, 0.8, 2_000)
        delay[:slips] = 60_000.0 + rng.random(slips)
        off = absurd_delays(delay, lambda off, d=delay: 2_000.0 + float(d[~off].max()), delay > 0.0)  # type: ignore[misc]
        found += bool(off[:slips].all() and not off[slips:].any())
    assert found == 50


def test_a_pause_is_no_slip() -> None:
    """Two waves a year apart are real; so are even times, however few."""
    rng = np.random.default_rng(2)
    for n in (2, 3, 5, 9, 100, 1_000):
        for _ in range(50):
            times = rng.random(n)
            assert not isolated_times(times, np.ones(n, dtype=bool), at_least=0.0).any()
    waves = np.concatenate([rng.random(100), 365.0 + rng.random(100)])
    assert not isolated_times(waves, np.ones(200, dtype=bool), at_least=0.0).any()
    pilot = np.concatenate([[0.0], 90.0 + rng.random(100)])
    assert not isolated_times(pilot, np.ones(101, dtype=bool), at_least=365.0).any()
    assert (
        isolated_times(4.0 * (pilot + 1.0), np.ones(101, dtype=bool), at_least=300.0).tolist() == [True] + [False] * 100
    )


def test_an_unreadable_cell_is_one_row() -> None:
    rows = table()
    rows["time"] = [one.isoformat() for one in rows["time"]]
    rows["time"][5] = "yesterday"
    assert "time that cannot be read | row 6: yesterday" in only(doral.read_log(rows))
    rows["time"] = ["yesterday"] * 200
    with pytest.raises(InvalidValue, match="time = 'yesterday': column 'time' should hold times such as"):
        doral.read_log(rows)


@pytest.mark.parametrize("kind", ["halves", "pairs"])
def test_a_table_that_is_there_twice_is_read_once(kind: str) -> None:
    """Without times or keys, which would tell."""
    rng = np.random.default_rng(1)
    arm, reward = rng.choice(["a", "b", "c"], 80), rng.integers(0, 2, 80)
    twice = np.tile if kind == "halves" else np.repeat
    log = doral.read_log({"arm": twice(arm, 2).tolist(), "reward": twice(reward, 2).tolist()})
    assert len(log) == 80
    assert [(one.rows, "twice" in one.why) for one in log.reading.dropped] == [(80, True)]
    both = doral.read_log(
        {"arm": np.append(twice(arm, 2), "a").tolist(), "reward": np.append(twice(reward, 2), 0).tolist()}
    )
    assert len(both) == 161  # one row more, and it may be chance
