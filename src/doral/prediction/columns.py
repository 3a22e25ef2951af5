"""What a model sees of people: a table of numbers, or of named columns, learned from those whom it is fitted on.

Numbers are as given, and what is missing is the mean of those who were seen. A category has a column for each of its
levels that were seen at least twice, the most frequent first and at most 100, and one for all others. Contexts, where
there are several, have a column each. Where nothing is known of anybody, there is a column of ones.

A model that selects columns by name, as a pipeline of scikit-learn may, sees them as the problem names them: numbers,
and words of categories as they were given, in simulations as in campaigns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from doral._arrays import Floats, Ints
from doral.problem import Problem

if TYPE_CHECKING:
    import polars as pl

MAX_LEVELS = 100
FEWEST_SEEN = 2
MISSING = "(missing)"  # in place of a word
_CONTEXT = "context"


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


class LevelNames(Protocol):
    """Words of categories, as `doral.person.Levels` keeps them."""

    def names(self, category: str, /) -> Sequence[str]:
        """All that were seen, in the order of their numbers."""


class NamedColumns:
    """A data frame with the names of the problem: "context", where there are several, and each feature."""

    def __init__(self, problem: Problem, levels: LevelNames | None, traits: Floats) -> None:
        self._problem, self._levels = problem, levels
        self._means = [_mean(column) for column in traits.T]

    def of(self, contexts: Ints, traits: Floats) -> pl.DataFrame:
        """A row for each person."""
        import polars as pl

        columns: dict[str, pl.Series] = {}
        if self._problem.n_contexts > 1 or not self._problem.n_traits:
            names = np.array(self._problem.context_names, dtype=object)
            columns[_CONTEXT] = pl.Series(names[contexts].tolist(), dtype=pl.String)
        for i, name in enumerate(self._problem.person_names):
            if i in self._problem.category_columns:
                columns[name] = pl.Series(self._words(name, traits[:, i]), dtype=pl.String)
            else:
                columns[name] = pl.Series(np.where(np.isnan(traits[:, i]), self._means[i], traits[:, i]))
        return pl.DataFrame(columns)

    def _words(self, name: str, codes: Floats) -> list[str]:
        known = () if self._levels is None else self._levels.names(name)
        return [
            MISSING if np.isnan(code) else known[int(code)] if code < len(known) else str(int(code)) for code in codes
        ]


def _frequent(codes: Floats) -> Floats:
    """Levels by how often they were seen; of those that are alike, the one that was seen first."""
    levels, first, counts = np.unique(codes[~np.isnan(codes)], return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))
    return np.asarray(levels[order][counts[order] >= FEWEST_SEEN][:MAX_LEVELS])


def _mean(column: Floats) -> float:
    known = column[~np.isnan(column)]
    return float(known.mean()) if known.size else 0.0
