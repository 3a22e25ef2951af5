"""Scenarios by name."""

from __future__ import annotations

from doral import _check
from doral.errors import UnknownName
from doral.simulation.catalogue import baseline as baseline_scenarios
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.catalogue import payment as payment_scenarios
from doral.simulation.catalogue import people as people_scenarios
from doral.simulation.catalogue import real_life as real_life_scenarios
from doral.simulation.catalogue import stress as stress_scenarios
from doral.simulation.catalogue import until as until_scenarios
from doral.simulation.scenario.scenario import Scenario

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
