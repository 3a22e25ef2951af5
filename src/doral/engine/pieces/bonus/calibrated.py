"""scale * sigma_j sqrt(log(e + n)): in units of the measured noise, it means the same whatever the scale of rewards."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from doral._kernel import kernel
from doral.engine.pieces.bonus import IN_UNITS_OF_NOISE
from doral.engine.state import State
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions


def check(options: PolicyOptions) -> None:
    asks = options.sampling != "thompson" or options.dropping == "certified"
    if asks and options.features == "none" and options.bonus not in IN_UNITS_OF_NOISE:
        raise InvalidValue(
            "features", options.features, "has only a bonus in units of noise: bonus='calibrated', 'ahead' or 'to_come'"
        )
    if options.bonus in IN_UNITS_OF_NOISE and options.prior == "fixed":
        raise InvalidValue("bonus", options.bonus, "is in units of measured noise: needs prior='noise' or 'shared'")


@kernel
def bonus(state: State, context: int) -> float:
    n = state.contexts[context].pulls
    return state.confidence.exploration * state.prior.sigma[context] * math.sqrt(math.log(math.e + n))
