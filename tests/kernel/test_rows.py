"""Sums over rows: what programs write in place of the kernel gives the same bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from doral._arrays import Floats
from doral._kernel import Block, Entry, Program, kernel
from doral._kernel.rows import add_up_rows


class Sums(NamedTuple):
    rows: Floats
    times: Floats
    total: Floats


@kernel
def add_up(sums: Sums) -> None:
    add_up_rows(sums.rows, sums.times, sums.total)


def example(n_rows: int, n_columns: int) -> Sums:
    draws = np.random.default_rng(n_rows + 100 * n_columns)
    rows, times = draws.normal(size=(n_rows, n_columns)), draws.normal(size=n_rows)
    return Sums(rows * 10.0 ** draws.integers(-9, 9, rows.shape), times, np.full(n_columns + 1, np.nan))


def one_after_the_other(sums: Sums) -> list[float]:
    totals = []
    for column in sums.rows.T.tolist():
        total = 0.0
        for number, times in zip(column, sums.times.tolist(), strict=True):
            total += number * times
        totals.append(total)
    return totals


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(name="rows", entries={"add_up": Entry(add_up, (example(1, 1),))})


@pytest.mark.parametrize("n_rows", [0, 1, 2, 5, 9])
def test_sums_of_any_number_of_columns_have_the_bits_of_sums_one_after_the_other(program: Program, n_rows: int) -> None:
    for n_columns in range(1, 41):
        sums = example(n_rows, n_columns)
        program["add_up"](Block(sums))
        assert sums.total[:-1].tolist() == one_after_the_other(sums)
        assert np.isnan(sums.total[-1])  # and nothing beyond them is touched


def test_called_from_python_it_does_the_same() -> None:
    sums = example(5, 10)
    add_up_rows(*sums)
    assert sums.total[:-1].tolist() == one_after_the_other(sums)
