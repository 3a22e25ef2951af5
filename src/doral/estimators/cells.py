"""Where features may be wrong: what arms have beyond them, and how far single cells deviate, learned from the data.

    reward = <theta_j, f_a> + b_a + d_ja + noise,     b_a ~ N(0, s_b^2),     d_ja ~ N(0, eta^2)

theta_j is as in `shrinkage`. With right features both variances go to 0 and all is as there; with wrong ones, arms are
what they have in common over contexts (b) and what is special in one of them (d); with a constant for a feature,
theta_j is what contexts differ by, and this is the model of main effects and deviations.

Effects are found by backfitting, which converges: a cell less the line and its deviation says what its arm has. d_ja
scales with `reach`, the size of what the arm brings, so that cells of an arm differ in proportion to it.

Both variances move by a step of Fisher scoring at each calibration: to where residuals are as large as they should be.
Unlike an EM step it reaches 0, and leaves it again. One more cell, and one more arm, of the size that spreads are
thought to have stand in while there are no data. The share h of its own answers in what the line says of a cell counts:
a residual is expected to be 1 - h of its variance.

Where a reward is nothing or always the same, as a conversion is, the noise of a cell follows the rate of its arm and
its own mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from doral._arrays import Floats
from doral.compiled import kernel, rare
from doral.estimators.ridge import COUNT, REWARD, SQUARE, Ridge, refactor_rows
from doral.estimators.scoring import above_zero
from doral.estimators.shrinkage import (
    ANEW,
    ANEW_STEPS,
    DEVIATION,
    EFFECT,
    IS_SET,
    NOISE,
    PENALTY,
    RANGE,
    SPREAD,
    SPREAD_FLOOR,
    SPREAD_GUESS,
    SUCCESS,
    Prior,
    feature_size,
    measure_noise,
    rebuild,
    share,
    share_cells,
    start_over,
)

FEW = 4.0  # successes, or failures: the square of two standard errors, within which a rate may be twice as high, or 0
REACH_BELIEF = 1.0  # the average size of arms counts like so much of the size of each
ALIKE = 1e-9  # relative: rewards that differ by less are the same


@rare
def calibrate_cells(prior: Prior, ridge: Ridge, tally: Floats, thinning: Floats) -> None:
    """As `shrinkage.calibrate`, with effects and deviations."""
    second_moment = measure_noise(prior, tally, False)
    rebuild(ridge, tally, thinning)
    if second_moment > 0.0:
        scale_of_means = _scale_of_means(prior, tally, second_moment)
        prior.scale[RANGE] = scale_of_means / feature_size(ridge)
        steps = ANEW_STEPS if prior.scale[IS_SET] == ANEW else 1
        if prior.scale[IS_SET] != 1.0:
            prior.scale[SPREAD], prior.scale[IS_SET] = SPREAD_GUESS * prior.scale[RANGE], 1.0
            prior.scale[DEVIATION] = prior.scale[EFFECT] = SPREAD_GUESS * scale_of_means
            _forget_effects(ridge, prior.scale[EFFECT])
        prior.scale[SPREAD] = max(prior.scale[SPREAD], SPREAD_FLOOR * prior.scale[RANGE])
        if ridge.features.shape[1] > 0:
            _set_reach(prior, ridge, tally)
        for _ in range(steps):
            prior.scale[PENALTY] = prior.scale[NOISE] / prior.scale[SPREAD]
            if ridge.features.shape[1] > 0:
                _set_noisiness(prior, ridge, tally)
                _set_deviations(prior, ridge)
                share(prior, ridge)
                refactor_rows(ridge, 0, tally.shape[1])
                _follow_residuals(prior, ridge, SPREAD_GUESS * scale_of_means, second_moment)
            else:
                share_cells(prior, ridge)
            prior.scale[SPREAD] = min(prior.scale[SPREAD], second_moment / feature_size(ridge))
    elif prior.scale[IS_SET] == ANEW:
        start_over(prior, ridge)
    if ridge.features.shape[1] == 0 or not second_moment > 0.0:
        refactor_rows(ridge, 0, tally.shape[1])


@rare
def _scale_of_means(prior: Prior, tally: Floats, second_moment: float) -> float:
    """What the mean of an unknown arm may be, squared: twice as much as means are so far, and no more than rewards are.

    The mean square of means is that of rewards less the noise; of that, the less is known the fewer answers cells have.
    Where conversions are rare, rewards say nothing of this: they are 1 however small the rates are.
    """
    n = 0.0
    for j in range(tally.shape[1]):
        for a in range(tally.shape[2]):
            n += tally[COUNT, j, a]
    noise = min(prior.scale[NOISE], second_moment)
    of_means = (second_moment - noise) + noise * min(1.0, tally.shape[1] * tally.shape[2] / n)
    return min(second_moment, 4.0 * of_means)


@rare
def _forget_effects(ridge: Ridge, variance: float) -> None:
    for j in range(ridge.effect.shape[0]):
        for a in range(ridge.effect.shape[1]):
            ridge.effect[j, a], ridge.effect_variance[j, a] = 0.0, variance


@rare
def _set_noisiness(prior: Prior, ridge: Ridge, tally: Floats) -> None:
    """phi: p (c - p) of a cell per noise, where rewards are 0 or c; else 1."""
    _, n_contexts, n_arms = tally.shape
    n, reward, square = 0.0, 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += tally[COUNT, j, a]
            reward += tally[REWARD, j, a]
            square += tally[SQUARE, j, a]
    success = square / reward if reward > 0.0 else 0.0
    is_binary = success > 0.0 and reward < n * success * (1.0 - ALIKE)  # else there are no failures
    for j in range(n_contexts):
        for a in range(n_arms):
            if abs(tally[SQUARE, j, a] - success * tally[REWARD, j, a]) > ALIKE * tally[SQUARE, j, a]:
                is_binary = False
    prior.scale[SUCCESS] = success if is_binary else 0.0
    if not is_binary:
        for j in range(n_contexts):
            for a in range(n_arms):
                ridge.noisiness[j, a] = 1.0
        return
    # Who had bad luck is not quieter for it: as many answers as show FEW of the rarer outcome at the common rate speak
    # for that rate.
    common = reward / n
    common_weight = FEW * success / min(common, success - common)
    for j in range(n_contexts):
        prior.sigma[j] = math.sqrt(prior.scale[NOISE])  # all noise is that of a coin: contexts have none of their own
    for a in range(n_arms):
        of_arm, tries = common_weight * common, common_weight
        for j in range(n_contexts):
            of_arm += tally[REWARD, j, a]
            tries += tally[COUNT, j, a]
        rate = of_arm / tries
        rate_weight = FEW * success / min(rate, success - rate)
        for j in range(n_contexts):
            weight, estimate = tally[COUNT, j, a], min(max(ridge.estimate[j, a], 0.0), success)
            mean = (weight * estimate + rate_weight * rate) / (weight + rate_weight)
            ridge.noisiness[j, a] = mean * (success - mean) / prior.scale[NOISE]


@rare
def _set_reach(prior: Prior, ridge: Ridge, tally: Floats) -> None:
    """Set how large deviations of an arm are relative to others: as large as what it brings."""
    _, n_contexts, n_arms = tally.shape
    total, n = 0.0, 0.0
    for a in range(n_arms):
        reward, tries = 0.0, 0.0
        for j in range(n_contexts):
            tries += tally[COUNT, j, a]
            reward += tally[REWARD, j, a]
        ridge.reach[a] = -1.0
        if tries > 0.0:
            mean = reward / tries
            ridge.reach[a] = mean * mean + prior.scale[NOISE] / tries
            total += ridge.reach[a]
            n += 1.0
    average = total / n
    for a in range(n_arms):
        size = ridge.reach[a] / average if ridge.reach[a] >= 0.0 else 1.0
        ridge.reach[a] = math.sqrt((size + REACH_BELIEF) / (1.0 + REACH_BELIEF))


@rare
def _set_deviations(prior: Prior, ridge: Ridge) -> None:
    """kappa: the deviation itself, and what is not known of the effect of the arm."""
    for j in range(ridge.deviation.shape[0]):
        for a in range(ridge.deviation.shape[1]):
            deviation = prior.scale[DEVIATION] * ridge.reach[a] * ridge.reach[a]
            ridge.deviation[j, a] = (deviation + ridge.effect_variance[j, a]) / prior.scale[NOISE]


class _Residual(NamedTuple):
    """Of a cell that has answers, in units of the noise."""

    away: float  # the mean of its answers, from what the line says
    error: float  # the variance of that mean around the line
    rest: float  # 1 - h
    precision: float  # with which the cell tells the effect of its arm
    says: float  # that effect, by backfitting, times the precision


@kernel
def _residual(ridge: Ridge, context: int, arm: int, noise: float) -> _Residual:
    error = ridge.noisiness[context, arm] / ridge.weight[context, arm] + ridge.deviation[context, arm]
    rest = 1.0 - min(ridge.line_squared[context, arm] / error, 1.0 - 1e-9)
    away = ridge.target[context, arm] / ridge.weight[context, arm] - ridge.line[context, arm]
    own = ridge.effect_variance[context, arm] / noise
    precision = 1.0 / (
        max(error - own, ridge.noisiness[context, arm] / ridge.weight[context, arm]) + ridge.line_squared[context, arm]
    )
    return _Residual(away, error, rest, precision, precision * (away + ridge.effect[context, arm]))


@rare
def _follow_residuals(prior: Prior, ridge: Ridge, guess: float, most: float) -> None:
    """Effects, given all other contexts, and both variances; they hold from the next time on.

    No variance of means is larger than rewards are: where answers happen to be alike and the noise seems to be nothing,
    everything looks like a deviation.
    """
    n_contexts, n_arms = ridge.deviation.shape
    noise = prior.scale[NOISE]
    guess /= noise
    of_cells, of_arms = prior.scale[DEVIATION] / noise, prior.scale[EFFECT] / noise
    cell_score, cell_information = (guess - of_cells) / (guess * guess), 1.0 / (guess * guess)
    arm_score, arm_information = (guess - of_arms) / (guess * guess), 1.0 / (guess * guess)
    for a in range(n_arms):
        known, says, square = 0.0, 0.0, ridge.reach[a] * ridge.reach[a]
        for j in range(n_contexts):
            if ridge.weight[j, a] > 0.0:
                one = _residual(ridge, j, a, noise)
                unit = square / one.error  # of the variance of deviations, in the variance of this cell
                cell_score += unit * (one.away * one.away / (noise * one.error) - one.rest)
                cell_information += (one.rest * unit) * (one.rest * unit)
                known += one.precision
                says += one.says
        if known > 0.0:
            error, mean = of_arms + 1.0 / known, says / known
            arm_score += (mean * mean / (noise * error) - 1.0) / error
            arm_information += 1.0 / (error * error)
        _set_effect(ridge, a, known, says, of_arms, noise)
    deviation = noise * above_zero(of_cells + cell_score / cell_information, cell_information)
    effect = noise * above_zero(of_arms + arm_score / arm_information, arm_information)
    prior.scale[DEVIATION], prior.scale[EFFECT] = min(deviation, most), min(effect, most)


@rare
def _set_effect(ridge: Ridge, arm: int, known: float, says: float, of_arms: float, noise: float) -> None:
    """b_a for every context, as all others know it."""
    for j in range(ridge.deviation.shape[0]):
        others, they_say = known, says
        if ridge.weight[j, arm] > 0.0:
            own = _residual(ridge, j, arm, noise)
            others -= own.precision
            they_say -= own.says
        share_of = of_arms / (1.0 + of_arms * max(others, 0.0))
        ridge.effect[j, arm], ridge.effect_variance[j, arm] = share_of * they_say, noise * share_of
