"""The horizon is cut into equal periods: what is left of the period's equal share of the budget, and of those before
it, per remaining round of the period. Where the end is a date, periods are equally long.
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
    n: int


def memory(blueprint: Blueprint) -> PeriodMemory:
    n = blueprint.options.periods
    return PeriodMemory(max(1, math.ceil(blueprint.problem.horizon / n)), n)


@kernel
def rate(state: State) -> float:
    now, rounds = state.now[0], state.period.rounds
    if now.until < math.inf:
        return _rate_in_time(state)
    end = min(now.horizon, ((now.round - 1) // rounds + 1) * rounds)
    left = now.budget_left + refunds(state)
    return max(0.0, left - now.budget * (1.0 - end / now.horizon)) / (end - now.round + 1)


@kernel
def _rate_in_time(state: State) -> float:
    """Arrivals of the period are those that are forecast, by its part of the time."""
    now, length = state.now[0], state.now[0].until / state.period.n
    end = min(now.until, (math.floor(now.clock / length) + 1.0) * length)
    part = 1.0 if now.until <= now.clock else (end - now.clock) / (now.until - now.clock)
    saved = now.budget * (1.0 - end / now.until)
    return max(0.0, now.budget_left + refunds(state) - saved) / max(1.0, part * (now.horizon - now.round + 1))
