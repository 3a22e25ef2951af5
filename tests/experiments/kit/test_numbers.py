"""Numbers as people read them."""

from __future__ import annotations

import pytest

from doral.pages.numbers import number, spread


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(1234.5, 0, "+1,234"), (-0.004, 2, "0.00"), (-1.5, 1, "\N{MINUS SIGN}1.5"), (float("nan"), 1, "\N{EN DASH}")],
)
def test_numbers_for_people(value: float, digits: int, shown: str) -> None:
    assert number(value, digits, signed=True) == shown


def test_no_interval_is_said() -> None:
    assert spread(None, None) == "no interval"
    assert spread(-1.0, 2.0, 1, signed=True) == "[\N{MINUS SIGN}1.0, +2.0]"
