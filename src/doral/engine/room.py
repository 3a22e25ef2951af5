"""How much memory a policy needs for a problem, told from its sizes before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from doral.engine.blueprint import Blueprint
from doral.engine.pieces.bonus.corrected import WIDTH
from doral.engine.state import CONTEXT, FIRST_CAPACITY
from doral.errors import InvalidValue
from doral.estimators.levels import FIRST_LEVELS, FIRST_PAIRS
from doral.estimators.line import n_pairs
from doral.estimators.ridge import MANY_FEATURES, in_vectors, padded
from doral.problem import Problem

_WORD, _GIB = 8, 2**30
_CERTIFICATE_WORDS = 9
_WORDS_OF_A_ROW = 16  # of what else is kept for one of those who came lately
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def state_bytes(blueprint: Blueprint, pieces: tuple[str, ...]) -> int:
    """What the arrays of a first state take, but for a few thousand bytes; a test compares it with real ones."""
    options, problem = blueprint.options, blueprint.problem
    n_contexts, n_arms, n_rows = problem.n_contexts, problem.n_arms, blueprint.n_rows
    room, cells = padded(n_arms), n_contexts * n_arms
    n_features, n_ages, n_costs = blueprint.features.shape[1], blueprint.ages.size, _distinct_costs(problem)
    if problem.person:
        n_features = 0  # they have lines
    square = n_features**2
    rows = n_rows * (2 if options.pending == "expected" else 1)
    ridge = (n_arms + room) * n_features + n_rows * n_arms + 2 * rows * n_arms + 3 * rows * room
    ridge += rows * n_features * in_vectors(n_features)
    ridge += n_contexts * square if n_features else n_rows * n_arms
    if options.sampling == "thompson" and n_features >= MANY_FEATURES:
        ridge += rows * square
    if options.prior == "cells" and n_features:
        ridge += 4 * cells + 5 * rows * room
    groups = n_arms * (n_contexts if options.curves_by == "context" else 1)
    curves = (2 * groups + 3 * n_arms) * n_ages
    of_a_cost = (4 + (12 if n_rows > 64 else 3)) * n_rows
    hulls = of_a_cost * n_costs + 4 * blueprint.costs_by_row.size
    words = ridge + curves + hulls + 8 * cells + 3 * n_rows * room + FIRST_CAPACITY * 8
    words += n_rows * CONTEXT.itemsize // _WORD
    if problem.person:
        words += _people_words(blueprint, pieces)
    if any(piece.startswith("prior.") for piece in pieces):
        words += n_contexts * (square + n_features)
    if "index.oracle" in pieces and blueprint.true_values is not None:
        words += blueprint.true_values.size
    if "learn.early" in pieces:
        words += cells * (1 + n_ages) + 3 * n_arms * n_ages
    if "bonus.corrected" in pieces:
        words += n_rows * WIDTH.itemsize // _WORD
    if "bonus.ahead" in pieces or "bonus.to_come" in pieces:
        words += n_rows * room
    if "window" in pieces:
        words += cells
    if "drop" in pieces:
        words += _CERTIFICATE_WORDS * cells
    if "costs" in pieces:
        words += 2 * cells * n_ages + 3 * n_arms * n_ages + 4 * cells + FIRST_CAPACITY * 5
        words += of_a_cost * (n_arms - n_costs)
    if "outcomes" in pieces:
        words += 6 * n_arms * (n_ages + 1)
    if "race" in pieces:
        words += n_arms * (FIRST_CAPACITY + 1) * (2 if options.censoring == "min_age" else 1)
    return _WORD * words


def _people_words(blueprint: Blueprint, pieces: tuple[str, ...]) -> int:
    """Lines, what they are learned from, and those who came lately."""
    options, problem, p = blueprint.options, blueprint.problem, blueprint.n_columns
    n_arms, room, square = problem.n_arms, padded(problem.n_arms), p**2
    of_arms = problem.features if blueprint.given_features is None else blueprint.given_features
    wide = p * (1 if options.features == "none" else 1 + of_arms.shape[1])
    categories = len(problem.category_columns) + (problem.n_contexts > 1)
    words = (6 * n_arms + 5) * square + 3 * n_arms * p + 3 * wide**2 + p * room + (2 * room + 1) * n_pairs(p)
    words += (problem.n_traits + p + categories + _WORDS_OF_A_ROW) * blueprint.n_rows
    words += (FIRST_CAPACITY + 1) * (p + categories)
    if categories:
        words += FIRST_LEVELS * n_arms * (p + 5)
    if categories > 1:
        words += 2 * FIRST_PAIRS
    if problem.feedback == "silent" and options.return_probability == "estimated":
        words += n_arms * (1 + blueprint.ages.size) * square
    words += 4 * square * (("people_shift" in pieces) + ("people_costs" in pieces))
    if "costs" in pieces:
        words += 4 * (blueprint.n_rows - problem.n_contexts) * n_arms
    return int(words)


def _distinct_costs(problem: Problem) -> int:
    """Of the arms of one context, at most."""
    return max(np.unique(row).size for row in problem.costs_by_context)


def machine_bytes() -> int | None:
    """The memory of this machine, or of the container that it is; None where nobody says."""
    return min(_limits(), default=None)


def _limits() -> Iterator[int]:
    with suppress(AttributeError, OSError, ValueError):  # there is no such question on Windows
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            yield int(Path(path).read_text())


def check_room(blueprint: Blueprint, pieces: tuple[str, ...]) -> None:
    """Refuse what cannot be held at all, before it is tried."""
    needed, there = state_bytes(blueprint, pieces), machine_bytes()
    if there is not None and needed > there:
        problem = blueprint.problem
        what, least = "contexts x arms x features", "group contexts or arms, or give fewer features"
        sizes = f"{problem.n_contexts:,} x {problem.n_arms:,} x {blueprint.features.shape[1]:,}"
        if problem.person:
            what, least = "arms x columns of a person", "give fewer arms, leave out splines or products"
            sizes = f"{problem.n_arms:,} x {blueprint.n_columns:,}"
        remedy = (
            f"policy {blueprint.options.name!r} needs {needed / _GIB:,.1f} GiB of memory for this, and the machine has "
            f"{there / _GIB:,.1f} GiB; {least}"
        )
        raise InvalidValue(what, sizes, remedy)
