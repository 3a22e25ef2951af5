"""Stage 2, learning: the index gamma_t of an arm, and what the arm is worth."""

from __future__ import annotations

import math

from doral._jit import jit
from doral.estimators.ridge import draw
from doral.pacing import NO_ARM
from doral.policies.state import BONUS_CALIBRATED, BONUS_PRINTED, Rules, State


@jit
def bonus(state: State, rules: Rules, context: int) -> float:
    """What multiplies ||f_a|| in the norm of V^-1.

    Eq. (delayed LinUCB): scale * (2 f_t + bias). Calibrated: scale * sigma_j sqrt(log(e + n)), in units of the measured
    noise, so that it means the same whatever the scale of the rewards.
    """
    n = state.pulls[context]
    if rules.bonus == BONUS_CALIBRATED:
        return rules.exploration * state.prior.sigma[context] * math.sqrt(math.log(math.e + n))
    n_features = state.ridge.features.shape[1]
    scaled_penalty = n_features * rules.penalty
    confidence = rules.delta
    if rules.bonus == BONUS_PRINTED:
        n = float(state.now[0].round)
        confidence = rules.penalty
    f_t = math.sqrt(rules.penalty) + math.sqrt(
        max(0.0, 2.0 * math.log(1.0 / confidence) + n_features * math.log((scaled_penalty + n) / scaled_penalty))
    )
    bias = 0.0
    if rules.with_bias:
        window, norm = state.window[context], state.ridge.norm[context]
        for a in range(window.size):
            bias += window[a] * norm[a]
    return rules.exploration * (2.0 * f_t + bias)


@jit
def _set_scores(state: State, rules: Rules, context: int, sampled: bool) -> None:
    """values[a] = weight_j * tau_a * gamma_t(a), gamma[a] = gamma_t(a).

    With an uncertain tau the two errors are independent: their shares of the value add in squares.
    """
    estimate, offset = state.ridge.estimate[context], state.prior.offset
    tau, error, barrier = state.tau[context], state.tau_error[context], state.barrier
    values, gamma, weight = state.values, state.gamma, state.weights[context]
    if rules.thompson:
        if sampled:
            draw(state.ridge, context, rules.seed, rules.run, state.now[0].round)
        scale = rules.exploration * state.prior.sigma[context] if sampled else 0.0
        for a in range(values.size):
            gamma[a] = estimate[a] + offset[a] + (scale * state.ridge.shadow[a] if sampled else 0.0) + barrier[a]
            values[a] = weight * tau[a] * gamma[a] + barrier[a]
        return
    scale = bonus(state, rules, context)
    norm = state.wide.norm[context] if rules.counts_pending else state.ridge.norm[context]
    if rules.return_optimism > 0.0:
        doubt = rules.return_optimism * math.sqrt(math.log(math.e + state.pulls[context]))
        for a in range(values.size):
            mean = estimate[a] + offset[a]
            of_reward = tau[a] * scale * norm[a]
            of_return = doubt * error[a] * mean
            gamma[a] = mean + scale * norm[a] + barrier[a]
            values[a] = weight * (tau[a] * mean + math.sqrt(of_reward * of_reward + of_return * of_return)) + barrier[a]
        return
    for a in range(values.size):
        gamma[a] = estimate[a] + offset[a] + scale * norm[a] + barrier[a]
        values[a] = weight * tau[a] * (estimate[a] + offset[a] + scale * norm[a]) + barrier[a]


@jit
def set_values(state: State, rules: Rules, context: int, restricted: bool, sampled: bool) -> int:
    """The values of the arms in play, -inf for the others; returns the context's arm.

    `restricted`: only arms of `allowed`. `sampled`: with the noise of Thompson sampling, for the one who is here.
    """
    _set_scores(state, rules, context, sampled)
    values, gamma = state.values, state.gamma
    if restricted:
        for a in range(values.size):
            if state.allowed[a] == 0:
                gamma[a] = -math.inf
                values[a] = -math.inf
    best = 0
    if rules.weighted_choice:
        for a in range(1, values.size):
            if values[a] > values[best]:
                best = a
    else:  # printed: the arm is fixed by the unweighted index, and only it is valued
        for a in range(1, values.size):
            if gamma[a] > gamma[best]:
                best = a
        for a in range(values.size):
            if a != best:
                values[a] = -math.inf
    return best if values[best] > -math.inf else NO_ARM
