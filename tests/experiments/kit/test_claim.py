"""Rules decide by the ends of an interval, and by nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doral.experiments.kit.claim import (
    is_above,
    is_at_least,
    is_below,
    is_less_than,
    is_not_behind,
    is_within,
    percent_difference,
)
from doral.simulation.results.differences import Interval, interval


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, 1.0, low, high)


@pytest.mark.parametrize(
    ("found", "within", "above", "below"),
    [
        (between(-0.5, 0.5), "holds", "not shown", "not shown"),
        (between(-1.0, 1.0), "holds", "not shown", "not shown"),
        (between(0.2, 0.9), "holds", "holds", "fails"),
        (between(0.2, 1.1), "not shown", "holds", "fails"),
        (between(1.1, 3.0), "fails", "holds", "fails"),
        (between(-3.0, -1.1), "fails", "fails", "holds"),
        (between(-2.0, 2.0), "not shown", "not shown", "not shown"),
        (between(0.0, 0.0), "holds", "not shown", "not shown"),
        (Interval(0.1, math.nan, math.nan, math.nan), "not shown", "not shown", "not shown"),
    ],
)
def test_rules_about_differences(found: Interval, within: str, above: str, below: str) -> None:
    assert is_within(1.0)(found) == within
    assert is_above(found) == above
    assert is_below(found) == below


@pytest.mark.parametrize(
    ("low", "high", "at_least", "less", "not_behind"),
    [
        (1.0, 2.0, "holds", "fails", "holds"),
        (0.5, 0.9, "fails", "holds", "holds"),
        (0.5, 1.5, "not shown", "not shown", "holds"),
        (-0.9, 1.5, "not shown", "not shown", "holds"),
        (-0.9, -0.1, "fails", "holds", "holds"),
        (-1.5, -0.1, "fails", "holds", "not shown"),
        (-2.0, -1.1, "fails", "holds", "fails"),
        (-2.0, 1.0, "not shown", "not shown", "not shown"),
        (math.nan, math.nan, "not shown", "not shown", "not shown"),
    ],
)
def test_rules_about_bounds(low: float, high: float, at_least: str, less: str, not_behind: str) -> None:
    found = Interval((low + high) / 2, 1.0, low, high)
    assert is_at_least(1.0)(found) == at_least
    assert is_less_than(1.0)(found) == less
    assert is_not_behind(1.0)(found) == not_behind


RULES = (is_within(1.0), is_above, is_below, is_at_least(1.0), is_less_than(1.0), is_not_behind(1.0))
ENDS = st.floats(-5.0, 5.0)


@given(low=ENDS, length=st.floats(0.0, 5.0), wider=st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 5.0)))
def test_a_wider_interval_never_shows_more(low: float, length: float, wider: tuple[float, float]) -> None:
    narrow, wide = between(low, low + length), between(low - wider[0], low + length + wider[1])
    for rule in RULES:
        assert rule(wide) in ("not shown", rule(narrow))


def _share_of_holds(truth: float, runs: int, *, sd: float = 1.5, tries: int = 400) -> float:
    """How often "ahead or tied" holds, of simulated comparisons of so many runs."""
    drawn = np.random.default_rng(runs).normal(truth, sd, (tries, runs))
    return float(np.mean([is_not_behind(1.0)(interval(sample)) == "holds" for sample in drawn]))


def test_fewer_runs_never_give_more_holds() -> None:
    runs = (1, 2, 3, 5, 10, 20, 40)
    tied = [_share_of_holds(0.0, many) for many in runs]
    assert tied[:2] == [0.0, 0.0]
    assert tied == sorted(tied)
    assert tied[-1] > 0.9
    # Behind by the margin, it holds by mistake in one case of forty, however many runs there are.
    assert max(_share_of_holds(-1.0, many) for many in runs) < 0.05


def test_who_loses_less_is_ahead() -> None:
    losses = np.array([-10.0, -12.0, -11.0, -13.0])
    assert percent_difference(losses + 1.0, losses).mean == pytest.approx(100 / 11.5)
    assert is_above(percent_difference(losses + 1.0, losses)) == "holds"


def test_one_run_that_is_no_number_shows_nothing() -> None:
    found = percent_difference(np.array([5.0, np.nan, 6.0]), np.array([1.0, 1.0, 1.0]))
    assert {rule(found) for rule in RULES} == {"not shown"}
