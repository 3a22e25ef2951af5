"""The estimate of the time left: from work that was done, without jumps."""

from __future__ import annotations

import itertools

from doral.cli.time_left import TimeLeft, words


def test_neither_what_was_kept_nor_compiling_is_taken_for_speed() -> None:
    left = TimeLeft()
    left.begin(work=200.0)
    for _ in range(100):  # kept from before: all of it at once
        left.advance(1.0, now_s=0.1, is_kept=True)
    assert left.left_s(0.1) is None
    now_s = 40.0  # the first run compiles
    left.advance(1.0, now_s=now_s, is_kept=False)
    assert left.left_s(now_s) is None
    told = []
    for _ in range(99):
        now_s += 2.0
        left.advance(1.0, now_s=now_s, is_kept=False)
        told.append(left.left_s(now_s))
    assert all(one is not None for one in told)
    expected = [2.0 * (98 - number) for number in range(99)]
    assert all(abs((one or 0.0) - true) < 1e-6 for one, true in zip(told, expected, strict=True))


def test_it_does_not_jump_where_the_work_becomes_slower() -> None:
    left = TimeLeft()
    left.begin(work=1_000.0)
    now_s, told = 0.0, []
    for number in range(1_000):
        now_s += 1.0 if number < 300 else 3.0
        left.advance(1.0, now_s=now_s, is_kept=False)
        told.append(left.left_s(now_s))
    known = [one for one in told if one is not None]
    assert all(later < 1.05 * before + 1.0 for before, later in itertools.pairwise(known))
    assert known[-1] < 10.0
    assert left.left_s(now_s + 1e6) == 0.0


def test_words() -> None:
    assert [words(one) for one in (None, 0.0, 61.0, 7_325.0)] == ["-:--", "0:00", "1:01", "2:02:05"]
