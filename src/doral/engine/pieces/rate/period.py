"""The horizon is cut into equal periods: what is left of the period's equal share of the budget, and of those before
it, per remaining round of the period.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from doral._kernel import kernel
from doral.engine.hooks import refunds
from doral.engine.state import State

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint


class PeriodMemory(NamedTuple):
    rounds: int  # of one period


def memory(blueprint: Blueprint) -> PeriodMemory:
    return PeriodMemory(max(1, math.ceil(blueprint.problem.horizon / blueprint.options.periods)))


@kernel
def rate(state: State) -> float:
    now, rounds = state.now[0], state.period.rounds
    end = min(now.horizon, ((now.round - 1) // rounds + 1) * rounds)
    left = now.budget_left + refunds(state)
    return max(0.0, left - now.budget * (1.0 - end / now.horizon)) / (end - now.round + 1)
