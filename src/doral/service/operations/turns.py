"""Who is next, where a look has no time for all: it begins behind the one at which the last look ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


def in_turn(names: Iterable[str], after: str) -> list[str]:
    """All of them by name, beginning behind this one.

    >>> in_turn(["a", "d", "c", "b"], after="b")
    ['c', 'd', 'a', 'b']
    """
    ordered = sorted(names)
    at = bisect_right(ordered, after)
    return ordered[at:] + ordered[:at]
