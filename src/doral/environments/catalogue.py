"""Scenarios by name."""

from __future__ import annotations

from doral.environments import paper, stress
from doral.environments.scenario import Scenario
from doral.errors import UnknownName

SCENARIOS: dict[str, Scenario] = {**paper.SCENARIOS, **stress.SCENARIOS}


def scenario(name: str) -> Scenario:
    """A scenario by name; an unknown one lists the nearest.

    >>> scenario("paper/diverse-pareto").problem.budget
    85000.0
    """
    if name not in SCENARIOS:
        raise UnknownName("scenario", name, SCENARIOS)
    return SCENARIOS[name]
