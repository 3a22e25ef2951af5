"""Numbers do not depend on how a processor, or so many threads, add up products; who rounds otherwise is seen."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.numerics.elementary import product, weighted_sum
from doral.simulation.catalogue.people import LEVEL, NUMBERS, SIZE, Lines, Visitors, standardised
from doral.simulation.workers import tasks as fingerprint

ROOT = Path(doral.__file__).parent


def _slowly(x: Floats, y: Floats) -> Floats:
    """Products, each rounded, and added up from the first to the last."""
    found = np.zeros((len(x), y.shape[1]))
    for i, row in enumerate(x.tolist()):
        for j, column in enumerate(y.T.tolist()):
            total = row[0] * column[0]
            for a, b in zip(row[1:], column[1:], strict=True):
                total += a * b
            found[i, j] = total
    return found


def test_a_product_is_added_up_from_the_first_to_the_last() -> None:
    """BLAS does not round in between where a processor can do without: the last bit is another."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 7)), rng.normal(size=(7, 5))
    assert np.array_equal(product(x, y), _slowly(x, y))
    assert np.array_equal(product(x, y[:, 2]), _slowly(x, y)[:, 2])
    assert np.allclose(product(x, y), x @ y)
    assert weighted_sum(x[:, 0], x[:, 1]) == pytest.approx(float(x[:, 0] @ x[:, 1]))


def test_what_people_are_worth_has_the_same_bits_everywhere() -> None:
    people = Visitors()(np.random.default_rng(1), 300)
    found = Lines()(people, np.zeros((4, 0)), np.random.default_rng(2))[0]
    rng, each = np.random.default_rng(2), SIZE / len(NUMBERS) ** 0.5
    levels, alike = rng.normal(LEVEL, SIZE, 4), rng.normal(0.0, each, (len(NUMBERS), 1))
    effects = alike + rng.normal(0.0, each, (len(NUMBERS), 4))
    assert np.array_equal(found, levels + _slowly(standardised(people, tuple(NUMBERS)), effects))


@pytest.mark.parametrize("sources", ["estimators/**/*.py", "engine/**/*.py", "pacing.py", "simulation/**/*.py"])
def test_nothing_that_decides_or_is_drawn_is_added_up_by_blas(sources: str) -> None:
    """The catalogue's means once were, and had other last bits where a processor multiplies and adds in one."""
    by_blas = ("dot", "einsum", "inner", "linalg", "matmul", "tensordot", "vdot")
    paths = sorted(ROOT.glob(sources))
    assert paths
    for path in paths:
        if path.name == "explain.py":  # it is computed when asked for, and decides nothing
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            place = path.relative_to(ROOT)
            assert not isinstance(node, ast.MatMult), f"{place}: a product by @"
            assert not (isinstance(node, ast.Attribute) and node.attr in by_blas), f"{place}:{node.lineno}: {node.attr}"


def test_workers_whose_exponential_rounds_otherwise_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    before, exp = fingerprint._last_bits(), np.exp
    assert fingerprint._last_bits() == before
    monkeypatch.setattr(np, "exp", lambda x: np.nextafter(exp(x), 0.0))
    assert fingerprint._last_bits() != before
