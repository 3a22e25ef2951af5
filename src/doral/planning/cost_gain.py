"""The curve of gain against cost, as uplift libraries draw it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.planning.budget_curve import Curve
from doral.planning.fact import Fact

BUDGETS = 30  # points of a curve
SPAN = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class CostGain(Fact):
    """Gain against cost, as uplift libraries draw it: those are served first who bring most per unit of cost.

    `gain` is cumulative, `at_random` is what the same money brings if it is given to anybody alike, `area` is the area
    under the curve when both axes go from 0 to 1: 0.5 is the line, 1 is all of the gain at once.
    """

    spent: tuple[float, ...]  # share of what serves all who bring anything, 0 to 1
    gain: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    at_random: tuple[float, ...]
    area: float | None  # None where nothing brings anything
    area_low: float | None
    area_high: float | None


def spread(drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean over the draws, for which everything is planned, and what 95% of them lie between."""
    low, high = np.quantile(drawn, SPAN, axis=0)
    return np.asarray(drawn.mean(axis=0)), low, high


def cost_gain(curves: list[Curve]) -> CostGain:
    """Of the curves of all draws: the more evenly money helps, the closer to the line."""
    spent = np.linspace(0.0, 1.0, BUDGETS)
    gains = np.array([np.interp(spent * one.spent[-1], one.spent, one.value) for one in curves])
    gain, low, high = spread(gains)
    whole = gains[:, -1]
    areas = np.array([_area(one) for one in curves])[whole > 0.0]
    area, area_low, area_high = spread(areas) if areas.size else (None, None, None)
    if area is None:
        words = "Nothing that costs money brings anything: there is no gain to draw."
    else:
        words = (
            f"Serving first whom a unit of money helps most has an area of {float(area):.2f} under its curve "
            "(0.5 if anybody is served alike)."
        )
    return CostGain(
        spent=tuple(spent.tolist()),
        gain=tuple(gain.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        at_random=tuple((spent * gain[-1]).tolist()),
        area=None if area is None else float(area),
        area_low=None if area_low is None else float(area_low),
        area_high=None if area_high is None else float(area_high),
        sentence=words,
    )


def _area(curve: Curve) -> float:
    """Under the curve, both axes from 0 to 1."""
    if curve.spent[-1] == 0.0 or curve.value[-1] <= 0.0:
        return 1.0
    middles = 0.5 * (curve.value[1:] + curve.value[:-1])
    return float((middles * np.diff(curve.spent)).sum() / (curve.spent[-1] * curve.value[-1]))
