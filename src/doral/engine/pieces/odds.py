"""With which probability the policy does what, for the one who is here: a distribution over arms and skipping.

Most policies either do one thing or toss one coin, and know the probability of what they have done. Where Thompson
sampling mixes what several draws say, or exploration asks what else might have been done, all of it is written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Floats
from doral._kernel import kernel
from doral.engine.state import State

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.sampling == "thompson" or options.explore > 0.0


def memory(blueprint: Blueprint) -> Floats:
    """(1 + A,) to skip, which is arm -1, and each arm."""
    return np.zeros(1 + blueprint.problem.n_arms)


@kernel
def forget_odds(state: State) -> None:
    for option in range(state.odds.size):
        state.odds[option] = 0.0


@kernel
def on_weighed(state: State, arm: int, probability: float) -> None:
    state.odds[arm + 1] += probability


@kernel
def odds_of(state: State, arm: int) -> float:
    return min(1.0, state.odds[arm + 1])
