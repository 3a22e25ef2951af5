"""Rows that were not watched until the deadline: those that were stand for them.

A row whose outcome was known at age t counts 1 / G(t), where G(t) is the share that was watched for at least t. The
log was written some day, and who came late was watched for a shorter time: G is what is known of that, and it is
estimated, which makes values more exact than if it was told. `spread` hands every row what it adds to an estimate,
the estimate of G included: the mean of these is the estimate, and their spread is its error.
"""

from __future__ import annotations

import numpy as np

from doral._arrays import Flags, Floats, Ints

# A group has its own G where so many of it were watched until the deadline: its last steps are then known to a fifth.
ENOUGH_WATCHED = 25


class Censoring:
    """G by group. `own` is what each row counts in it."""

    def __init__(
        self,
        *,
        is_complete: Flags,
        age: Floats,
        watched: Floats,
        group: Ints | None = None,
        own: Floats | None = None,
    ) -> None:
        n = age.size
        self._is_needed = not bool(is_complete.all())
        self.weight: Floats = is_complete.astype(np.float64)
        if not self._is_needed:
            return
        group = np.zeros(n, dtype=np.int64) if group is None else group
        own = np.ones(n) if own is None else own
        n_groups = int(group.max()) + 1
        mass = np.bincount(group, weights=own, minlength=n_groups)
        self._share = n * own / mass[group]
        # Ages and watches of a group in one order, watches after the ages that they just reach.
        rank = _ranks(age, watched)
        self._done = np.flatnonzero(is_complete)
        by_watch = np.argsort(group * (rank[1].max() + 2) + rank[1], kind="stable")
        self._by_age = self._done[np.argsort((group * (rank[1].max() + 2) + rank[0])[self._done], kind="stable")]
        key = group * (int(rank[1].max()) + 2)
        watch_keys, age_keys = (key + rank[1])[by_watch], (key + rank[0])[self._by_age]
        before = np.concatenate([[0.0], np.cumsum(own[by_watch])])
        start = np.concatenate([[0.0], np.cumsum(mass)])
        shorter = before[np.searchsorted(watch_keys, (key + rank[0])[self._done], side="left")]
        of = group[self._done]
        left = 1.0 - (shorter - start[of]) / mass[of]
        self.weight[self._done] = 1.0 / np.maximum(left, 1.0 / n)
        # Of every row: how many of the complete ones, in the order of their ages, were known within its watch.
        self._known = np.searchsorted(age_keys, key + rank[1], side="right")
        self._first = np.searchsorted(age_keys, key, side="left")
        self._last = np.searchsorted(age_keys, key + int(rank[1].max()) + 1, side="right")

    def spread(self, amounts: Floats) -> Floats:
        """What each row adds to the mean of `amounts` over all rows, complete or not."""
        if not self._is_needed:
            return amounts
        counted = amounts * self.weight
        per_row = np.concatenate([[0.0], np.cumsum((counted * self.weight)[self._by_age])])
        of_group = np.concatenate([[0.0], np.cumsum(counted[self._by_age])])
        expected = per_row[self._known] - per_row[self._first]
        mean = of_group[self._last] - of_group[self._first]
        corrected: Floats = counted - self._share * (expected - mean) / amounts.size
        return corrected


def _ranks(age: Floats, watched: Floats) -> tuple[Ints, Ints]:
    """Whole numbers in the order of both; an age and a watch that are equal share one."""
    finite = np.where(np.isfinite(age), age, np.inf)
    _, inverse = np.unique(np.concatenate([finite, watched]), return_inverse=True)
    return inverse[: age.size].astype(np.int64), inverse[age.size :].astype(np.int64)


def finest_groups(levels: list[Ints], is_watched_through: Flags) -> Ints:
    """Of several groupings, from coarse to fine, the finest in which a row's group was watched enough."""
    group = np.zeros(is_watched_through.size, dtype=np.int64)
    offset = 1
    for level in levels:
        enough = np.bincount(level[is_watched_through], minlength=int(level.max()) + 1) >= ENOUGH_WATCHED
        group = np.where(enough[level], offset + level, group)
        offset += int(level.max()) + 1
    _, packed = np.unique(group, return_inverse=True)
    return packed.astype(np.int64)
