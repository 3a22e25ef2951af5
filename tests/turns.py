"""Who takes which test: each worker begins with some of the longest, so that none of them is left for the end.

Workers get parts of the list of all tests, one after another and equally long (`--dist worksteal`); who has none left
takes half of what another still has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# By the beginnings of their names, those of a line together: they share what they are made of.
LONGEST = (
    "tests/release/test_release.py::test_a_newcomer_",
    "tests/test_notebooks.py::",
    "tests/test_site.py::",
    "tests/service/test_kills.py::",
    "tests/cluster/test_ray.py::",
    "tests/cluster/test_dask.py::",
    "tests/browser/test_pages.py::",
    "tests/experiments/paper/",
)
# By then the types of everything have been checked beside the tests, and what was found out is kept.
LAST = ("tests/test_typing.py::",)


def in_turns(names: Sequence[str], workers: int) -> list[int]:
    """Positions of the tests in the order in which the workers are to get them.

    >>> names = ["a", "tests/test_typing.py::t", "b", "tests/test_site.py::s", "tests/test_notebooks.py::n", "c"]
    >>> [names[i].rpartition(":")[2] for i in in_turns(names, 2)]
    ['n', 'a', 'b', 's', 'c', 't']
    """
    groups = [[i for i, name in enumerate(names) if name.startswith(one)] for one in LONGEST]
    last = [i for i, name in enumerate(names) if name.startswith(LAST)]
    taken = {*last, *(i for group in groups for i in group)}
    rest = [*(i for i in range(len(names)) if i not in taken), *last]
    dealt: list[list[int]] = [[] for _ in range(workers)]
    for number, group in enumerate(group for group in groups if group):
        dealt[number % workers] += group
    found: list[int] = []
    for number, own in enumerate(dealt):
        size = (len(names) - len(found)) // (workers - number)  # as the scheduler parts what is left
        more = max(0, size - len(own))
        found += own + rest[:more]
        del rest[:more]
    return found + rest
