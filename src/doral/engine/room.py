"""How much memory a policy needs for a problem, told from its sizes before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from doral.engine.blueprint import Blueprint
from doral.engine.state import CONTEXT, FIRST_CAPACITY
from doral.errors import InvalidValue
from doral.estimators.ridge import MANY_FEATURES, padded
from doral.problem import Problem

_WORD, _GIB = 8, 2**30
_CERTIFICATE_WORDS = 9
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def state_bytes(blueprint: Blueprint, pieces: tuple[str, ...]) -> int:
    """What the arrays of a first state take, but for a few thousand bytes; a test compares it with real ones."""
    options, problem = blueprint.options, blueprint.problem
    n_contexts, n_arms = problem.n_contexts, problem.n_arms
    room, cells = padded(n_arms), n_contexts * n_arms
    n_features, n_ages, n_costs = blueprint.features.shape[1], blueprint.ages.size, _distinct_costs(problem)
    square = n_features**2
    rows = n_contexts * (2 if "pending" in pieces else 1)
    ridge = (n_arms + room) * n_features + cells + 2 * rows * n_arms + 3 * rows * room + rows * square
    ridge += n_contexts * square if n_features else cells
    if options.sampling == "thompson" and n_features >= MANY_FEATURES:
        ridge += rows * square
    if options.prior == "cells" and n_features:
        ridge += 4 * cells + 5 * rows * room
    groups = n_arms * (n_contexts if options.curves_by == "context" else 1)
    curves = (2 * groups + 3 * n_arms) * n_ages
    hulls = (4 + (12 if n_contexts > 64 else 3)) * n_contexts * n_costs
    hulls += 4 * problem.costs_by_context.size
    words = ridge + curves + hulls + 8 * cells + 3 * n_contexts * room + FIRST_CAPACITY * 8
    words += n_contexts * CONTEXT.itemsize // _WORD
    if any(piece.startswith("prior.") for piece in pieces):
        words += n_contexts * (square + n_features)
    if "index.oracle" in pieces and blueprint.true_values is not None:
        words += blueprint.true_values.size
    if "learn.early" in pieces:
        words += cells * (1 + n_ages) + 3 * n_arms * n_ages
    if "bonus.ahead" in pieces:
        words += n_contexts * room
    if "window" in pieces:
        words += cells
    if "drop" in pieces:
        words += _CERTIFICATE_WORDS * cells
    if "costs" in pieces:
        words += 2 * cells * n_ages + 3 * n_arms * n_ages + 4 * cells + FIRST_CAPACITY * 5
        words += (4 + (12 if n_contexts > 64 else 3)) * n_contexts * (n_arms - n_costs)
    if "outcomes" in pieces:
        words += 6 * n_arms * (n_ages + 1)
    if "race" in pieces:
        words += n_arms * (FIRST_CAPACITY + 1) * (2 if options.censoring == "min_age" else 1)
    return _WORD * words


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
        sizes = f"{problem.n_contexts:,} x {problem.n_arms:,} x {blueprint.features.shape[1]:,}"
        remedy = (
            f"policy {blueprint.options.name!r} needs {needed / _GIB:,.1f} GiB of memory for this, and the machine has "
            f"{there / _GIB:,.1f} GiB; group contexts or arms, or give fewer features"
        )
        raise InvalidValue("contexts x arms x features", sizes, remedy)
