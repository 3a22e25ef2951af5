"""Budget: what may be spent per round, exact amounts, and what is released."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doral.engine.budget import added, decimal_rest, rate
from doral.engine.state import State
from tests.engine.interpreted import small_problem, state_of

pytestmark = pytest.mark.usefixtures("interpreted")


def at_round(round_: int, left: float, *, problem: Any = None, **options: Any) -> State:
    """Return a first state in this round, with so much budget left."""
    state = state_of("doral", problem, screening="none", **options)
    state.now[0].round, state.now[0].budget_left = round_, left
    return state


# --- rho -------------------------------------------------------------------------------------------------------------


def test_the_rate_is_what_is_left_per_round_that_is_left() -> None:
    assert rate(at_round(41, 30.0)) == pytest.approx(30.0 / 60.0)
    assert rate(at_round(100, 3.0)) == pytest.approx(3.0)


def test_rounds_that_are_lost_at_the_end_do_not_count() -> None:
    by_end = small_problem(counted="by_end")
    state = at_round(41, 30.0, problem=by_end, until_end=True)
    state.now[0].lost_rounds = 20
    assert rate(state) == pytest.approx(30.0 / 40.0)
    state.now[0].lost_rounds = 500
    assert rate(state) == pytest.approx(30.0)
    for blind in (at_round(41, 30.0, problem=by_end), at_round(41, 30.0, until_end=True)):
        blind.now[0].lost_rounds = 20
        assert rate(blind) == pytest.approx(0.5)


def test_the_printed_rates() -> None:
    assert rate(at_round(40, 30.0, printed=["rate"])) == pytest.approx(30.0 / 40.0)
    assert rate(at_round(40, 30.0, printed=["rate"], pacing="coin")) == pytest.approx(30.0 / 50.0)


@pytest.mark.parametrize(
    ("round_", "left", "expected"),
    [
        (1, 50.0, 5.0 / 10),  # 10 periods of 10 rounds and 5 units
        (10, 46.0, 1.0),
        (11, 46.0, 6.0 / 10),  # what was left of the first period goes to the second
        (15, 38.0, 0.0),  # spent more than this period has
        (100, 2.0, 2.0),
    ],
)
def test_the_rate_of_a_period(round_: int, left: float, expected: float) -> None:
    assert rate(at_round(round_, left, rate="period", periods=10)) == pytest.approx(expected)


# --- exact amounts ---------------------------------------------------------------------------------------------------

cents = st.integers(-(10**7), 10**7)


def summed(amounts: list[int]) -> tuple[float, float, float]:
    """Return the three numbers of a budget after these cents were added."""
    numbers = 0.0, 0.0, 0.0
    for amount in amounts:
        value = amount / 100
        numbers = added(*numbers, value, decimal_rest(value))
    return numbers


@given(amounts=st.lists(cents, max_size=200))
def test_sums_of_decimals_are_exact(amounts: list[int]) -> None:
    left, rest, dust = summed(amounts)
    exact = Fraction(sum(amounts), 100)
    wrong = abs(Fraction(left) + Fraction(rest) + Fraction(dust) - exact)
    assert wrong * 2**80 <= 1 + abs(exact)
    assert left == pytest.approx(sum(amounts) / 100, rel=1e-9, abs=1e-9)


@given(unit=st.integers(1, 999), n=st.integers(1, 60))
def test_a_budget_of_n_costs_pays_for_n(unit: int, n: int) -> None:
    left, rest, dust = summed([unit * n, *[-unit] * n])
    assert abs(Fraction(left) + Fraction(rest) + Fraction(dust)) < Fraction(1, 2**80)
