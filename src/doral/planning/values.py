"""What a decision brings by the deadline, in every cell of context and arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral.log.cells import cells_of
from doral.log.pooling import draw_worths
from doral.planning.plan import Plan

_DRAWS = 200
_MOST_CELLS = 5_000  # more would take longer to learn together than all the rest of a page


@dataclass(frozen=True, kw_only=True)
class CellValue:
    """A cell that has rows.

    `seen` is the mean of its own rows, corrected for answers that are still to come; `value` is what is learned from
    all cells together, where a thin one borrows from those of its arm and of its context. None where nothing is known.
    """

    context: str
    arm: str
    rows: int
    settled: int  # of which it is known what they brought by the deadline
    seen: float | None
    value: float | None
    low: float | None  # 95% interval
    high: float | None


def values_of(plan: Plan) -> tuple[CellValue, ...]:
    """Cell by cell, contexts and arms in the order of the log."""
    log = plan.log
    if not log.is_answered.any():
        return ()
    cells = cells_of(log, plan.deadline)
    shape = (cells.n_contexts, cells.n_arms)
    if cells.n_cells <= _MOST_CELLS:
        drawn = draw_worths(cells, _DRAWS, np.random.default_rng([plan.seed, 3])).worth.reshape(_DRAWS, -1)
        worth = [drawn.mean(axis=0), *np.quantile(drawn, [0.025, 0.975], axis=0)]
    else:
        reach = 1.959964 * np.sqrt(cells.variance / np.maximum(cells.effective, 1.0))
        worth = [cells.mean, cells.mean - reach, cells.mean + reach]
    names = log.arm_names()
    settled = cells.sums((cells.known == 1.0).astype(np.float64))
    made = []
    for cell in np.flatnonzero(np.diff(cells.starts)):
        context, arm = np.unravel_index(cell, shape)
        is_known = settled[cell] > 0.0
        value, low, high = (float(one[cell]) if is_known else None for one in worth)
        made.append(
            CellValue(
                context=log.contexts[int(context)],
                arm=names[int(arm)],
                rows=int(cells.starts[cell + 1] - cells.starts[cell]),
                settled=int(settled[cell]),
                seen=float(cells.mean[cell]) if is_known else None,
                value=value,
                low=low,
                high=high,
            )
        )
    return tuple(made)
