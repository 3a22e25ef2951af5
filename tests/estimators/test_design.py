"""Columns of people against their definition in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doral._arrays import Floats
from doral.estimators.design import FARTHEST, KNOTS, Design, learn_design, new_design, set_columns

pytestmark = pytest.mark.usefixtures("compiled_alone")


def columns_of(design: Design, traits: Floats) -> Floats:
    columns = np.full((len(traits), design.first.size), np.nan)
    for row, one in zip(columns, traits, strict=True):
        set_columns(design, one, row)
    return columns


def learned(traits: Floats, *, splines: bool = False, products: list[tuple[int, int]] | None = None) -> Design:
    design = new_design(numbers=list(range(traits.shape[1])), splines=splines, products=products or [])
    learn_design(design, traits, 0, len(traits), np.zeros(len(traits)))
    return design


def expected(first: Floats, traits: Floats, *, splines: bool, products: list[tuple[int, int]]) -> Floats:
    """From the first who came, and for whom it is asked."""
    centre, scale = np.nanmean(first, axis=0), np.nanstd(first, axis=0)

    def raw(people: Floats) -> Floats:
        z = np.nan_to_num(np.clip((people - centre) / scale, -FARTHEST, FARTHEST))
        found = []
        for i in range(people.shape[1]):
            found.append(z[:, i])
            known = np.sort(first[~np.isnan(first[:, i]), i])
            for knot in range(KNOTS if splines else 0):
                at = (known[int((knot + 1) / (KNOTS + 1) * known.size)] - centre[i]) / scale[i]
                found.append(np.maximum(z[:, i] - at, 0.0))
        found.extend(z[:, one] * z[:, two] for one, two in products)
        return np.column_stack(found)

    of_first = raw(first)
    shift, unit = of_first.mean(axis=0), of_first.std(axis=0)
    return np.column_stack([np.ones(len(traits)), (raw(traits) - shift) / np.where(unit > 1e-6, unit, 1.0)])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([8, 32, 128]),
    unit=st.sampled_from([1.0, 365.25, 1e-12, 1e12]),
    splines=st.booleans(),
    products=st.sampled_from([[], [(0, 1)], [(1, 1), (2, 0)]]),
    missing=st.sampled_from([0.0, 0.2]),
)
def test_columns_follow_from_those_who_came_first(
    seed: int, n: int, unit: float, splines: bool, products: list[tuple[int, int]], missing: float
) -> None:
    rng = np.random.default_rng(seed)
    first = rng.normal(3.0, 2.0, (n, 3)) * unit
    first[rng.random((n, 3)) < missing] = np.nan
    first[0] = [1.0 * unit, 2.0 * unit, 3.0 * unit]  # somebody has told all
    first[1] = [2.0 * unit, 1.0 * unit, 7.0 * unit]
    others = rng.normal(3.0, 20.0, (50, 3)) * unit
    others[rng.random((50, 3)) < missing] = np.nan
    design = learned(first, splines=splines, products=products)
    right = expected(first, others, splines=splines, products=products)
    assert columns_of(design, others) == pytest.approx(right, rel=1e-9, abs=1e-9)
    assert columns_of(design, first)[:, 1:].mean(axis=0) == pytest.approx(0.0, abs=1e-9)


def test_until_the_first_have_come_all_are_alike() -> None:
    design = new_design(numbers=[0, 1], splines=True, products=[(0, 1)])
    columns = columns_of(design, np.array([[1.0, 1e12], [np.nan, -5.0]]))
    assert (columns == np.eye(1, design.first.size)).all()


def test_a_number_far_out_counts_as_just_that() -> None:
    first = np.linspace(-1.0, 1.0, 32)[:, None]
    design = learned(first)
    far, farther = columns_of(design, np.array([[1e3], [1e12]]))
    assert far[1] == pytest.approx(FARTHEST)
    assert (far == farther).all()


@pytest.mark.parametrize("value", [0.1, 0.0, -7.3, 1e12, 1e-12, 1.7e9])
def test_what_is_the_same_for_all_at_first_is_nothing(value: float) -> None:
    """And somebody else is as far away as the number is large, not as rounding is."""
    for n in (2, 31, 32, 128):
        design = learned(np.full((n, 1), value))
        same, near, other = columns_of(design, np.array([[value], [value * (1.0 + 1e-9)], [2.0 * value]]))[:, 1]
        assert abs(same) < 1e-12
        assert abs(near) < 1e-6
        assert other == (pytest.approx(np.sign(value)) if value else 0.0)


def test_numbers_that_nobody_told() -> None:
    design = learned(np.full((32, 2), np.nan), splines=True, products=[(0, 1)])
    columns = columns_of(design, np.array([[np.nan, np.nan], [3.0, np.nan], [1e12, -1e12]]))
    assert np.isfinite(columns).all()
    assert (columns[0, 1:] == 0.0).all()


def test_columns_that_tell_the_same_thing_are_in_one_group() -> None:
    design = new_design(numbers=[0, 1], splines=True, products=[(0, 1)])
    assert design.group.tolist() == [0, 1, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5]
