"""Every test is in the list once, the longest ones are where a worker begins, and tiers name tests that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiers import GRIDS, SLOW, SMOKE
from tests.turns import LONGEST, in_turns


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("others", [0, 5, 1000])
def test_workers_begin_with_the_longest(workers: int, others: int) -> None:
    long = [f"{one}test" for one in LONGEST]
    names = [*(f"tests/test_other.py::test[{i}]" for i in range(others)), "tests/test_typing.py::test", *long]
    order = in_turns(names, workers)
    assert sorted(order) == list(range(len(names)))
    if others > len(long):
        start, firsts = 0, []
        for number in range(workers):
            firsts.append(names[order[start]])
            start += (len(names) - start) // (workers - number)
        assert firsts == long[:workers]
        assert names[order[-1]] == "tests/test_typing.py::test"


def test_a_few_tests_stay_as_they_are() -> None:
    assert in_turns(["a", "b", "c"], 4) == [0, 1, 2]


@pytest.mark.parametrize("name", [*LONGEST, *SLOW, *SMOKE, *GRIDS])
def test_names_of_tests_lead_to_tests(name: str) -> None:
    path, _, function = name.partition("::")
    place = Path(__file__).parent.parent / path
    assert place.exists()
    assert not function or f"def {function.partition('[')[0]}" in place.read_text()
