"""Ridges for tests."""

from __future__ import annotations

from doral._arrays import Floats
from doral.estimators.ridge import Ridge, refactor
from tests.estimators.states import new_ridge


def first_ridge(features: Floats, n_contexts: int, penalty: float, *, copies: int = 1) -> Ridge:
    """A ridge with no data, complete."""
    ridge = new_ridge(features, n_contexts, penalty, copies=copies)
    for row in range(n_contexts * copies):
        refactor(ridge, row)
    return ridge
