"""Empirical Bayes over the contexts of a ridge: noise, common mean and spread of theta_j, learned from the data.

    reward = <theta_j, f_a> + noise of variance sigma_j^2,      theta_j ~ N(mu, omega^2 I),      mu ~ N(0, s^2 I)

So contexts share strength while data are few, the penalty follows from the data, and a bonus in units of sigma_j
follows the scale of the rewards. sigma is measured inside (context, arm) cells, where the mean is constant: it does not
depend on the linear model being right. omega moves by one EM step at each calibration; s is as large as rewards are.

mu is not known but estimated, and where nobody has tried anything it is not known at all. To take it for known would
make arms that no context has played look certain, and nobody would ever play them. What context j borrows is therefore
the posterior of mu given all *other* contexts, with its whole covariance:

    theta_j | the others  ~  N(mu_-j, omega^2 I + Cov(mu | others))

and this, as mean and precision Lambda_j, is the prior of its ridge: the exact posterior, for given omega and noise.
Without features (k = 0) the same holds arm by arm: cells of an arm have a common mean, around that of all arms.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from doral._arrays import Array, Floats
from doral.compiled import kernel, rare, shared
from doral.estimators.ridge import (
    COUNT,
    FIRST_DEVIATION,
    MANY_FEATURES,
    REWARD,
    SQUARE,
    Ridge,
    deviates,
    invert,
    line_target,
    line_weight,
    refactor_rows,
    set_data_precision,
)

CONTEXT_DEGREES = 20.0  # the pooled noise counts like so many observations in a context's own
NOISE_FLOOR = 1e-12  # of the mean square of rewards: exact rewards must not divide by zero
SPREAD_GUESS, SPREAD_DEGREES = 0.1, 1.0  # of s^2: what omega^2 is thought to be, and like how many observations

SPREAD_FLOOR = (
    1e-9  # of s^2, far below what is ever learned: rewards that leap by orders of magnitude leave omega behind
)

ADDED_ONE_BY_ONE = 64  # up to here, every context is added up by itself


class Prior(NamedTuple):
    """What contexts have in common."""

    sigma: Annotated[Floats, Array("rows", fill=1.0)]  # noise of a context
    scale: Annotated[Floats, Array("11")]  # see below
    inverse: Annotated[Floats, Array("rows+4 k k", when="prior")]  # scratch: (lambda I + V_data)^-1, and four more
    pull: Annotated[
        Floats, Array("rows+1 k", when="prior")
    ]  # scratch: what a context says about mu; the last row over all


# Of `scale`: pooled noise variance, omega^2, s^2, lambda = noise / omega^2, whether rewards have set them, lambda
# before they did; the noise as it may be while few answers tell, the mean square of rewards (0: only zeros so far).
NOISE, SPREAD, RANGE, PENALTY, IS_SET, FIRST_PENALTY, DOUBT, MEAN_SQUARE = 0, 1, 2, 3, 4, 5, 6, 7
# And of `cells`: the variance of deviations, that of what arms have beyond their features, and what a success brings
# where rewards are nothing or that (0 where they are not).
DEVIATION, EFFECT, SUCCESS = 8, 9, 10
ANEW = -1.0  # in place of IS_SET: they were set by a reward that turned out to be another one
ANEW_STEPS = 8  # of EM, after which omega is where it would be
# The last matrices of `inverse`: precision of mu, its inverse, and two for one context at a time.
_ALL, _ALL_INVERSE, _ONE, _ONE_INVERSE = -4, -3, -2, -1


def start_prior(prior: Prior, penalty: float) -> None:
    """Set the scales before any reward has been seen."""
    prior.scale[:] = (1.0, 1.0 / penalty, 1.0 / penalty, penalty, 0.0, penalty, 1.0, 0.0, 0.0, 0.0, 0.0)


@rare
def calibrate(prior: Prior, ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """Measure the noise, learn what contexts have in common, and rebuild the ridge around it.

    `thinning` (J, A) multiplies the features: 1, or tau where rewards are thinned by it (the `scaled` learner).
    """
    n_contexts = tally.shape[1]
    second_moment = measure_noise(prior, tally, ridge.features.shape[1] > 0)
    rebuild(ridge, tally, thinning)
    if second_moment > 0.0:  # else nothing but zeros so far: no scale to go by
        prior.scale[RANGE] = second_moment / feature_size(ridge)
        steps = ANEW_STEPS if prior.scale[IS_SET] == ANEW else 1
        if prior.scale[IS_SET] != 1.0:
            prior.scale[SPREAD], prior.scale[IS_SET] = SPREAD_GUESS * prior.scale[RANGE], 1.0
        prior.scale[SPREAD] = max(prior.scale[SPREAD], SPREAD_FLOOR * prior.scale[RANGE])
        for _ in range(steps):
            prior.scale[PENALTY] = prior.scale[NOISE] / prior.scale[SPREAD]
            if ridge.features.shape[1] > 0:
                share(prior, ridge)
            else:
                share_cells(prior, ridge)
    elif prior.scale[IS_SET] == ANEW:
        start_over(prior, ridge)
    refactor_rows(ridge, 0, n_contexts)


@rare
def start_over(prior: Prior, ridge: Ridge) -> None:
    """The only rewards that were not 0 have been corrected to it: back to before any data."""
    penalty = prior.scale[FIRST_PENALTY]
    prior.scale[SPREAD], prior.scale[RANGE], prior.scale[PENALTY] = 1.0 / penalty, 1.0 / penalty, penalty
    prior.scale[IS_SET] = 0.0
    n_contexts, n_rows, n_columns = ridge.precision.shape
    for j in range(n_contexts):
        for i in range(n_rows):
            for l in range(n_columns):  # noqa: E741
                ridge.precision[j, i, l] = penalty if i == l or n_columns == 1 else 0.0
        for a in range(ridge.offset.shape[1]):
            ridge.offset[j, a] = 0.0
            if deviates(ridge):
                ridge.deviation[j, a], ridge.noisiness[j, a] = FIRST_DEVIATION, 1.0
                ridge.effect[j, a], ridge.effect_variance[j, a] = 0.0, 0.0


@rare
def feature_size(ridge: Ridge) -> float:
    """The mean square of the features of an arm: s^2 times this is what rewards are thought to be."""
    n_arms, n_features = ridge.features.shape
    total = 0.0
    for a in range(n_arms):
        for i in range(n_features):
            total += ridge.features[a, i] * ridge.features[a, i]
    return total / n_arms if total > 0.0 else 1.0


@shared
def share(prior: Prior, ridge: Ridge) -> None:
    """mu given all contexts but one, for each; and omega^2, which holds from the next time on.

    Contexts without data say and borrow the same: it is worked out for one of them, and the others take copies.
    """
    n_contexts, n_features = ridge.offset.shape[0], ridge.features.shape[1]
    noise, penalty = prior.scale[NOISE], prior.scale[PENALTY]
    known, mean_of = prior.inverse[_ALL], prior.pull
    for i in range(n_features):
        mean_of[n_contexts, i] = 0.0
        for l in range(n_features):  # noqa: E741
            known[i, l] = noise / prior.scale[RANGE] if i == l else 0.0
    like = n_contexts
    for j in range(n_contexts):
        if ridge.is_touched[j] != 0 or like == n_contexts:
            _listen(prior, ridge, j)
            like = j if ridge.is_touched[j] == 0 else like
        else:
            _copy(prior.inverse[like], prior.inverse[j])
            for i in range(n_features):
                mean_of[j, i] = mean_of[like, i]
        for i in range(n_features):
            mean_of[n_contexts, i] += mean_of[j, i]
            for l in range(n_features):  # noqa: E741
                known[i, l] += penalty * _shared(prior, j, i, l)
    invert(known, ridge.scratch[0], prior.inverse[_ALL_INVERSE])
    spread = _spread(prior, ridge, noise, penalty)
    like = n_contexts
    for j in range(n_contexts):
        if ridge.is_touched[j] != 0 or like == n_contexts:
            _borrow(prior, ridge, j)
            like = j if ridge.is_touched[j] == 0 else like
        else:
            _copy(ridge.precision[like], ridge.precision[j])
            for a in range(ridge.offset.shape[1]):
                ridge.offset[j, a] = ridge.offset[like, a]
    prior.scale[SPREAD] = spread


@kernel
def _copy(matrix: Floats, to: Floats) -> None:
    for i in range(matrix.shape[0]):
        for l in range(matrix.shape[1]):  # noqa: E741
            to[i, l] = matrix[i, l]


@kernel
def _listen(prior: Prior, ridge: Ridge, context: int) -> None:
    """What the data of a context say about mu: precision lambda (I - lambda V^-1)."""
    n_arms, n_features = ridge.features.shape
    one, penalty = prior.inverse[_ONE], prior.scale[PENALTY]
    set_data_precision(ridge, context, one)
    for i in range(n_features):
        one[i, i] += penalty
    invert(one, ridge.scratch[0], prior.inverse[context])
    for i in range(n_features):  # direction = G_j
        ridge.direction[i] = 0.0
        for a in range(n_arms):
            ridge.direction[i] += _said(ridge, context, a) * ridge.features[a, i]
    for i in range(n_features):
        total = 0.0
        for l in range(n_features):  # noqa: E741
            total += prior.inverse[context, i, l] * ridge.direction[l]
        prior.pull[context, i] = penalty * total


@kernel
def _said(ridge: Ridge, context: int, arm: int) -> float:
    """What the answers of a cell say of the line: without what the arm has beyond it."""
    if deviates(ridge):
        return line_target(ridge, context, arm) - line_weight(ridge, context, arm) * ridge.effect[context, arm]
    return ridge.target[context, arm]


@kernel
def _borrow(prior: Prior, ridge: Ridge, context: int) -> None:
    """The prior of a context: mean and precision of theta_j given all others."""
    n_contexts, n_arms = ridge.offset.shape
    n_features, penalty = ridge.features.shape[1], prior.scale[PENALTY]
    known, others, covariance = prior.inverse[_ALL], prior.inverse[_ONE], prior.inverse[_ONE_INVERSE]
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            others[i, l] = known[i, l] - penalty * _shared(prior, context, i, l)
    invert(others, ridge.scratch[0], covariance)
    for a in range(n_arms):
        total = 0.0
        for i in range(n_features):
            for l in range(n_features):  # noqa: E741
                mean = prior.pull[n_contexts, l] - prior.pull[context, l]
                total += ridge.features[a, i] * covariance[i, l] * mean
        ridge.offset[context, a] = total + ridge.effect[context, a] if deviates(ridge) else total
    for i in range(n_features):
        covariance[i, i] += 1.0 / penalty
    invert(covariance, ridge.scratch[0], ridge.precision[context])


@kernel
def _shared(prior: Prior, context: int, i: int, l: int) -> float:  # noqa: E741
    """I - lambda V^-1: 0 where the context has no data, near 1 where it has many."""
    return (1.0 if i == l else 0.0) - prior.scale[PENALTY] * prior.inverse[context, i, l]


@shared
def _spread(prior: Prior, ridge: Ridge, noise: float, penalty: float) -> float:
    """omega^2 by one EM step: the mean square of theta_j - mu, with what is not known of either."""
    n_contexts, n_features = prior.sigma.size, prior.pull.shape[1]
    mean, covariance = prior.inverse[_ONE_INVERSE, 0], prior.inverse[_ALL_INVERSE]
    for i in range(n_features):
        mean[i] = 0.0
        for l in range(n_features):  # noqa: E741
            mean[i] += covariance[i, l] * prior.pull[n_contexts, l]
    total, alike = SPREAD_DEGREES * SPREAD_GUESS * prior.scale[RANGE], -1.0
    for j in range(n_contexts):
        if n_contexts <= ADDED_ONE_BY_ONE or ridge.is_touched[j] != 0:
            total = _add_spread(prior, j, noise, penalty, total)
        else:
            alike = alike if alike >= 0.0 else _add_spread(prior, j, noise, penalty, 0.0)
            total += alike
    return total / (n_contexts * n_features + SPREAD_DEGREES)


@kernel
def _add_spread(prior: Prior, context: int, noise: float, penalty: float, total: float) -> float:
    """The total with what one context adds to it."""
    n_features = prior.pull.shape[1]
    mean, covariance = prior.inverse[_ONE_INVERSE, 0], prior.inverse[_ALL_INVERSE]
    for i in range(n_features):
        away = prior.pull[context, i] / penalty
        total += noise * prior.inverse[context, i, i]
        for l in range(n_features):  # noqa: E741
            away -= _shared(prior, context, i, l) * mean[l]
        if n_features >= MANY_FEATURES:
            total += noise * _shared_variance(prior, context, i, prior.inverse[_ONE, 0])
        else:
            for l in range(n_features):  # noqa: E741
                for p in range(n_features):
                    total += noise * _shared(prior, context, i, l) * covariance[l, p] * _shared(prior, context, p, i)
        total += away * away
    return total


@shared
def _shared_variance(prior: Prior, context: int, i: int, row: Floats) -> float:
    """One element of the diagonal of S Cov(mu) S, for S = I - lambda V^-1; `row` is scratch."""
    covariance = prior.inverse[_ALL_INVERSE]
    for p in range(row.size):
        row[p] = 0.0
    for l in range(row.size):  # noqa: E741
        times = _shared(prior, context, i, l)
        for p in range(row.size):
            row[p] += times * covariance[l, p]
    total = 0.0
    for p in range(row.size):
        total += row[p] * _shared(prior, context, p, i)
    return total


@rare
def share_cells(prior: Prior, ridge: Ridge) -> None:
    """The same without features: the mean of an arm given all contexts but one, around the mean of all arms."""
    n_contexts, n_arms = ridge.offset.shape
    noise, penalty = prior.scale[NOISE], prior.scale[PENALTY]
    least = noise / prior.scale[RANGE]
    n, reward = 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += ridge.weight[j, a]
            reward += ridge.target[j, a]
    overall = reward / n if n > 0.0 else 0.0
    total = SPREAD_DEGREES * SPREAD_GUESS * prior.scale[RANGE]
    for a in range(n_arms):
        known, mean_of = least, least * overall
        for j in range(n_contexts):
            share = 1.0 / (1.0 + ridge.weight[j, a] / penalty)  # lambda V^-1
            known += penalty * (1.0 - share)
            mean_of += share * ridge.target[j, a]
        for j in range(n_contexts):
            share = 1.0 / (1.0 + ridge.weight[j, a] / penalty)
            away = share * ridge.target[j, a] / penalty - (1.0 - share) * mean_of / known
            total += away * away + noise * (share / penalty + (1.0 - share) * (1.0 - share) / known)
            others = max(known - penalty * (1.0 - share), least)
            ridge.offset[j, a] = (mean_of - share * ridge.target[j, a]) / others
            ridge.precision[j, a, 0] = 1.0 / (1.0 / penalty + 1.0 / others)
    prior.scale[SPREAD] = total / (n_contexts * n_arms + SPREAD_DEGREES)


@shared
def measure_noise(prior: Prior, tally: Floats, doubts: bool) -> float:
    """Variance inside cells, pooled and per context (shrunk to the pooled one); returns the mean square of rewards.

    `doubts`: while all answers are alike the noise is as it may be, and not next to nothing. Where contexts share a
    line, V would be all but singular, and what they share be learned from rounding.
    """
    _, n_contexts, n_arms = tally.shape
    n, reward, square, inside, degrees = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            if tally[COUNT, j, a] > 0.0:
                n += tally[COUNT, j, a]
                reward += tally[REWARD, j, a]
                square += tally[SQUARE, j, a]
                inside += max(0.0, tally[SQUARE, j, a] - tally[REWARD, j, a] * tally[REWARD, j, a] / tally[COUNT, j, a])
                degrees += max(0.0, tally[COUNT, j, a] - 1.0)
    if square == 0.0:
        if prior.scale[IS_SET] == ANEW:
            prior.scale[NOISE], prior.scale[MEAN_SQUARE] = 1.0, 0.0
            for j in range(n_contexts):
                prior.sigma[j] = 1.0
        return 0.0
    second_moment = square / n
    overall = max(square / n - (reward / n) * (reward / n), 0.0)  # all that there is to go by at first
    noise, doubt = (inside + overall) / (degrees + 1.0), (inside + second_moment) / (degrees + 1.0)
    if noise < NOISE_FLOOR * second_moment:
        noise = doubt if doubts else NOISE_FLOOR * second_moment
    prior.scale[NOISE], prior.scale[DOUBT], prior.scale[MEAN_SQUARE] = noise, doubt, second_moment
    for j in range(n_contexts):
        mine, mine_degrees = CONTEXT_DEGREES * noise, CONTEXT_DEGREES
        for a in range(n_arms):
            if tally[COUNT, j, a] > 0.0:
                mine += max(0.0, tally[SQUARE, j, a] - tally[REWARD, j, a] * tally[REWARD, j, a] / tally[COUNT, j, a])
                mine_degrees += max(0.0, tally[COUNT, j, a] - 1.0)
        prior.sigma[j] = math.sqrt(mine / mine_degrees)
    return second_moment


@shared
def rebuild(ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """The sums of the ridge, for features that are thinned."""
    _, n_contexts, n_arms = tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            thin = thinning[j, a]
            ridge.weight[j, a] = thin * thin * tally[COUNT, j, a]
            ridge.target[j, a] = thin * tally[REWARD, j, a]
            if tally[COUNT, j, a] > 0.0:
                ridge.is_touched[j] = 1
