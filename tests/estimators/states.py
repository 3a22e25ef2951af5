"""States of estimators with no data, for tests; the engine allocates its own as one."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints, allocate
from doral.estimators.levels import LevelEffects, level_sizes, start_levels
from doral.estimators.line import Line, n_pairs, start_line
from doral.estimators.median_of_means import DelayRecord, delay_sizes
from doral.estimators.outcomes import WEIGHT
from doral.estimators.ridge import Ridge, padded, ridge_sizes, start_ridge
from doral.estimators.shift import Shift
from doral.estimators.shrinkage import Prior, start_prior
from doral.estimators.survival import ReturnCurves


def new_level_effects(n_categories: int, n_arms: int, p: int, variance: float) -> LevelEffects:
    """None so far; `variance` is that of effects while there are no rewards."""
    levels: LevelEffects = allocate(LevelEffects, {"A": n_arms, "p": p, **level_sizes(n_categories)})
    start_levels(levels, variance)
    return levels


def new_line(arms: Floats, group: Ints, variance: float) -> Line:
    """Nothing is known; `variance` is that of a column while there are no rewards."""
    n_arms, q = arms.shape
    p = group.size
    line: Line = allocate(Line, {"A": n_arms, "Ap": padded(n_arms), "q": q, "p": p, "pairs": n_pairs(p)})
    start_line(line, arms, group, variance)
    return line


def new_delay_record(n_arms: int, capacity: int, delta: float, with_open: bool) -> DelayRecord:
    """Room for `capacity` delays per arm (a power of two, so that a Fenwick tree can grow in place)."""
    record: DelayRecord = allocate(
        DelayRecord, {"A": n_arms, "race": 1, **delay_sizes(capacity=capacity, delta=delta, with_open=with_open)}
    )
    return record


def new_outcomes(n_arms: int, n_ages: int) -> Floats:
    """(3, kinds, A, ages + 1), with no data; (3, 2, 0, 0) where outcomes are not told apart."""
    outcomes = np.zeros((3, 2, n_arms, n_ages + 1 if n_arms else 0))
    outcomes[WEIGHT] = 1.0
    return outcomes


def new_ridge(
    features: Floats,
    n_contexts: int,
    penalty: float,
    *,
    copies: int = 1,
    is_drawn_from: bool = False,
    deviates: bool = False,
) -> Ridge:
    """A ridge with no data: theta = 0, V = penalty * I; with `copies` rows for every context.

    What follows from V is not there before each row has been through `refactor`.
    """
    sizes = ridge_sizes(
        n_rows=n_contexts,
        n_arms=features.shape[0],
        n_features=features.shape[1],
        copies=copies,
        is_drawn_from=is_drawn_from,
        deviates=deviates,
    )
    ridge: Ridge = allocate(Ridge, sizes)
    start_ridge(ridge, features, penalty)
    return ridge


def new_shift(p: int, n_arms: int) -> Shift:
    shift: Shift = allocate(Shift, {"p": p, "A": n_arms})
    return shift


def new_prior(n_contexts: int, n_features: int, penalty: float) -> Prior:
    """Before any data: no common mean, noise and spread of 1; only ratios matter until rewards are seen."""
    prior: Prior = allocate(Prior, {"rows": n_contexts, "k": n_features, "prior": 1})
    start_prior(prior, penalty)
    return prior


def new_return_curves(n_arms: int, n_rows: int, ages: Floats, *, pools: bool) -> ReturnCurves:
    """Return curves with no data."""
    sizes = {"A": n_arms, "groups": n_rows * n_arms, "G": ages.size}
    curves: ReturnCurves = allocate(ReturnCurves, sizes, pools=pools)
    curves.ages[:] = ages
    return curves
