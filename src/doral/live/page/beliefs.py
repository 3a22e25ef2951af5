"""What the policy believes of arms, as intervals: what uses bring by context, and when answers come."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.engine.state import State
from doral.estimators.reward_sums import COUNT, REWARD, SQUARE
from doral.estimators.survival import whole_arm_curve

SIGMAS = 1.959963984540054  # of a 95% interval
_TAIL = 0.025  # of it, at each side


class Curve(NamedTuple):
    """Which share of an arm's uses is answered by an age, with a 95% interval."""

    ages: tuple[float, ...]
    returned: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def return_curve(state: State, arm: int) -> Curve:
    """Kaplan and Meier's, with Greenwood's error on the scale of log(-log), which stays between 0 and 1."""
    curves = state.curves
    n_arms = curves.arm_at_risk.shape[0]
    at_risk = curves.at_risk.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    answered = curves.returned.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    seen = at_risk > 0.0
    returned = whole_arm_curve(curves, arm)[seen]
    if not returned.size:
        return Curve((), (), (), ())
    n, d = at_risk[seen], answered[seen]
    open_after = np.maximum(n * (n - d), 1e-300)
    error = np.cumsum(np.where(n > d, d / open_after, 0.0))
    silent = np.clip(1.0 - returned, 0.0, 1.0)
    low, high = returned.copy(), returned.copy()
    inside = (silent > 0.0) & (silent < 1.0)
    width = SIGMAS * np.sqrt(error[inside]) / np.abs(np.log(silent[inside]))
    low[inside] = 1.0 - silent[inside] ** np.exp(-np.minimum(width, 50.0))
    high[inside] = 1.0 - silent[inside] ** np.exp(np.minimum(width, 50.0))
    # Nobody has answered, or all have: of so many, a few might have done otherwise by chance.
    low[silent <= 0.0] = _TAIL ** (1.0 / max(float(n.max()), 1.0))
    high[silent >= 1.0] = 1.0 - _TAIL ** (1.0 / np.maximum(n[silent >= 1.0], 1.0))
    return Curve(tuple(curves.ages[seen].tolist()), tuple(returned.tolist()), tuple(low.tolist()), tuple(high.tolist()))


class Believed(NamedTuple):
    """By context and arm; not a number where nothing is known."""

    value: Floats  # of an answer
    returns: Floats  # the chance of one in time
    brings: Floats  # of a use
    error: Floats  # its standard error


def believed(state: State, n_contexts: int, n_arms: int) -> Believed:
    """As decisions are made by; of an arm that was never answered nothing is known."""
    tau, tau_error = state.tau[:n_contexts, :n_arms].copy(), state.tau_error[:n_contexts, :n_arms]
    value, norm = state.ridge.estimate[:n_contexts, :n_arms].copy(), state.ridge.norm[:n_contexts, :n_arms]
    count = state.tally[COUNT][:n_contexts, :n_arms]
    error = np.sqrt((_noise(state, n_contexts)[:, None] * tau * norm) ** 2 + (tau_error * value) ** 2)
    value[:, count.sum(axis=0) <= 0.0] = math.nan
    return Believed(value, tau, value * tau, error)


def _noise(state: State, n_contexts: int) -> Floats:
    """The standard deviation of a reward around its mean: as the policy measures it, or over all answers."""
    if hasattr(state, "prior"):
        measured = np.asarray(state.prior.sigma, dtype=np.float64)
        if measured.size >= n_contexts:
            return measured[:n_contexts].copy()
    count, total, squares = (float(state.tally[part].sum()) for part in (COUNT, REWARD, SQUARE))
    if count <= 1.0:
        return np.ones(n_contexts)
    variance = max(0.0, squares / count - (total / count) ** 2) * count / (count - 1.0)
    return np.full(n_contexts, math.sqrt(variance))
