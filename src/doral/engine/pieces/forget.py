"""Where the world changes: what was learned counts half after every half-life."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.engine.state import State
from doral.estimators.ridge import Ridge, refactor_rows
from doral.estimators.shrinkage import COUNT, REWARD, SQUARE
from doral.estimators.survival import ReturnCurves
from doral.problem import MAX_AGE

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


MOST_HALF_LIVES = 256.0


class ForgetMemory(NamedTuple):
    half_life: float  # rounds
    base: Floats  # (1,) half-lives after which exact sums count in ones


@dataclass(frozen=True, kw_only=True)
class ForgetOptions:
    """How long the past counts."""

    half_life: float | None = None


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.half_life is not None


def check(options: PolicyOptions) -> None:
    if options.half_life is not None:
        half_life = _check.finite_number("half_life", options.half_life, at_least=1e-3, at_most=MAX_AGE)
        _check.set_fields(options, half_life=half_life)


def memory(blueprint: Blueprint) -> ForgetMemory:
    half_life = blueprint.options.half_life
    assert half_life is not None
    return ForgetMemory(half_life, np.zeros(1))


@kernel
def remembered(state: State, slot: int) -> float:
    return 0.5 ** ((state.now[0].read_last - state.ring[slot].reading) / state.forget.half_life)


@kernel
def correction_weight(state: State, number: int, reward: float) -> float:
    """Nothing once the decision is too old to be watched."""
    return 0.0 if number < state.now[0].first else 1.0


@kernel
def unit_at(state: State, reading: int) -> float:
    """What came a half-life later counts twice: an exact sum is never multiplied, so that nothing is rounded."""
    half_lives = reading / state.forget.half_life
    whole = float(math.floor(half_lives))
    return 2.0 ** (half_lives - whole) * 2.0 ** (whole - state.forget.base[0])


@kernel
def fade(state: State) -> None:
    now = state.now[0]
    if now.round > now.read_last:
        _keep_small(state, float(math.floor(now.round / state.forget.half_life)))
        _forget(state.tally, state.ridge, state.curves, kept(state))
        if not state.chosen.people:  # whose rows are no sums
            refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])


@kernel
def kept(state: State) -> float:
    now = state.now[0]
    return 0.5 ** (max(0, now.round - now.read_last) / state.forget.half_life)


@kernel
def _keep_small(state: State, half_lives: float) -> None:
    """Before units grow too large, all are divided by a power of two."""
    base = state.forget.base
    if half_lives - base[0] > MOST_HALF_LIVES:
        less = 2.0 ** (base[0] - half_lives)
        n_contexts, n_arms, n_sums = state.exact.shape
        for j in range(n_contexts):
            for a in range(n_arms):
                for which in range(n_sums):
                    state.exact[j, a, which] *= less
        base[0] = half_lives


@rare
def _forget(tally: Floats, ridge: Ridge, curves: ReturnCurves, keep: float) -> None:
    """Rewards, widths and return curves."""
    _, n_contexts, n_arms = tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            tally[COUNT, j, a] *= keep
            tally[REWARD, j, a] *= keep
            tally[SQUARE, j, a] *= keep
    for row in range(ridge.weight.shape[0]):
        for a in range(n_arms):
            ridge.weight[row, a] *= keep
            ridge.target[row, a] *= keep
    for group in range(curves.at_risk.shape[0]):
        for g in range(curves.ages.size):
            curves.at_risk[group, g] *= keep
            curves.returned[group, g] *= keep
