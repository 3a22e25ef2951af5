"""The running median of means against one that keeps every delay in a list."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doral.estimators.median_of_means import (
    DelayRecord,
    add_delay,
    add_open_pull,
    basket_count,
    close_pull,
    median_of_means,
    with_double_room,
)
from tests.estimators.states import new_delay_record

pytestmark = pytest.mark.usefixtures("compiled_alone")

DELTA = 0.05
FIRST_ROOM = 4


def naive(delays: list[float], *, delta: float = DELTA, printed: bool = False) -> float:
    if not delays:
        return math.inf
    n = len(delays)
    if printed:
        h = math.floor(8 * math.log(min(math.exp(1 / 8) / delta, n / 2))) if n > 2 else 1
        h = max(1, min(h, n))
    else:
        h = max(1, math.floor(min(8 * math.log(math.exp(1 / 8) / delta), n / 2)))
    size = n // h
    return statistics.median(sum(delays[b * size : (b + 1) * size]) / size for b in range(h))


def room(record: DelayRecord) -> int:
    return int(record.sums.shape[1]) - 1


def roomier(record: DelayRecord, needed: int) -> DelayRecord:
    while room(record) < needed:
        record = with_double_room(record)
    return record


@given(
    delays=st.lists(st.integers(1, 10_000).map(float), max_size=300),
    delta=st.sampled_from([1e-12, 0.05, 0.5]),
    printed=st.booleans(),
)
def test_prefix_sums_equal_the_list(delays: list[float], delta: float, printed: bool) -> None:
    record = new_delay_record(2, FIRST_ROOM, delta, False)
    for n, delay in enumerate(delays):
        record = roomier(record, n + 1)
        add_delay(record, 1, delay)
        if n % 7 == 0:
            expected = naive(delays[: n + 1], delta=delta, printed=printed)
            assert median_of_means(record, 1, 0.0, delta, printed) == pytest.approx(expected, rel=1e-12)
    assert median_of_means(record, 1, 0.0, delta, printed) == pytest.approx(
        naive(delays, delta=delta, printed=printed), rel=1e-12
    )
    assert median_of_means(record, 0, 0.0, delta, printed) == math.inf  # the other arm has learned nothing


@given(
    pulls=st.lists(st.integers(1, 60) | st.just(math.inf), min_size=1, max_size=150),
    watched=st.integers(0, 80),
    arm=st.integers(0, 1),
)
def test_open_pulls_count_with_their_age(pulls: list[float], watched: int, arm: int) -> None:
    """`min_age`: one pull per round; answers arrive in any order, while the Fenwick trees grow from tiny."""
    record = new_delay_record(2, FIRST_ROOM, DELTA, True)
    positions: list[int] = []
    for now in range(len(pulls) + watched):
        for pulled, delay in enumerate(pulls[:now]):
            if pulled + delay == now:
                close_pull(record, arm, positions[pulled], float(pulled), delay)
        if now < len(pulls):
            record = roomier(record, now + 1)
            positions.append(add_open_pull(record, arm, float(now)))
        if now % 5 == 0 or now == len(pulls) + watched - 1:
            ages = [min(delay, float(now - pulled)) for pulled, delay in enumerate(pulls[: now + 1])]
            assert median_of_means(record, arm, float(now), DELTA, False) == pytest.approx(
                naive(ages), rel=1e-9, abs=1e-9
            )


def test_one_wild_delay_moves_the_mean_and_not_the_median_of_means() -> None:
    record = new_delay_record(1, 1024, DELTA, False)
    for delay in [10.0] * 99 + [1e9]:
        add_delay(record, 0, delay)
    assert median_of_means(record, 0, 0.0, DELTA, False) == 10.0


@pytest.mark.parametrize(
    ("n", "printed", "expected"),
    [
        *[(1, False, 1), (3, False, 1), (4, False, 2), (48, False, 24), (10**6, False, 24)],
        *[(1, True, 1), (2, True, 1), (3, True, 3), (4, True, 4), (10, True, 10), (10**6, True, 24)],
    ],
)
def test_numbers_of_baskets(n: int, printed: bool, expected: int) -> None:
    """delta = 0.05: at most 24 baskets; the printed bracket reaches them sooner and has to be held within 1..n."""
    assert basket_count(n, DELTA, printed) == expected
