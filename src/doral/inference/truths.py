"""Truths that a log leaves possible: for each, how likely every row of every cell is to happen again.

Within a cell, rows are drawn by the Bayesian bootstrap (Rubin 1981), through the Kaplan-Meier weights: reward, delay
and cost of a row stay together. What a cell is worth comes from all cells together (`pooling`): a thin cell has rows
of the same arm in other contexts beside its own, as many as these stand for, and the weights are tilted so that the
cell is worth what was drawn for it. The tilt is exponential: of all laws with that mean it is the
one nearest to what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats, Ints
from doral.inference.cells import Cells, cells_of
from doral.inference.pooling import Worths, draw_worths
from doral.logs.log import Log

BORROWED_ROWS = 120  # at most, half of them successes: enough for a law, few enough for thousands of cells
_STEPS, _TOLERANCE = 60, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Truths:
    """Rows that may happen, cell by cell, and draws of how likely they are."""

    cells: Cells
    n: int
    seed: int
    worths: Worths
    starts: Ints  # (J * A + 1,) of the rows below
    place: Ints  # of every row among those of `cells`; -1 is a row that the log does not have
    is_own: Floats  # 1 where it is of this very cell, 0 where it is borrowed
    pooled: Floats  # its share of what is borrowed
    worth: Floats
    reward: Floats
    delay: Floats
    paid: Floats

    def weights(self, number: int) -> Floats:
        """Of the rows in one of the truths; they sum to 1 in every cell."""
        cells, rng = self.cells, np.random.default_rng([self.seed, 1, number])
        own = cells.weights(rng.standard_exponential(cells.row.size))[self.place] * self.is_own
        return self._weights(own, self.worth, self.worths.worth[number], self.worths.borrowed[number])

    def usual(self) -> Floats:
        """The weights of the truth in the middle of all."""
        own = self.cells.usual[self.place] * self.is_own
        borrowed = np.median(self.worths.borrowed, axis=0)
        return self._weights(own, self.worth, self.worths.worth.mean(axis=0), borrowed)

    def _weights(self, own: Floats, worth: Floats, wanted: Floats, borrowed: Floats) -> Floats:
        rows = self.cells.effective
        stands = borrowed.ravel()
        with np.errstate(invalid="ignore"):
            lent = np.where(np.isinf(stands), 1.0, stands / (stands + rows))
        size = np.diff(self.starts)
        has_none = np.add.reduceat(np.append(self.pooled, 0.0), np.minimum(self.starts[:-1], self.pooled.size))
        lent = np.where((size > 0) & (has_none > 0.0), lent, 0.0)
        share = np.repeat(lent, size)
        weight = (1.0 - share) * own + share * self.pooled
        for cell in range(size.size):
            here = slice(int(self.starts[cell]), int(self.starts[cell + 1]))
            weight[here] = tilted(weight[here], worth[here], float(wanted.ravel()[cell]))
        return weight


def tilted(weight: Floats, worth: Floats, wanted: float) -> Floats:
    """Weights proportional to `weight` exp(t worth) whose mean worth is as wanted, as far as that is possible.

    >>> tilted(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 0.2)
    array([0.8, 0.2])
    """
    total = weight.sum()
    weight = weight / total
    used = worth[weight > 0.0]
    low, high = float(used.min()), float(used.max())
    if high <= low:
        return weight
    margin = 1e-6 * (high - low)
    wanted = min(max(wanted, low + margin), high - margin)
    levels = np.unique(used)
    if levels.size == 2:
        is_high = worth == levels[1]
        share = float(weight[is_high].sum())
        aim = (wanted - low) / (high - low)
        return np.where(is_high, weight * (aim / share), weight * ((1.0 - aim) / (1.0 - share)))
    z, aim = (worth - low) / (high - low), (wanted - low) / (high - low)
    tilt, least, most = 0.0, -np.inf, np.inf
    for _ in range(_STEPS):  # Newton's method, kept between what is too little and too much
        some = weight * np.exp(tilt * z - max(tilt, 0.0))
        mass = float(some.sum())
        mean = float((some * z).sum()) / mass
        if abs(mean - aim) < _TOLERANCE:
            break
        if mean < aim:
            least = tilt
        else:
            most = tilt
        spread = float((some * z * z).sum()) / mass - mean * mean
        tilt = tilt + (aim - mean) / max(spread, 1e-12)
        if not least < tilt < most:
            tilt = _between(least, most)
    return np.asarray(some / mass)


def _between(least: float, most: float) -> float:
    if np.isinf(most):
        return 2.0 * max(least, 1.0)
    if np.isinf(least):
        return 2.0 * min(most, -1.0)
    return 0.5 * (least + most)


def truths_of(log: Log, *, deadline: float, n: int, seed: int) -> Truths:
    """So many truths that the log leaves possible."""
    cells = cells_of(log, deadline)
    worths = draw_worths(cells, n, np.random.default_rng([seed, 0]))
    starts, place, is_own, pooled = _rows(cells, np.random.default_rng([seed, 2]))
    is_unseen, unseen = place < 0, _unseen_worth(cells)
    heard = cells.delay[np.isfinite(cells.delay)]
    typical = float(np.median(heard)) if heard.size else 0.0
    return Truths(
        cells=cells,
        n=n,
        seed=seed,
        worths=worths,
        starts=starts,
        place=place,
        is_own=is_own,
        pooled=pooled,
        worth=np.where(is_unseen, unseen, cells.worth[place]),
        reward=np.where(is_unseen, unseen, cells.reward[place]),
        delay=np.where(is_unseen, typical, cells.delay[place]),
        paid=_paid(cells, log.cost[cells.row], starts, place),
    )


def _unseen_worth(cells: Cells) -> float:
    """What a row may bring that the log does not have: nothing where all have brought something, otherwise 1."""
    return 0.0 if (cells.worth[cells.is_settled] != 0.0).any() else 1.0


def _paid(cells: Cells, cost: Floats, starts: Ints, place: Ints) -> Floats:
    """What was paid for rows; those of another arm cost the same share of this arm's price."""
    lender = np.repeat(np.arange(cells.n_cells) % cells.n_arms, np.diff(cells.starts))
    rows = np.maximum(np.bincount(lender, minlength=cells.n_arms), 1)
    price = np.bincount(lender, cost, minlength=cells.n_arms) / rows
    here = np.repeat(np.arange(cells.n_cells) % cells.n_arms, np.diff(starts))
    theirs, own = price[lender[place]], price[here]
    ratio = np.divide(own, theirs, out=np.ones(place.size), where=(theirs > 0.0) & (here != lender[place]))
    return np.asarray(cells.paid[place] * ratio)


def _rows(cells: Cells, rng: np.random.Generator) -> tuple[Ints, Ints, Floats, Floats]:
    """Own rows of every cell and those that it may borrow: of the same arm, or where that has none, of all."""
    arm_of = np.repeat(np.arange(cells.n_cells) % cells.n_arms, np.diff(cells.starts))
    settled = np.flatnonzero(cells.is_settled)
    # What a row counts for among all of its arm: its weight in its cell, by how much its cell knows.
    counts = cells.usual * np.repeat(cells.effective, np.diff(cells.starts))
    pools = [_sample(cells, settled[arm_of[settled] == arm], counts, rng) for arm in range(cells.n_arms)]
    everything = _sample(cells, settled, counts, rng)
    pools = [_with_other_outcomes(cells, pool, everything) for pool in pools]
    everything = _with_other_outcomes(cells, everything, everything)
    starts, places, owned, lent = [0], [], [], []
    for cell in range(cells.n_cells):
        here = np.arange(cells.starts[cell], cells.starts[cell + 1])
        own = here[cells.is_settled[here]]
        rows, weight = pools[cell % cells.n_arms]
        if rows.size == 0:
            rows, weight = everything
        places += [own, rows]
        owned += [np.ones(own.size), np.zeros(rows.size)]
        lent += [np.zeros(own.size), weight]
        starts.append(starts[-1] + own.size + rows.size)
    return np.array(starts), np.concatenate(places), np.concatenate(owned), np.concatenate(lent)


def _with_other_outcomes(
    cells: Cells, pool: tuple[Ints, Floats], everything: tuple[Ints, Floats]
) -> tuple[Ints, Floats]:
    """An arm that has brought the same each time may bring something else: as if one row more had, one of all arms.

    Without it, an arm that has failed twice would fail for ever in every truth, whatever was drawn for it. Where all
    arms have brought the same, it is a row that the log does not have.
    """
    rows, weight = pool
    if rows.size == 0 or np.ptp(cells.worth[rows]) > 0.0:
        return pool
    seen = float(rows.size)
    others = cells.worth[everything[0]] != cells.worth[rows[0]]
    if not others.any():
        return np.append(rows, -1), np.append(weight * seen, 1.0) / (seen + 1.0)
    lent = everything[1][others] / everything[1][others].sum()
    return np.concatenate([rows, everything[0][others]]), np.append(weight * seen, lent) / (seen + 1.0)


def _sample(cells: Cells, rows: Ints, counts: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Some rows that stand for all of these, successes apart from the rest; with weights that sum to 1."""
    chosen, weights, total = [], [], float(counts[rows].sum())
    is_success = cells.worth[rows] != 0.0
    for part in (rows[is_success], rows[~is_success]):
        mass = float(counts[part].sum())
        if mass <= 0.0:
            continue
        few = part
        if part.size > BORROWED_ROWS // 2:
            few = rng.choice(part, BORROWED_ROWS // 2, replace=False, p=counts[part] / mass, shuffle=False)
            weights.append(np.full(few.size, mass / total / few.size))
        else:
            weights.append(counts[part] / total)
        chosen.append(few)
    if not chosen:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    return np.concatenate(chosen), np.concatenate(weights)
