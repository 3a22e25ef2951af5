"""A log by context and arm: in every cell, its rows, what a decision brought by the deadline, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._cached import cached_property
from doral.inference.survival import event_weights
from doral.logs.log import Log

_STRIDE = 0.6180339887498949  # multiples of it, less whole numbers, are spread evenly however many they are


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Rows of all cells, one cell after the other, and in each by the age at which they left.

    A row is *settled* where it is known what it brought by the deadline: it was answered by then, or watched that long.
    The others hand their weight on to those that were watched longer, as in `answers.weigh_answers`; where their cell
    has nobody who was, they take the fate of others (`open_ends`), and count as settled for as much as is known.
    """

    n_contexts: int
    n_arms: int  # that of doing nothing included, as the last one, where it was answered
    deadline: float
    starts: Ints  # (J * A + 1,)
    row: Ints  # of the log
    is_settled: Flags
    known: Floats  # 1 where it is settled by itself; of one that took the fate of another, what share had come by then
    worth: Floats  # reward by the deadline: 0 where there was none, or it came later
    paid: Floats  # in the end
    delay: Floats
    reward: Floats

    @property
    def n_cells(self) -> int:
        return self.n_contexts * self.n_arms

    def slice_of(self, cell: int) -> slice:
        return slice(int(self.starts[cell]), int(self.starts[cell + 1]))

    def weights(self, mass: Floats) -> Floats:
        """Of settled rows, where every row counts `mass` to begin with; they sum to 1 in a cell that has any."""
        weight = np.zeros(mass.size)
        for cell in range(self.n_cells):
            here = self.slice_of(cell)
            own, is_settled = mass[here], self.is_settled[here]
            if not is_settled.any():
                continue
            some = event_weights(is_settled, own)
            weight[here] = some / some.sum()
        return weight

    def sums(self, of: Floats) -> Floats:
        """(J * A,) over the rows of each cell."""
        total = np.concatenate([[0.0], np.cumsum(of)])
        return np.asarray(total[self.starts[1:]] - total[self.starts[:-1]])

    @cached_property
    def usual(self) -> Floats:
        """Weights where all rows count alike."""
        return self.weights(np.ones(self.row.size))

    @cached_property
    def mean(self) -> Floats:
        """(J * A,) what a decision brought by its deadline; 0 where nothing is settled."""
        return self.sums(self.usual * self.worth)

    @cached_property
    def effective(self) -> Floats:
        """(J * A,) how many rows that were watched to the end would tell as much (Kish)."""
        squares = self.sums(self.usual**2)
        return np.divide(self.sums(self.usual * self.known), squares, out=np.zeros_like(squares), where=squares > 0.0)

    @cached_property
    def variance(self) -> Floats:
        """(J * A,) of what a decision brings."""
        return np.maximum(self.sums(self.usual * self.worth**2) - self.mean**2, 0.0)

    @cached_property
    def step(self) -> float | None:
        """What every success brings, where a decision brings that or nothing."""
        some = self.worth[self.is_settled & (self.worth != 0.0)]
        if some.size == 0:
            return 1.0
        first = float(some[0])
        return first if first > 0.0 and bool((some == first).all()) else None


def cells_of(log: Log, deadline: float) -> Cells:
    """Rows without an arm are left out, unless it is known what doing nothing brings."""
    has_nothing = log.skips_are_answered
    n_arms, n_contexts = len(log.arms) + has_nothing, len(log.contexts)
    chosen = np.arange(len(log)) if has_nothing else np.flatnonzero(log.is_served)
    arm = np.where(log.arm[chosen] >= 0, log.arm[chosen], len(log.arms))
    cell = log.context[chosen] * n_arms + arm
    delay, watched = log.delay[chosen], log.watched[chosen]
    is_in_time = delay <= deadline
    is_settled = is_in_time | (watched >= deadline)
    left = np.where(is_in_time, delay, np.minimum(watched, deadline))
    # Of those that left at the same age, answers come first, then those of which no more is known; those that were
    # watched up to the deadline take what is left.
    rank = np.where(is_in_time, 0, np.where(is_settled, 2, 1))
    order = np.lexsort((rank, left, cell))
    cell, row, settled, in_time = cell[order], chosen[order], is_settled[order], is_in_time[order]
    paid, cost = log.paid[row], log.cost[row]
    # Nothing is paid for what was not answered in time, where what is paid depends on it.
    paid = np.where(in_time, np.where(np.isnan(paid), cost, paid), 0.0) if log.paid_when == "on_answer" else cost
    worth = np.where(in_time, np.nan_to_num(log.reward[row]), 0.0)
    heard = np.where(in_time, log.delay[row], np.inf)
    lent = open_ends(cell=cell, arm=cell % n_arms, left=left[order], is_settled=settled, is_in_time=in_time)
    takes = np.flatnonzero(lent.lender >= 0)
    lender = lent.lender[takes]
    worth[takes], heard[takes] = worth[lender], heard[lender]
    if log.paid_when == "on_answer":  # the same share of its own price
        paid[takes] = cost[takes] * np.divide(
            paid[lender], cost[lender], out=np.zeros(takes.size), where=cost[lender] > 0.0
        )
    return Cells(
        n_contexts=n_contexts,
        n_arms=n_arms,
        deadline=deadline,
        starts=np.searchsorted(cell, np.arange(n_contexts * n_arms + 1)),
        row=row,
        is_settled=settled | lent.is_open_end,
        known=np.where(settled, 1.0, np.where(lent.is_open_end, lent.known, 0.0)),
        worth=worth,
        paid=paid,
        delay=heard,
        reward=worth,
    )


class Lent(NamedTuple):
    """Rows of thin cells that left before the deadline without an answer, and after all settled rows of their cell.

    To leave these out would take those that have answered for all: with silent feedback every arm would be a sure
    success on its first day. Each of them takes what became of another row that had waited as long: one of its arm, or
    where no row of that was watched for so long, of all. What comes later than any row was watched counts as nothing.
    """

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
