"""What cells are worth, learned together: a thin one borrows from those of its arm and of its context.

Where a success is always the same, a cell has a rate, and effects multiply; otherwise it has a mean, and they add up:

    rate of (j, a) = r context_j arm_a deviation_ja,        effects from Gamma laws around 1
    mean of (j, a) = m + context_j + arm_a + deviation_ja,  effects from normal laws around 0

A Gibbs sampler draws from what the log leaves possible. How far each kind of effect scatters has a half-Cauchy prior on
the scale of the worth itself, so that nothing is tuned: where cells scatter no more than chance has them scatter,
deviations vanish; where they do, cells speak for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doral._arrays import Floats
from doral.log.cells import Cells
from doral.log.pooling_means import MeanSampler
from doral.log.pooling_rates import RateSampler

BURN_IN, SWEEPS = 400, 15  # before the first draw, and between two


@dataclass(frozen=True, kw_only=True)
class Worths:
    """Draws of what cells are worth, and how many rows the others stand for in each."""

    worth: Floats  # (B, J, A)
    borrowed: Floats  # (B, J, A) in rows; infinite where a cell has no say of its own


class Sampler(Protocol):
    """Goes from one possible truth to the next."""

    def sweep(self) -> None:
        """Draw every effect once."""

    def draw(self) -> tuple[Floats, Floats]:
        """(J, A) the worth of every cell as it stands, and the rows for which the others stand."""


def draw_worths(cells: Cells, n: int, rng: np.random.Generator) -> Worths:
    """So many draws of the truth, as far as the log tells it."""
    step, shape = cells.step, (cells.n_contexts, cells.n_arms)
    seen, rows = cells.mean.reshape(shape), cells.effective.reshape(shape)
    sampler: Sampler = MeanSampler(cells, rng) if step is None else RateSampler(seen, rows, step, rng)
    worth, borrowed = np.empty((n, *shape)), np.empty((n, *shape))
    for sweep in range(BURN_IN + n * SWEEPS):
        sampler.sweep()
        if sweep >= BURN_IN and (sweep - BURN_IN) % SWEEPS == 0:
            number = (sweep - BURN_IN) // SWEEPS
            worth[number], borrowed[number] = sampler.draw()
    return Worths(worth=worth, borrowed=np.where(rows > 0.0, borrowed, np.inf))
