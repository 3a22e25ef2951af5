"""Intervals hold one more draw as often as they say, however many there are, and have no jumps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from doral.inference.intervals import Estimate, limits_of_draws, of_draws, of_played


@pytest.mark.parametrize("n", [40, 400])
def test_intervals_of_draws_hold_one_more(n: int) -> None:
    drawn = np.random.default_rng(0).gamma(2.0, size=(n + 1, 20_000))
    low, high = limits_of_draws(drawn[:-1])
    held = ((low <= drawn[-1]) & (drawn[-1] <= high)).mean()
    assert held == pytest.approx(0.95, abs=0.006)


def test_too_few_draws_have_no_interval_of_draws() -> None:
    with pytest.raises(ValueError, match="too few"):
        of_draws(np.arange(38.0))


@pytest.mark.parametrize("n", [4, 12, 40])
@pytest.mark.parametrize("is_never_negative", [True, False])
def test_intervals_of_played_totals_hold_one_more(n: int, is_never_negative: bool) -> None:
    rng = np.random.default_rng(1)
    totals = rng.gamma(9.0, 10.0, size=(2_000, n + 1))
    held = 0
    for row in totals:
        found = of_played(row[:-1], is_never_negative=is_never_negative)
        held += found.low <= row[-1] <= found.high
    assert held / 2_000 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("is_never_negative", [True, False])
def test_there_is_no_jump_at_zero(is_never_negative: bool) -> None:
    totals = np.array([0.0, 1.2, 2.1, 0.8, 3.0, 2.2, 1.7, 4.1, 2.6, 1.1, 3.3, 2.0])
    first = of_played(totals, is_never_negative=is_never_negative)
    totals[0] = 1e-4
    other = of_played(totals, is_never_negative=is_never_negative)
    assert (first.low, first.high) == pytest.approx((other.low, other.high), abs=0.05)
    assert not is_never_negative or first.low >= 0.0


def test_a_single_draw_says_nothing() -> None:
    one = of_played(np.array([3.0]))
    assert (one.value, one.low, one.high) == (3.0, -math.inf, math.inf)
    assert one.to_dict() == {"value": 3.0, "low": None, "high": None}
    assert Estimate(1.0, 0.5, 2.0).is_above_zero
    assert Estimate(-1.0, -2.0, -0.5).is_below_zero
