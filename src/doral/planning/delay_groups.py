"""Delays of groups of people under the same arm, compared: is there a difference, and how large is it?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.log.answers import weigh_answers
from doral.log.kaplan_meier import ENOUGH, rows_by_group, share_by, survival_of
from doral.log.log import Log
from doral.planning.averages import Z
from doral.planning.curves import MOST_ARMS
from doral.planning.log_rank import log_rank

MOST_GROUPS = 20  # the rest of them are one: there is a share of each by age to be kept


def two_sided(z: float) -> float:
    """The p-value of a normal deviate."""
    return math.erfc(abs(z) / math.sqrt(2.0))


class MeanDelay(NamedTuple):
    """The mean delay of some answers, and what each of them changes in it (0 for other rows)."""

    mean: float
    change: Floats


def mean_delay(delay: Floats, watched: Floats, chosen: Flags) -> MeanDelay:
    weight = np.where(chosen, weigh_answers(delay, watched).weight, 0.0)
    known = np.where(chosen, delay, 0.0)
    mean = float(weight @ known / weight.sum())
    return MeanDelay(mean, np.where(chosen, known - mean, 0.0) / weight.sum())


class Compared(NamedTuple):
    """A test of no difference at all, and a difference with its interval."""

    p_value: float
    effect: float
    low: float
    high: float
    of_what: str  # the share that ...


class _Cell(NamedTuple):
    share: float
    error: float
    rows: int


def compare(log: Log, group: Ints, until: float, *, pooled: bool = False) -> Compared | None:
    """Groups within arms: by their log-rank, and the share that has answered by an age.

    The effect is the largest difference within an arm, with an interval for all pairs; `pooled`, for two groups, the
    difference of the second from the first over all arms. With silent feedback, how many are heard of says how well an
    arm does, not how fast: there, delays are compared among those heard of in time, all of them watched so long.
    """
    is_silent = log.feedback == "silent"
    chosen = log.is_served & (log.arm < MOST_ARMS)
    age, of_what = until, f"has answered within {log.clock.shown(until)}"
    if is_silent:
        chosen &= (log.watched >= until) & (log.delay <= until)
        if not chosen.any():
            return None
        age = float(np.median(log.delay[chosen]))
        of_what = f"answers within {log.clock.shown(age)}, of those that answer within {log.clock.shown(until)}"
    rows = np.flatnonzero(chosen)
    delay, watched = np.where(log.delay[rows] <= until, log.delay[rows], np.inf), np.minimum(log.watched[rows], until)
    n_groups = int(group.max(initial=0)) + 1
    cells = _cells(delay, watched, log.arm[rows] * n_groups + group[rows], n_groups * len(log.arms[:MOST_ARMS]), age)
    by_arm = [cells[a * n_groups : (a + 1) * n_groups] for a in range(len(cells) // n_groups)]
    effect = _shift(by_arm) if pooled else _largest(by_arm)
    p_value = log_rank(delay, watched, group[rows], log.arm[rows])
    if effect is None or p_value is None:
        return None
    return Compared(p_value, *effect, of_what)


def _cells(delay: Floats, watched: Floats, cell: Ints, n_cells: int, age: float) -> list[_Cell | None]:
    """The share by the age in every cell; None where too few were watched so long."""
    found: list[_Cell | None] = []
    for rows in rows_by_group(cell, n_cells):
        if rows.size < ENOUGH or (watched[rows] >= age).sum() < ENOUGH:
            found.append(None)
            continue
        share, error = share_by(survival_of(delay[rows], watched[rows]), age)
        # one row more could have gone the other way: a cell of which all or none answered is not surely so
        found.append(_Cell(share, math.hypot(error, 1.0 / (rows.size + 1.0)), int(rows.size)))
    return found


def _largest(by_arm: list[list[_Cell | None]]) -> tuple[float, float, float] | None:
    """The largest difference between two groups of an arm, with an interval that holds for all pairs."""
    from scipy.special import ndtri

    known = [[one for one in cells if one is not None] for cells in by_arm]
    n_pairs = sum(len(cells) * (len(cells) - 1) // 2 for cells in known)
    if n_pairs == 0:
        return None
    z = float(-ndtri(0.025 / n_pairs))
    effect, low, high = 0.0, 0.0, 0.0
    for cells in known:
        share, error = np.array([one.share for one in cells]), np.array([one.error for one in cells])
        if share.size < 2:
            continue
        apart = np.abs(share[:, None] - share[None])
        half = np.where(np.eye(share.size) > 0.0, 0.0, z * np.hypot(error[:, None], error[None]))
        effect = max(effect, float(apart.max()))
        low, high = max(low, float((apart - half).max())), max(high, float((apart + half).max()))
    return effect, low, min(high, 1.0)


def _shift(by_arm: list[list[_Cell | None]]) -> tuple[float, float, float] | None:
    """The second group's share less the first's, over arms in which both are known."""
    effect, variance, total = 0.0, 0.0, 0.0
    for first, second in by_arm:
        if first is None or second is None:
            continue
        rows = float(first.rows + second.rows)
        total += rows
        effect += rows * (second.share - first.share)
        variance += rows**2 * (first.error**2 + second.error**2)
    if total == 0.0:
        return None
    half = Z * math.sqrt(variance) / total
    return effect / total, max(effect / total - half, -1.0), min(effect / total + half, 1.0)
