"""Rules decide by the ends of an interval, and by nothing else."""

from __future__ import annotations

import math

import pytest

from doral.experiments.kit.claim import is_above, is_at_least, is_below, is_less_than, is_not_behind, is_within
from doral.simulation.result import Interval


def between(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, 1.0, low, high)


@pytest.mark.parametrize(
    ("found", "within", "above", "below"),
    [
        (between(-0.5, 0.5), "holds", "undecided", "undecided"),
        (between(-1.0, 1.0), "holds", "undecided", "undecided"),
        (between(0.2, 0.9), "holds", "holds", "fails"),
        (between(0.2, 1.1), "undecided", "holds", "fails"),
        (between(1.1, 3.0), "fails", "holds", "fails"),
        (between(-3.0, -1.1), "fails", "fails", "holds"),
        (between(-2.0, 2.0), "undecided", "undecided", "undecided"),
        (between(0.0, 0.0), "holds", "undecided", "undecided"),
        (Interval(0.1, math.nan, math.nan, math.nan), "undecided", "undecided", "undecided"),
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
        (0.5, 1.5, "undecided", "undecided", "holds"),
        (-2.0, -1.0, "fails", "holds", "fails"),
        (-2.0, 1.0, "undecided", "undecided", "holds"),
        (math.nan, math.nan, "undecided", "undecided", "undecided"),
    ],
)
def test_rules_about_bounds(low: float, high: float, at_least: str, less: str, not_behind: str) -> None:
    found = Interval((low + high) / 2, 1.0, low, high)
    assert is_at_least(1.0)(found) == at_least
    assert is_less_than(1.0)(found) == less
    assert is_not_behind(found) == not_behind
