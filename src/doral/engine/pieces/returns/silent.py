"""No news and a reward of 0 look the same, so tau_a is the factor by which the rewards of an arm fall short."""

from __future__ import annotations

import math

from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.engine.hooks import noise_variance, thins
from doral.engine.state import State
from doral.estimators.shrinkage import COUNT, REWARD

FACTOR_PRIOR_SD = 0.3  # how far the factor of an arm is thought to be from 1


@kernel
def read_returns(state: State) -> None:
    _fit_factors(state.tally, state.ridge.estimate, noise_variance(state), state.tau, state.tau_error)
    if thins(state):
        n_contexts, n_arms = state.thinning.shape
        for j in range(n_contexts):
            for a in range(n_arms):
                state.thinning[j, a] = state.tau[j, a]


@kernel
def on_corrected(state: State) -> None:
    """Factors are fitted to rewards: anew with the next arrival; in a large problem, when it is due."""
    if state.limits.stock_rounds == 0 and state.now[0].racing == 0:
        state.now[0].must_read = 1


@rare
def _fit_factors(tally: Floats, estimate: Floats, noise: float, factors: Floats, errors: Floats) -> None:
    """E[reward seen by the deadline] = factor_a <theta_j, f_a>: given theta, the factor is a regression on the
    contexts, with a prior around 1; given the factors, theta is the ridge. The two are fitted in turn.
    """
    _, n_contexts, n_arms = tally.shape
    for a in range(n_arms):
        top = bottom = 1.0 / (FACTOR_PRIOR_SD * FACTOR_PRIOR_SD)
        for j in range(n_contexts):
            top += tally[REWARD, j, a] * estimate[j, a] / noise
            bottom += tally[COUNT, j, a] * estimate[j, a] * estimate[j, a] / noise
        for j in range(n_contexts):
            factors[j, a] = min(max(top / bottom, 0.01), 2.0)
            errors[j, a] = math.sqrt(1.0 / bottom)
