"""Cells of which nobody was watched until the deadline: what is still to come of them, others tell.

An arm that is new, or given to few, has rows that left before the deadline without an answer, and nobody of its own who
was watched for longer. To leave these out would take those that have answered for all: with silent feedback every arm
would be a sure success on its first day. Each of them takes instead what became of another row that had waited as long:
one of its arm, or where nobody of that was watched for so long, of all. What comes later than anybody was watched
counts as nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.log.answers import event_weights

_STRIDE = 0.6180339887498949  # multiples of it, less whole numbers, are spread evenly however many they are


class Lent(NamedTuple):
    """Of every row, in the order of cells."""

    lender: Ints  # the row whose fate it takes; -1 where it has its own, or nothing is to come
    is_open_end: Flags  # whether it left before the deadline, later than all of its cell that are settled
    known: Floats  # how much of what comes by the deadline had its time to come; 1 where it is settled


def open_ends(*, cell: Ints, arm: Ints, left: Floats, is_settled: Flags, is_in_time: Flags) -> Lent:
    """Rows are in the order of cells, and in each by the age at which they left."""
    n = cell.size
    lender, known = np.full(n, -1, dtype=np.int64), np.ones(n)
    is_last = _after_the_last_settled(cell, is_settled)
    places = np.flatnonzero(is_last)
    if places.size == 0:
        return Lent(lender, is_last, known)
    everything = _Pool(np.arange(n), left, is_settled, is_in_time)
    for one in np.unique(arm[places]).tolist():
        own = _Pool(np.flatnonzero(arm == one), left, is_settled, is_in_time)
        pool = own if own.is_closed else everything
        mine = places[arm[places] == one]
        lender[mine], known[mine] = pool.fates(left[mine])
    return Lent(lender, is_last, known)


def _after_the_last_settled(cell: Ints, is_settled: Flags) -> Flags:
    """In each cell, those that come after all that are settled."""
    n = cell.size
    last = np.full(int(cell.max(initial=-1)) + 1, -1, dtype=np.int64)
    np.maximum.at(last, cell[is_settled], np.flatnonzero(is_settled))
    return np.arange(n) > last[cell] if n else np.zeros(0, dtype=bool)


class _Pool:
    """Rows of many cells, by the age at which they left, and what each counts (Kaplan and Meier)."""

    def __init__(self, rows: Ints, left: Floats, is_settled: Flags, is_in_time: Flags) -> None:
        # Answers first, then those of whom no more is known, then those that were watched up to the deadline.
        rank = np.where(is_in_time[rows], 0, np.where(is_settled[rows], 2, 1))
        self._rows = rows[np.lexsort((rank, left[rows]))]
        self._left, settled = left[self._rows], is_settled[self._rows]
        self.is_closed = bool(settled.size) and bool(settled[-1])
        self._weight = event_weights(settled)
        self._upto = np.concatenate([[0.0], np.cumsum(self._weight)])
        self._came = np.concatenate([[0.0], np.cumsum(self._weight * is_in_time[self._rows])])

    def fates(self, ages: Floats) -> tuple[Ints, Floats]:
        """For each age, a row that had waited for longer, as often as it counts; and what share had come by then."""
        first = np.searchsorted(self._left, ages, side="right")
        begin = self._upto[first]
        # What is beyond all that was watched is nobody's: it counts as nothing.
        reach = (1.0 if not self.is_closed else float(self._upto[-1])) - begin
        drawn = begin + np.modf((np.arange(ages.size) + 0.5) * _STRIDE)[0] * reach
        place = np.maximum(np.searchsorted(self._upto, drawn, side="right") - 1, first)
        is_there = (place < self._rows.size) & (drawn < self._upto[-1])
        lender = np.where(is_there, self._rows[np.minimum(place, self._rows.size - 1)], -1)
        total = self._came[-1]
        return lender, self._came[first] / total if total > 0.0 else np.ones(ages.size)
