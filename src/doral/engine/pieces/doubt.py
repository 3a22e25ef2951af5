"""Before a context is given up as worthless: what if the little that is known of it misleads?

Open decisions narrow the bonus as if they were answered, so that the next one goes to another arm. That is right for
the choice between arms. It says nothing on whether any of them is worth its cost: for that, only answers count. And a
handful of answers is no measure of noise: a single one differs from nothing. Where no arm is worth anything by the
index, each is therefore valued once more, with the answers alone, and with a noise for which one more observation of
the size of the rewards themselves stands in:

    noise = (variance inside cells + mean square of rewards) / (degrees of freedom + 1)

Around what doing nothing brings, with a variance as large as rewards are, the estimate is shrunk as far as this noise
asks for. Its doubt grows with the logarithm of all who have arrived, whether or not they were served, for who is
skipped teaches nothing: a context is never given up for good, and what is harmful is tried ever more rarely. The index
still says which arm.

An arm that is thought to do harm is tried for what may be learned, and that is worth something only to those who are
still to come. Where no arm of a context is thought to bring anything, whatever its index says, it is therefore served
only as far as the same question is answered with a doubt that knows the end. An arm with n answers and N more to come
is tried while it is within sqrt(log(1 + N / n)) errors of nothing. That is a little farther than optimal stopping goes,
as dynamic programming finds it for one arm with normal rewards against nothing: 2.15 errors and not 1.99 for N = 100 n,
1.55 and not 1.24 for 10 n, 0.83 and not 0.60 for n; and at the end no doubt is left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats, Ints
from doral._kernel import kernel, rare
from doral.engine.hooks import baseline
from doral.engine.pieces.bonus import IN_UNITS_OF_NOISE
from doral.engine.state import State, mark_stale
from doral.estimators.shrinkage import DOUBT, MEAN_SQUARE
from doral.pacing import NO_ARM

# Rows of the memory: 1 where no arm of the context is worth anything, by its index or as it is thought to be; and the
# round in which one of the context last arrived.
_IS_WORTHLESS, _LAST_ROUND = 0, 1

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """Thompson sampling draws anew for everybody, who knows the truth has no doubt, and other bonuses are not in units
    of measured noise.
    """
    draws_nothing = options.sampling not in ("thompson", "oracle")
    return options.bonus in IN_UNITS_OF_NOISE and draws_nothing and options.pacing == "lp"


def memory(blueprint: Blueprint) -> Ints:
    """(2, rows)"""
    return np.zeros((2, blueprint.n_rows), dtype=np.int64)


@kernel
def is_promising(state: State, context: int, restricted: bool) -> bool:
    """Whether some arm in play is thought to bring more than nothing; before any reward, nobody knows."""
    if not state.prior.scale[MEAN_SQUARE] > 0.0:
        return True
    barrier = state.barrier[state.contexts.size if restricted else context]
    weight, nothing = state.contexts[context].weight, baseline(state, context)
    tau, estimate = state.tau[context], state.ridge.estimate[context]
    for a in range(state.allowed.size):
        if weight * tau[a] * estimate[a] > nothing and barrier[a] == 0.0 and not (restricted and state.allowed[a] == 0):
            return True
    return False


@kernel
def before_spending(state: State, context: int) -> None:
    """One more has arrived: the doubt has grown, and there is one less to come."""
    state.doubt[_LAST_ROUND, context] = state.now[0].round
    if state.doubt[_IS_WORTHLESS, context] != 0:
        mark_stale(state, context)


@kernel
def on_valued(state: State, context: int, restricted: bool, is_worthless: bool) -> None:
    if not restricted:
        state.doubt[_IS_WORTHLESS, context] = is_worthless
    if is_worthless and not is_promising(state, context, restricted):
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
    hope = hopes[hopeful] if best <= 0.0 else min(best, hopes[hopeful])  # never more than the index says
    for a in range(n_arms):
        values[a] = (values[a] - best) + hope


@kernel
def _set_hopes(state: State, context: int, hopes: Floats) -> None:
    """hopes[a] = what an arm may be worth, beyond doing nothing, in the light of the answers alone."""
    ridge, weight, tau = state.ridge, state.contexts[context].weight, state.tau[context]
    nothing, to_come = baseline(state, context), _to_come(state, context)
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
        doubt = min(doubts, math.log1p(to_come * ridge.norm_squared[context, a]))
        width = state.confidence.exploration * math.sqrt(doubt * keep * error)
        hopes[a] = keep * (weight * tau[a] * ridge.estimate[context, a] - nothing) + weight * tau[a] * width


@kernel
def _to_come(state: State, context: int) -> float:
    """How many of this context are still expected, by the pace so far."""
    last, horizon = state.doubt[_LAST_ROUND, context], state.now[0].horizon
    if last == 0:
        return float(horizon)
    return state.contexts[context].arrivals * (max(0, horizon - last) / last)
