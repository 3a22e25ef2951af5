"""Median of means of the delays of each arm, robust to heavy tails (Bubeck, Cesa-Bianchi and Lugosi 2013).

Delays are kept as running sums, so that the mean of any basket of consecutive ones costs O(1) and one estimate O(h),
never O(n). In `min_age` mode, pulls that are still open count with their present age: then the sums are Fenwick trees
(a point changes when its answer comes), and one estimate costs O(h log n).
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints
from doral.compiled import kernel, rare


class DelayRecord(NamedTuple):
    """The delays of A arms, in the order in which they were learned (or, for `min_age`, pulled)."""

    sums: Annotated[Floats, Array("A delays+1", when="race")]  # prefix sums, or Fenwick nodes
    open_counts: Annotated[Floats, Array("A delays+1", when="opens")]  # Fenwick nodes: open pulls, for `min_age`
    held: Annotated[Ints, Array("A", index="delays+1")]  # delays held
    baskets: Annotated[Floats, Array("baskets")]  # scratch: one mean per basket


def delay_sizes(*, capacity: int, delta: float, with_open: bool) -> dict[str, int]:
    """Return the sizes of a record with room for so many delays of each arm."""
    most_baskets = int(8.0 * math.log(math.exp(0.125) / delta)) + 2
    return {"delays": capacity, "opens": with_open, "baskets": most_baskets}


def with_double_room(record: DelayRecord) -> DelayRecord:
    """The same record with room for twice as many delays."""

    def grown(sums: Floats) -> Floats:
        capacity = sums.shape[1] - 1
        if capacity == 0:
            return sums
        larger = np.zeros((sums.shape[0], 2 * capacity + 1))
        larger[:, : capacity + 1] = sums
        # the Fenwick node of the new upper half covers all that is there; as a prefix sum it is not read before written
        larger[:, 2 * capacity] = sums[:, capacity]
        return larger

    return record._replace(sums=grown(record.sums), open_counts=grown(record.open_counts))


@rare
def basket_count(n: int, delta: float, printed: bool) -> int:
    """h: how many baskets n delays are dealt into, for confidence 1 - delta.

    The printed bracket takes the minimum inside the logarithm; it is kept for `literal`, held within 1..n.
    """
    wanted = 8.0 * math.log(math.exp(0.125) / delta)
    if printed:
        wanted = 8.0 * math.log(min(math.exp(0.125) / delta, n / 2.0)) if n > 2 else 1.0
        return int(max(1.0, min(math.floor(wanted), float(n))))
    return int(max(1.0, math.floor(min(wanted, n / 2.0))))


@kernel
def _fenwick_add(nodes: Floats, position: int, amount: float) -> None:
    i = position + 1
    while i < nodes.size:
        nodes[i] += amount
        i += i & -i


@kernel
def _fenwick_sum(nodes: Floats, length: int) -> float:
    total = 0.0
    i = length
    while i > 0:
        total += nodes[i]
        i -= i & -i
    return total


@kernel
def add_delay(record: DelayRecord, arm: int, delay: float) -> None:
    """A delay became known (prefix sums)."""
    n = record.held[arm]
    record.sums[arm, n + 1] = record.sums[arm, n] + delay
    record.held[arm] = n + 1


@kernel
def add_open_pull(record: DelayRecord, arm: int, clock: float) -> int:
    """A pull was made (`min_age`): until answered it counts as clock_now - clock. Returns its position."""
    position = record.held[arm]
    _fenwick_add(record.sums[arm], position, -clock)
    _fenwick_add(record.open_counts[arm], position, 1.0)
    record.held[arm] = position + 1
    return position


@kernel
def close_pull(record: DelayRecord, arm: int, position: int, pulled_at: float, delay: float) -> None:
    """The pull at `position` was answered after `delay` (`min_age`)."""
    _fenwick_add(record.sums[arm], position, delay + pulled_at)
    _fenwick_add(record.open_counts[arm], position, -1.0)


@rare
def _sum_of_first(record: DelayRecord, arm: int, length: int, clock: float) -> float:
    if record.open_counts.shape[0] == 0:
        return record.sums[arm, length]
    return _fenwick_sum(record.sums[arm], length) + clock * _fenwick_sum(record.open_counts[arm], length)


@rare
def median_of_means(record: DelayRecord, arm: int, clock: float, delta: float, printed: bool) -> float:
    """d^M of one arm: the median over h baskets of N = floor(n / h) delays each; infinite without data."""
    n = record.held[arm]
    if n == 0:
        return math.inf
    h = basket_count(n, delta, printed)
    size = n // h
    baskets = record.baskets
    before = 0.0
    for b in range(h):
        upto = _sum_of_first(record, arm, (b + 1) * size, clock)
        mean = (upto - before) / size
        before = upto
        i = b
        while i > 0 and baskets[i - 1] > mean:  # keep sorted: h is at most a few dozen
            baskets[i] = baskets[i - 1]
            i -= 1
        baskets[i] = mean
    if h % 2 == 1:
        return baskets[h // 2]
    return 0.5 * (baskets[h // 2 - 1] + baskets[h // 2])
