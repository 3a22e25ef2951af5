"""Sums over rows: what programs write in place of the kernel gives the same bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from doral._arrays import Floats
from doral.compiled import Block, Entry, Program, kernel
from doral.estimators.ridge import add_up_rows, move_by_rows, narrow_by_rows, shift_by_rows, take_off_products


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


class Moved(NamedTuple):
    rows: Floats
    times: Floats
    line: Floats
    squared: Floats


@kernel
def shift(moved: Moved, gain: float, scale: float) -> None:
    shift_by_rows(moved.rows, moved.times, gain, moved.line)


@kernel
def narrow(moved: Moved, gain: float, scale: float) -> None:
    narrow_by_rows(moved.rows, moved.times, scale, moved.squared)


@kernel
def move(moved: Moved, gain: float, scale: float) -> None:
    move_by_rows(moved.rows, moved.times, gain, moved.line, scale, moved.squared)


@kernel
def take_off(moved: Moved, gain: float, scale: float) -> None:
    take_off_products(moved.rows, moved.times, scale)


MOVES = {"shift": shift, "narrow": narrow, "move": move, "take_off": take_off}


def to_be_moved(n_rows: int, n_columns: int) -> Moved:
    draws = np.random.default_rng(n_rows + 100 * n_columns)
    rows, times = draws.normal(size=(n_rows, n_columns)), draws.normal(size=max(n_rows, n_columns))
    return Moved(rows, times, draws.normal(size=n_columns + 1), draws.exponential(size=n_columns + 1))


@pytest.fixture(scope="module")
def program() -> Program:
    moves = {name: Entry(one, (to_be_moved(1, 1), float, float)) for name, one in MOVES.items()}
    return Program(name="rows", entries={"add_up": Entry(add_up, (example(1, 1),)), **moves})


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


@pytest.mark.parametrize("name", MOVES)
def test_what_is_done_with_sums_has_the_bits_of_the_kernel(program: Program, name: str) -> None:
    for n_rows in (0, 1, 5, 8, 19):
        for n_columns in range(1, 41):
            written, said = to_be_moved(n_rows, n_columns), to_be_moved(n_rows, n_columns)
            program[name](Block(written), 0.3, 0.7)
            MOVES[name](said, 0.3, 0.7)
            assert all(one.tolist() == other.tolist() for one, other in zip(written, said, strict=True))


def test_squares_stay_above_zero_and_what_is_no_number_stays_none(program: Program) -> None:
    moved = to_be_moved(5, 16)
    moved.squared[:3] = [1e-300, 0.0, np.nan]
    program["narrow"](Block(moved), 0.0, 1e6)
    assert moved.squared[:2].tolist() == [0.0, 0.0]
    assert np.isnan(moved.squared[2])
