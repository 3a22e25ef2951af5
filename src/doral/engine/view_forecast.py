"""What is forecast until the end, for people: where that is a date."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doral.engine.pieces.forecast import rhythm_until
from doral.engine.state import State, has

REACH = 1.6448536269514722  # standard errors to each side of 90%


@dataclass(frozen=True, kw_only=True)
class ForecastView:
    """How many are still expected to arrive, and how sure that is."""

    expected: float
    low: float  # with `high`, 90% of what may come
    high: float
    pace: float  # arrivals per unit of the clock, on average over a week
    hours: tuple[float, ...]  # how many come in each hour of the day, relative to the mean; all 1: no rhythm was found
    weekdays: tuple[float, ...]  # the same from Monday on


def view_forecast(state: State) -> ForecastView | None:
    """As of the last event; None where the end is a number of arrivals.

    Errors of the level, of its drift until the end, and of what comes by chance are independent, and relative.
    """
    if not has(state, "forecast"):
        return None
    now, forecast = state.now[0], state.forecast
    pace, clock, until = forecast.pace[0], float(state.now["clock"][0]), float(now["until"])
    left = max(0.0, until - clock)
    expected = float(pace["level"] * (rhythm_until(forecast, max(until, clock)) - rhythm_until(forecast, clock)))
    spans = left / float(pace["span"])
    by_chance = float(pace["noise"]) / spans if pace["noise"] > 0.0 and spans > 0.0 else 0.0
    variance = float(pace["error"]) + float(pace["drift"]) * spans / 3.0 + max(by_chance, 1.0 / max(1.0, expected))
    factor = math.exp(REACH * math.sqrt(variance))
    return ForecastView(
        expected=expected,
        low=expected / factor,
        high=expected * factor,
        pace=float(pace["level"]),
        hours=tuple(forecast.hour_factors.tolist()),
        weekdays=tuple(forecast.weekday_factors.tolist()),
    )
