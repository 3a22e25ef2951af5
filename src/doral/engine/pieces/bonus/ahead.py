"""exploration * sigma_j psi(n ||f_a||^2): in units of the measured noise, by how many it is for.

n is how many of this context are expected over the whole campaign, and 1 / ||f_a||^2 is how many answers what is known
of the arm is worth (norms are in units of the noise). To learn more of an arm pays while those whom it is for outnumber
what is known, and no longer. For s tries to come for each answer that there is,

    psi(s) = sqrt(log(1 + s / 2.3))

is how many errors below nothing an arm with normal rewards may be for one more try to be worth it, as dynamic
programming finds it (to within 0.2 for s from 1 to 100). Beside a bonus that grows with the logarithm of time it tries
more at first, when there is most to gain from it, and less later: the thought of MOSS (Audibert and Bubeck 2009), for a
posterior in place of counts.

A handful of answers is no measure of noise, and a single one has none: here, norms are in units of the noise as it may
be while few answers tell (see `doubt`), or a first answer would seem to teach all that there is to know.

psi moves slowly, and takes longer than all else that a value is made of: it is worked out with stock.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.engine.hooks import kin, norm_row
from doral.engine.state import State
from doral.estimators.ridge import padded
from doral.estimators.shrinkage import DOUBT, NOISE

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint


def memory(blueprint: Blueprint) -> Floats:
    """(rows, A+) `stretch` of every arm, when stock was taken last."""
    return np.ones((blueprint.n_rows, padded(blueprint.problem.n_arms)))


@kernel
def bonus(state: State, context: int) -> float:
    return state.confidence.exploration * state.prior.sigma[context]


@kernel
def stretch(state: State, context: int, norm: float) -> float:
    noise = state.prior.scale[NOISE] / state.prior.scale[DOUBT]
    return _psi(kin(state, context) * norm * norm * noise)


@kernel
def _psi(s: float) -> float:
    return math.sqrt(math.log1p(s / 2.3))


@kernel
def stretched(state: State, context: int, arm: int, norm: float) -> float:
    return norm * state.ahead[context, arm]


@rare
def on_renewed(state: State) -> None:
    for j in range(state.tally.shape[1]):
        on_revalued(state, j)


@kernel
def on_revalued(state: State, row: int) -> None:
    norm = state.ridge.norm[norm_row(state, row)]
    for a in range(state.allowed.size):
        state.ahead[row, a] = stretch(state, row, norm[a])
