"""Every test is in the list once, and the longest ones are where a worker begins."""

from __future__ import annotations

import pytest

from tests.turns import LONG, LONGEST, in_turns


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("others", [0, 5, 1000])
def test_workers_begin_with_the_longest(workers: int, others: int) -> None:
    long = [f"{one}test" for one in LONGEST] + [f"{one}test[{i}]" for one in LONG for i in range(16)]
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
