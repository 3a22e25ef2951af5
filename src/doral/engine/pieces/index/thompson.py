"""Thompson sampling: for the one who is here, theta_j is drawn from its posterior; for all others its mean stands.

With one draw, what is done follows from it, and the probability of that is an integral over the posterior. So several
are drawn, each says what it would do (and with which probability, where the budget tosses a coin), and one of these is
done: as likely as before, but now the probability of what was done, given the draws, is a number that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral._arrays import Ints
from doral._kernel import kernel
from doral.engine.hooks import on_scored
from doral.engine.pieces.index.optimism import keep_allowed
from doral.engine.state import State
from doral.errors import InvalidValue
from doral.estimators.ridge import draw

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions


class ThompsonMemory(NamedTuple):
    draws: int  # for the one who is here
    number: Ints  # (1,) of the draw that counts now


def memory(blueprint: Blueprint) -> ThompsonMemory:
    return ThompsonMemory(blueprint.options.draws, np.zeros(1, dtype=np.int64))


def check(options: PolicyOptions) -> None:
    if options.sampling == "thompson" and options.prior == "fixed":
        raise InvalidValue(
            "sampling", options.sampling, "is in units of measured noise: needs prior='noise' or 'shared'"
        )


@kernel
def draws(state: State) -> int:
    return state.thompson.draws


@kernel
def on_draw(state: State, number: int) -> None:
    state.thompson.number[0] = number


@kernel
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = weight_j * tau_a * (estimate + noise of the draw)."""
    estimate, tau, noise = state.ridge.estimate[context], state.tau[context], state.ridge.shadow
    barrier = state.barrier[state.contexts.size if restricted else context]
    values, weight, scale = state.values, state.contexts[context].weight, 0.0
    if is_here:
        scale = state.confidence.exploration * state.prior.sigma[context]
        draw(state.ridge, context, state.coin.seed, state.coin.run, state.now[0].round, state.thompson.number[0])
    for a in range(values.size):
        values[a] = weight * tau[a] * (estimate[a] + scale * noise[a]) + barrier[a]
    if restricted:
        keep_allowed(state)
    on_scored(state, context, restricted, scale, noise)
