"""exploration * sigma_j sqrt(log(e + n ||f_a||^2)): in units of the measured noise, by how many it is for.

n is how many of this context are expected over the whole campaign, and 1 / ||f_a||^2 is how many answers what is known
of the arm is worth (norms are in units of the noise). To learn more of an arm pays while those whom it is for outnumber
what is known, and no longer: the thought of MOSS (Audibert and Bubeck 2009), for a posterior in place of counts. Beside
a bonus that grows with the logarithm of time it tries more at first, when there is most to gain from it.

A handful of answers is no measure of noise, and a single one has none: here, norms are in units of the noise as it may
be while few answers tell (see `doubt`), or a first answer would seem to teach all that there is to know.
"""

from __future__ import annotations

import math

from doral._kernel import kernel
from doral.engine.state import State
from doral.estimators.shrinkage import DOUBT, NOISE
from doral.pacing import share_of


@kernel
def bonus(state: State, context: int) -> float:
    return state.confidence.exploration * state.prior.sigma[context]


@kernel
def stretch(state: State, context: int, norm: float) -> float:
    n = share_of(state.demand, context) * state.now[0].horizon
    noise = state.prior.scale[NOISE] / state.prior.scale[DOUBT]
    return math.sqrt(math.log(math.e + n * norm * norm * noise))
