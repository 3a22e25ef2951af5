"""Before a context is given up as worthless: what if the little that is known of it misleads?

Open decisions narrow the bonus as if they were answered, so that the next one goes to another arm. That is right for
the choice between arms. It says nothing on whether any of them is worth its cost: for that, only answers count. And a
handful of answers is no measure of noise: a single one differs from nothing. Where no arm is worth anything by the
index, each is therefore valued once more, with the answers alone, and with a noise for which one more observation of
the size of the rewards themselves stands in:

    noise = (variance inside cells + mean square of rewards) / (degrees of freedom + 1)

Around 0, with a variance as large as rewards are, the estimate is shrunk as far as this noise asks for. Its doubt
grows with the logarithm of all who have arrived, whether or not they were served, for who is skipped teaches nothing: a
context is never given up for good, and what is harmful is tried ever more rarely. The index still says which arm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats, Ints
from doral._kernel import kernel, rare
from doral.engine.state import State, mark_stale
from doral.estimators.shrinkage import DOUBT, MEAN_SQUARE
from doral.pacing import NO_ARM

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Thompson sampling draws anew for everybody, who knows the truth has no doubt, and other bonuses are not in units
    of measured noise.
    """
    return options.bonus == "calibrated" and options.sampling not in ("thompson", "oracle") and options.pacing == "lp"


def memory(blueprint: Blueprint) -> Ints:
    """(J,) 1: no arm of the context is worth anything by its index."""
    return np.zeros(blueprint.problem.n_contexts, dtype=np.int64)


@kernel
def before_spending(state: State, context: int) -> None:
    """One more has arrived: the doubt has grown."""
    if state.doubt[context] != 0:
        mark_stale(state, context)


@kernel
def on_valued(state: State, context: int, restricted: bool, is_worthless: bool) -> None:
    if not restricted:
        state.doubt[context] = is_worthless
    if is_worthless and state.prior.scale[MEAN_SQUARE] > 0.0:
        _reconsider(state, context, restricted)


@rare
def _reconsider(state: State, context: int, restricted: bool) -> None:
    """Raise the values of arms that may be worth something, all by as much: the best of them gets the highest hope."""
    values, hopes, n_arms = state.values, state.gamma, state.allowed.size
    barrier = state.barrier[state.contexts.size if restricted else context]
    _set_hopes(state, context, hopes)
    hopeful, first = NO_ARM, NO_ARM  # of whom most is hoped, and the first by the index of those who have hope
    for a in range(n_arms):
        if barrier[a] != 0.0 or (restricted and state.allowed[a] == 0) or not hopes[a] > 0.0:
            values[a] = -math.inf
            hopes[a] = -math.inf
        elif hopeful == NO_ARM or hopes[a] > hopes[hopeful]:
            hopeful = a
        if values[a] > -math.inf and (first == NO_ARM or values[a] > values[first]):
            first = a
    if hopeful == NO_ARM:
        return
    if first == NO_ARM:  # the index has chosen one arm, and for that there is no hope
        values[hopeful] = hopes[hopeful]
        return
    best = values[first]
    for a in range(n_arms):
        values[a] = (values[a] - best) + hopes[hopeful]


@kernel
def _set_hopes(state: State, context: int, hopes: Floats) -> None:
    """hopes[a] = what an arm may be worth in the light of the answers alone."""
    ridge, weight, tau = state.ridge, state.contexts[context].weight, state.tau[context]
    n_arms, n_features = ridge.features.shape
    noise, doubts = state.prior.scale[DOUBT], math.log(math.e + state.contexts[context].arrivals)
    sizes = 0.0
    for a in range(n_arms):  # hopes[a] = ||f_a||^2 for now
        hopes[a] = 1.0 if n_features == 0 else 0.0
        for i in range(n_features):
            hopes[a] += ridge.features[a, i] * ridge.features[a, i]
        sizes += hopes[a]
    for a in range(n_arms):
        size = hopes[a] * n_arms / sizes if sizes > 0.0 else 1.0
        spread, error = state.prior.scale[MEAN_SQUARE] * size, noise * ridge.norm_squared[context, a]
        keep = spread / (spread + error) if spread + error > 0.0 else 0.0
        width = state.confidence.exploration * math.sqrt(doubts * keep * error)
        hopes[a] = weight * tau[a] * (keep * ridge.estimate[context, a] + width)
