"""What a model sees of people: a table of numbers, whose form is learned from those whom it is fitted on.

Numbers are as given, and what is missing is the mean of those who were seen. A category has a column for each of its
levels that were seen at least twice, the most frequent first and at most 100, and one for all others. Contexts, where
there are several, have a column each. Where nothing is known of anybody, there is a column of ones.
"""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints
from doral.problem import Problem

MAX_LEVELS = 100
FEWEST_SEEN = 2


class Columns:
    """The form of a table, for people of this problem."""

    def __init__(self, problem: Problem, contexts: Ints, traits: Floats) -> None:
        """As it is for those in these contexts, with these traits (people, features)."""
        self._n_contexts = problem.n_contexts if problem.n_contexts > 1 else 0
        self._levels = {i: _frequent(traits[:, i]) for i in problem.category_columns}
        self._means = np.array([_mean(column) for column in traits.T])

    def of(self, contexts: Ints, traits: Floats) -> Floats:
        """(people, columns)."""
        parts = [np.eye(self._n_contexts)[contexts]] if self._n_contexts else []
        for i, column in enumerate(traits.T):
            if i in self._levels:
                is_level = column[:, None] == self._levels[i][None, :]
                parts.append(np.column_stack([is_level, ~is_level.any(axis=1)]).astype(np.float64))
            else:
                parts.append(np.where(np.isnan(column), self._means[i], column)[:, None])
        return np.ascontiguousarray(np.hstack(parts or [np.ones((contexts.size, 1))]))


def _frequent(codes: Floats) -> Floats:
    """Levels by how often they were seen; of those that are alike, the one that was seen first."""
    levels, first, counts = np.unique(codes[~np.isnan(codes)], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return np.asarray(levels[order][counts[order] >= FEWEST_SEEN][:MAX_LEVELS])


def _mean(column: Floats) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if known.size else 0.0
