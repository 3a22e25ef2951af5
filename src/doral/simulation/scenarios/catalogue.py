"""Scenarios by name."""

from __future__ import annotations

from doral import _check
from doral.errors import UnknownName
from doral.simulation.scenario import Scenario
from doral.simulation.scenarios import (
    baseline_scenarios,
    paper_scenarios,
    payment_scenarios,
    people_scenarios,
    real_life_scenarios,
    stress_scenarios,
    until_scenarios,
)

CLASS_SCENARIOS: dict[str, Scenario] = {
    **paper_scenarios.SCENARIOS,
    **stress_scenarios.SCENARIOS,
    **baseline_scenarios.SCENARIOS,
    **real_life_scenarios.SCENARIOS,
    **payment_scenarios.SCENARIOS,
    **until_scenarios.SCENARIOS,
}
"""Those whose arrivals are classes."""

STRATA = "@strata"
SCENARIOS: dict[str, Scenario] = {**CLASS_SCENARIOS, **people_scenarios.SCENARIOS}
_STRATIFIED = tuple(name + STRATA for name in people_scenarios.SCENARIOS)


def scenario(name: str) -> Scenario:
    """What `doral.scenario` returns, for a name that comes from anywhere; an unknown one lists the nearest."""
    if _check.is_among(name, _STRATIFIED):
        return SCENARIOS[name.removesuffix(STRATA)].once(Scenario.stratified)
    if not _check.is_among(name, SCENARIOS):
        raise UnknownName("scenario", name, SCENARIOS)
    return SCENARIOS[name]
