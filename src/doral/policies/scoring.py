"""Stage 2, learning: the index gamma_t of an arm, and what the arm is worth."""

from __future__ import annotations

import math

from doral._jit import jit_inner
from doral.estimators.ridge import draw
from doral.pacing import first_best
from doral.policies.state import BONUS_CALIBRATED, BONUS_PRINTED, Rules, State


@jit_inner
def bonus(state: State, rules: Rules, context: int) -> float:
    """What multiplies ||f_a|| in the norm of V^-1.

    Eq. (delayed LinUCB): scale * (2 f_t + bias). Calibrated: scale * sigma_j sqrt(log(e + n)), in units of the measured
    noise, so that it means the same whatever the scale of the rewards.
    """
    n = state.contexts[context].pulls
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


@jit_inner
def _set_scores(state: State, rules: Rules, context: int, restricted: bool, sampled: bool) -> None:
    """values[a] = weight_j * tau_a * gamma_t(a); where the choice is not weighted, gamma[a] = gamma_t(a) too.

    With an uncertain tau the two errors are independent: their shares of the value add in squares.
    """
    estimate, tau = state.ridge.estimate[context], state.tau[context]
    barrier = state.barrier[state.contexts.size if restricted else context]  # the rival may be missing today
    values, gamma, weight = state.values, state.gamma, state.contexts[context].weight
    norm = state.ridge.norm[context + (state.contexts.size if rules.counts_pending else 0)]
    scale = bonus(state, rules, context)
    if rules.thompson:
        scale = rules.exploration * state.prior.sigma[context] if sampled else 0.0
        norm = state.ridge.shadow
        if sampled:
            draw(state.ridge, context, rules.seed, rules.run, state.now[0].round)
    if rules.return_optimism > 0.0:
        error = state.tau_error[context]
        doubt = rules.return_optimism * math.sqrt(math.log(math.e + state.contexts[context].pulls))
        for a in range(values.size):
            of_reward = tau[a] * scale * norm[a]
            of_return = doubt * error[a] * estimate[a]
            both = math.sqrt(of_reward * of_reward + of_return * of_return)
            values[a] = weight * (tau[a] * estimate[a] + both) + barrier[a]
    else:
        for a in range(values.size):
            values[a] = weight * tau[a] * (estimate[a] + scale * norm[a]) + barrier[a]
    if not rules.weighted_choice:
        for a in range(values.size):
            gamma[a] = estimate[a] + scale * norm[a] + barrier[a]


@jit_inner
def set_values(state: State, rules: Rules, context: int, restricted: bool, sampled: bool) -> None:
    """The values of the arms in play, -inf for the others.

    `restricted`: only arms of `allowed`. `sampled`: with the noise of Thompson sampling, for the one who is here.
    """
    _set_scores(state, rules, context, restricted, sampled)
    values, gamma = state.values, state.gamma
    if restricted:
        for a in range(state.allowed.size):
            if state.allowed[a] == 0:
                values[a] = -math.inf
                gamma[a] = -math.inf
    if not rules.weighted_choice:  # printed: the arm is fixed by the unweighted index, and only it is valued
        best = first_best(gamma)
        for a in range(values.size):
            if a != best:
                values[a] = -math.inf
