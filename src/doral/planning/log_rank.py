"""Do groups answer at the same pace? The log-rank test, within strata."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints
from doral.log.kaplan_meier import rows_by_group


def log_rank(delay: Floats, watched: Floats, group: Ints, stratum: Ints) -> float | None:
    """The p-value of the stratified log-rank test; None where no stratum holds two groups and an answer."""
    from scipy.special import chdtrc

    n_groups, n_strata = int(group.max(initial=0)) + 1, int(stratum.max(initial=0)) + 1
    excess, spread = np.zeros(n_groups), np.zeros((n_groups, n_groups))
    for rows in rows_by_group(stratum, n_strata):
        if rows.size > 1:
            _add(delay[rows], watched[rows], group[rows], excess, spread)
    rank = int(np.linalg.matrix_rank(spread, hermitian=True)) if spread.any() else 0
    if rank == 0:
        return None
    statistic = float(excess @ np.linalg.pinv(spread, hermitian=True) @ excess)
    return float(chdtrc(rank, max(statistic, 0.0)))


def _add(delay: Floats, watched: Floats, group: Ints, excess: Floats, spread: Floats) -> None:
    """One stratum: answers beyond what the share of each group among those waiting would bring, and their spread."""
    came = np.isfinite(delay)
    left = np.where(came, delay, watched)
    ages, answered = np.unique(left[came], return_counts=True)
    if ages.size == 0:
        return
    waiting = left.size - np.searchsorted(np.sort(left), ages, side="left").astype(np.float64)
    part = np.empty((ages.size, excess.size))  # of each group among those waiting
    for g, rows in enumerate(rows_by_group(group, excess.size)):
        part[:, g] = rows.size - np.searchsorted(np.sort(left[rows]), ages, side="left")
        excess[g] += came[rows].sum()
    part /= waiting[:, None]
    excess -= answered @ part
    size = answered * np.divide(waiting - answered, waiting - 1.0, out=np.zeros(ages.size), where=waiting > 1.0)
    spread += np.diag(size @ part) - part.T @ (size[:, None] * part)
