"""Printed: the arm of a context maximises the index alone, and only that arm is valued."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from doral._arrays import Floats
from doral._kernel import kernel
from doral.engine.hooks import stretched
from doral.engine.state import State
from doral.pacing import first_best

if TYPE_CHECKING:
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


@dataclass(frozen=True, kw_only=True)
class ChoiceOptions:
    """How the arm of a context is chosen."""

    choice: Literal["weighted", "unweighted"] = "weighted"


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.choice == "unweighted"


@kernel
def on_scored(state: State, context: int, restricted: bool, scale: float, norm: Floats) -> None:
    estimate, gamma, values = state.ridge.estimate[context], state.gamma, state.values
    barrier = state.barrier[state.contexts.size if restricted else context]
    for a in range(gamma.size):
        gamma[a] = estimate[a] + scale * stretched(state, context, a, norm[a]) + barrier[a]
    if restricted:
        for a in range(state.allowed.size):
            if state.allowed[a] == 0:
                gamma[a] = -math.inf
    best = first_best(gamma)
    for a in range(values.size):
        if a != best:
            values[a] = -math.inf
