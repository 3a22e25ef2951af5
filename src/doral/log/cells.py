"""A log by context and arm: in every cell, its rows, what a decision brought by the deadline, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._cached import cached_property
from doral.log.answers import event_weights
from doral.log.log import Log
from doral.log.open_ends import open_ends


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
