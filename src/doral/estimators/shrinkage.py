"""Empirical Bayes over the contexts of a ridge: noise, common mean and spread of theta_j, learned from the data.

    reward = <theta_j, f_a> + noise of variance sigma_j^2,      theta_j ~ N(mu, omega^2 I)

The posterior of theta_j is a ridge around mu with penalty sigma^2 / omega^2. So the penalty follows from the data, a
bonus in units of sigma_j follows the scale of the rewards, and contexts share strength while data are few. sigma is
measured inside (context, arm) cells, where the mean is constant: it does not depend on the linear model being right.
mu and omega move by one EM step at each calibration. Without features (k = 0) every cell is its own, shrunk to its arm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral._jit import jit_rare, jit_rare_inner
from doral.estimators.ridge import Ridge, refactor

CONTEXT_DEGREES = 20.0  # the pooled noise counts like so many observations in a context's own
NOISE_FLOOR = 1e-12  # of the mean square of rewards: exact rewards must not divide by zero
SPREAD_FLOOR = 1e-3  # of the same: a prior that has closed around its mean must be able to open again


# Rows of a tally (3, J, A): raw sums of what has been learned. The ridge can be rebuilt from them under any prior.
COUNT, REWARD, SQUARE = 0, 1, 2


class Prior(NamedTuple):
    """What contexts have in common."""

    mean: Floats  # (k,) mu
    step: Floats  # (k,) scratch
    sigma: Floats  # (J,) noise of a context
    scale: Floats  # (4,) pooled noise variance, omega^2, penalty; and whether rewards have given them a scale


NOISE, SPREAD, PENALTY, IS_SET = 0, 1, 2, 3


def new_prior(n_contexts: int, n_features: int, penalty: float) -> Prior:
    """Before any data: no common mean, noise and spread of 1; only ratios matter until rewards are seen."""
    return Prior(
        mean=np.zeros(n_features),
        step=np.zeros(n_features),
        sigma=np.ones(n_contexts),
        scale=np.array([1.0, 1.0 / penalty, penalty, 0.0]),
    )


@jit_rare
def calibrate(prior: Prior, ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """Measure the noise, move mu and omega by one EM step, and rebuild the ridge around the new prior.

    `thinning` (J, A) multiplies the features: 1, or tau where rewards are thinned by it (the `scaled` learner).
    """
    _, n_contexts, n_arms = tally.shape
    second_moment = measure_noise(prior, tally)
    _rebuild(ridge, tally, thinning)
    if second_moment == 0.0:  # nothing but zeros so far: no scale to go by
        for j in range(n_contexts):
            refactor(ridge, j, prior.scale[PENALTY])
        return
    noise = prior.scale[NOISE]
    if prior.scale[IS_SET] == 0.0:  # the first time: as spread as rewards are large
        prior.scale[SPREAD], prior.scale[IS_SET] = second_moment, 1.0
    prior.scale[PENALTY] = noise / prior.scale[SPREAD]
    n_features = prior.mean.size
    total = 0.0
    for i in range(n_features):
        prior.step[i] = 0.0
    for j in range(n_contexts):
        refactor(ridge, j, prior.scale[PENALTY])
        for i in range(n_features):  # refactor leaves theta_j - mu in `direction`
            prior.step[i] += ridge.direction[i] / n_contexts
            total += ridge.direction[i] ** 2 + noise * ridge.inverse[j, i, i]
        if n_features == 0:
            for a in range(n_arms):
                total += (ridge.estimate[j, a] - ridge.offset[a]) ** 2 + noise * ridge.norm_squared[j, a]
    spread = total / (n_contexts * (n_features if n_features > 0 else n_arms))
    for i in range(n_features):
        prior.mean[i] += prior.step[i]
        spread -= prior.step[i] ** 2 / n_features
    prior.scale[SPREAD] = max(spread, SPREAD_FLOOR * second_moment)
    prior.scale[PENALTY] = noise / prior.scale[SPREAD]
    _set_offsets(prior, ridge)
    for j in range(n_contexts):
        refactor(ridge, j, prior.scale[PENALTY])


@jit_rare
def measure_noise(prior: Prior, tally: Floats) -> float:
    """Variance inside cells, pooled and per context (shrunk to the pooled one); returns the mean square of rewards."""
    _, n_contexts, n_arms = tally.shape
    n, reward, square, inside, degrees = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            if tally[COUNT, j, a] > 0.0:
                n += tally[COUNT, j, a]
                reward += tally[REWARD, j, a]
                square += tally[SQUARE, j, a]
                inside += max(0.0, tally[SQUARE, j, a] - tally[REWARD, j, a] ** 2 / tally[COUNT, j, a])
                degrees += max(0.0, tally[COUNT, j, a] - 1.0)
    if square == 0.0:
        return 0.0
    second_moment = square / n
    overall = max(square / n - (reward / n) ** 2, 0.0)  # all that there is to go by at first
    noise = max((inside + overall) / (degrees + 1.0), NOISE_FLOOR * second_moment)
    prior.scale[NOISE] = noise
    for j in range(n_contexts):
        mine, mine_degrees = CONTEXT_DEGREES * noise, CONTEXT_DEGREES
        for a in range(n_arms):
            if tally[COUNT, j, a] > 0.0:
                mine += max(0.0, tally[SQUARE, j, a] - tally[REWARD, j, a] ** 2 / tally[COUNT, j, a])
                mine_degrees += max(0.0, tally[COUNT, j, a] - 1.0)
        prior.sigma[j] = math.sqrt(mine / mine_degrees)
    return second_moment


@jit_rare_inner
def _set_offsets(prior: Prior, ridge: Ridge) -> None:
    """What a context without data of its own would be thought to bring, arm by arm."""
    n_contexts, n_arms = prior.sigma.size, ridge.offset.size
    n_features = prior.mean.size
    if n_features > 0:
        for a in range(n_arms):
            total = 0.0
            for i in range(n_features):
                total += ridge.features[a, i] * prior.mean[i]
            ridge.offset[a] = total
        return
    n, reward = 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += ridge.weight[j, a]
            reward += ridge.target[j, a]
    for a in range(n_arms):
        arm_n, arm_reward = prior.scale[PENALTY], prior.scale[PENALTY] * (reward / n if n > 0.0 else 0.0)
        for j in range(n_contexts):
            arm_n += ridge.weight[j, a]
            arm_reward += ridge.target[j, a]
        ridge.offset[a] = arm_reward / arm_n


@jit_rare_inner
def _rebuild(ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """The sums of the ridge, for features that are thinned."""
    _, n_contexts, n_arms = tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            thin = thinning[j, a]
            ridge.weight[j, a] = thin * thin * tally[COUNT, j, a]
            ridge.target[j, a] = thin * tally[REWARD, j, a]
