"""People cut into strata, for policies that know classes alone.

The rule uses features alone, not what people are worth: features in the order in which the
problem names them (or as asked for); numbers are cut at their quantiles, words are taken as they are, rare ones
together; and one feature after the other is crossed with those before it as long as there are not too many strata.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral.errors import UnknownName
from doral.person import Category, Feature, Missing
from doral.problem import MIN_SHARE, Arm, Context, Problem
from doral.simulation.scenario.people import Crowd

MOST_STRATA = 64
RARE_SHARE = 1.0 / 64.0  # of all: words that fewer have are taken together

Cell: TypeAlias = tuple[int, ...]  # the context, and the part of each feature that is cut


@dataclass(frozen=True)
class Cut:
    """One feature: what parts its numbers, or the words that are not rare."""

    name: str
    edges: tuple[float, ...]
    words: tuple[str, ...]
    is_category: bool

    def parts(self, crowd: Crowd) -> Ints:
        """Return the part of each (N,); the last is that of rare words, and of what is missing."""
        column = crowd.columns[self.name]
        if self.is_category:
            number = {word: i for i, word in enumerate(self.words)}
            return np.array([number.get(word, len(self.words)) for word in column.tolist()], dtype=np.int64)
        parts = np.searchsorted(np.array(self.edges), column, side="right")
        return np.where(np.isnan(column), len(self.edges) + 1, parts).astype(np.int64)


@dataclass(frozen=True)
class Strata:
    """The strata, and what was known of people before they were cut."""

    person: tuple[Feature, ...]
    missing: Missing
    context_names: tuple[str, ...]
    cuts: tuple[Cut, ...]
    cells: tuple[Cell, ...]  # the commonest first

    def of(self, crowd: Crowd) -> Ints:
        """Return the strata (N,); a cell that was empty goes to the one that shares its first parts the longest."""
        numbers = {cell: i for i, cell in enumerate(self.cells)}
        columns = cells_of(crowd, self.context_names, self.cuts)
        cells, where = np.unique(columns, axis=0, return_inverse=True)
        found = [numbers[cell] if cell in numbers else self._nearest(cell) for cell in map(tuple, cells.tolist())]
        return np.array(found, dtype=np.int64)[where.ravel()]

    def _nearest(self, cell: Cell) -> int:
        def alike(other: Cell) -> int:
            return next((i for i, (one, two) in enumerate(zip(cell, other, strict=True)) if one != two), len(cell))

        return max(range(len(self.cells)), key=lambda i: (alike(self.cells[i]), -i))

    def describe(self, cell: Cell) -> str:
        """A name for a stratum."""
        words = [self.context_names[cell[0]]] if len(self.context_names) > 1 else []
        for cut, part in zip(self.cuts, cell[1:], strict=True):
            if cut.is_category:
                words.append(f"{cut.name}={cut.words[part] if part < len(cut.words) else 'other'}")
            else:
                words.append(f"{cut.name}={'missing' if part > len(cut.edges) else part + 1}")
        return " ".join(words)[: _check.MAX_NAME_CHARACTERS] or "everyone"


def cells_of(crowd: Crowd, contexts: Sequence[str], cuts: Sequence[Cut]) -> Ints:
    """(N, 1 + features that are cut)."""
    return np.column_stack([crowd.classes(contexts), *(cut.parts(crowd) for cut in cuts)])


def make_strata(
    problem: Problem, crowd: Crowd, come: Floats, *, by: object, bins: int, at_most: int
) -> tuple[Strata, Floats]:
    """Return strata of these people, weighted by how often they `come`, and the share of arrivals in each."""
    chosen = _chosen(problem, by)
    cuts: list[Cut] = []
    for feature in chosen:
        further = [*cuts, _cut(feature, crowd, come, bins)]
        if len(np.unique(cells_of(crowd, problem.context_names, further), axis=0)) > at_most:
            break
        cuts = further
    found, where = np.unique(cells_of(crowd, problem.context_names, cuts), axis=0, return_inverse=True)
    shares: Floats = np.bincount(where.ravel(), weights=come, minlength=len(found)).astype(np.float64)
    order = [i for i in np.argsort(-shares, kind="stable").tolist() if shares[i] >= MIN_SHARE]
    cells = tuple(tuple(found[i].tolist()) for i in order)
    return Strata(problem.person, problem.missing, problem.context_names, tuple(cuts), cells), shares[order]


def _chosen(problem: Problem, by: object) -> list[Feature]:
    if by is None:
        return list(problem.person)
    names = _check.items("by", by, what="names of features", at_most=problem.n_traits)
    for name in names:
        if name not in problem.person_names:
            raise UnknownName("feature", name, problem.person_names)
    return [problem.person[problem.person_names.index(name)] for name in names]


def _cut(feature: Feature, crowd: Crowd, come: Floats, bins: int) -> Cut:
    """Parts of equally many arrivals; numbers of few values, as yes and no, are taken as they are."""
    column = crowd.columns[feature.name]
    if isinstance(feature, Category):
        words, where = np.unique(column, return_inverse=True)
        shares = np.bincount(where.ravel(), weights=come)
        common = [word for word, share in zip(words.tolist(), shares, strict=True) if word and share >= RARE_SHARE]
        return Cut(feature.name, (), tuple(common), True)
    is_known = ~np.isnan(column)
    values, where = np.unique(column[is_known], return_inverse=True)
    if values.size > bins:
        below = np.cumsum(np.bincount(where.ravel(), weights=come[is_known]))
        last = np.searchsorted(below, below[-1] * np.arange(1, bins) / bins)
        values = np.unique(values[np.concatenate([[0], last])])
    return Cut(feature.name, tuple(values[1:].tolist()), (), False)


def strata_problem(problem: Problem, strata: Strata, shares: Floats) -> Problem:
    """The same problem with the strata for contexts, each with the terms and prices of the context that it is from."""
    origins = [problem.contexts[cell[0]] for cell in strata.cells]
    names = [strata.describe(cell) for cell in strata.cells]
    _check.no_duplicates("name of a stratum", names)
    contexts = tuple(
        Context(name, share, weight=one.weight, deadline=one.deadline, tier=one.tier)
        for name, one, share in zip(names, origins, _shares(shares), strict=True)
    )
    changes: dict[str, Any] = {}
    if isinstance(problem.baseline, tuple):
        changes["baseline"] = [problem.baseline[cell[0]] for cell in strata.cells]
    arms = tuple(_arm(arm, names, origins) for arm in problem.arms)
    return dataclasses.replace(problem, arms=arms, contexts=contexts, person=(), missing="error", **changes)


def _arm(arm: Arm, names: list[str], origins: list[Context]) -> Arm:
    if not isinstance(arm.cost, tuple):
        return arm
    costs = {name: arm.cost_in(one.name) for name, one in zip(names, origins, strict=True)}
    return Arm(arm.name, features=arm.features, cost=costs)


def _shares(shares: Floats) -> list[float]:
    sums_to_one: list[float] = (shares / math.fsum(shares.tolist())).tolist()
    return sums_to_one


def checked_bins(bins: object, at_most: object) -> tuple[int, int]:
    few = _check.whole_number("bins", bins, at_least=1, at_most=100)
    return few, _check.whole_number("at_most", at_most, at_least=1, at_most=10_000)
