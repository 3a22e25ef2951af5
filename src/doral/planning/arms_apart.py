"""Which arms the log can tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.planning.draws import Draws
from doral.planning.fact import Fact, named, number


@dataclass(frozen=True, kw_only=True)
class ArmValue(Fact):
    """What one use of an arm brings by the deadline, over all who arrive, beyond doing nothing where that is known."""

    arm: str
    value: float
    low: float  # 95% of the truths that the log leaves possible
    high: float
    cost: float
    per_cost: float | None  # None where it is free
    is_as_good_as_best: bool  # per unit of cost, or by itself where some are free: the log cannot tell it from the best


def arm_values(arms: tuple[str, ...], draws: Draws) -> tuple[ArmValue, ...]:
    """The best first: by what a unit of cost brings, or by what a use brings where an arm is free."""
    values = np.einsum("bja,bj->ba", draws.values, draws.shares)
    costs = np.einsum("bja,bj->ba", draws.costs, draws.shares)
    is_by_cost = bool((costs.mean(axis=0) > 0.0).all())
    rated = values / costs if is_by_cost else values
    order = np.argsort(-rated.mean(axis=0), kind="stable").tolist()
    best = rated[:, order[0]]
    return tuple(_value(arms[arm], values[:, arm], costs[:, arm], rated[:, arm], best) for arm in order)


def _value(arm: str, values: Floats, costs: Floats, rated: Floats, best: Floats) -> ArmValue:
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    behind = float(np.quantile(best - rated, 0.025))
    cost = float(costs.mean())
    mean = float(values.mean())
    return ArmValue(
        arm=arm,
        value=mean,
        low=low,
        high=high,
        cost=cost,
        per_cost=mean / cost if cost > 0.0 else None,
        is_as_good_as_best=behind <= 0.0,
        sentence=f"{arm} brings {number(mean)} [{number(low)}, {number(high)}] a use, at {number(cost)}.",
    )


def apart(found: tuple[ArmValue, ...]) -> str:
    """Which arm is best, or which cannot be told apart."""
    alike = tuple(one.arm for one in found if one.is_as_good_as_best)
    if len(found) == 1:
        return f"There is one arm, {found[0].arm}."
    if len(alike) == 1:
        return f"Over all who arrive, {alike[0]} brings most for its cost."
    return f"Over all who arrive, the log cannot tell which of {named(alike)} brings most for its cost."
