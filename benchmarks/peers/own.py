"""DORAL's own rows, by `doral.simulate` on the same draws."""

from __future__ import annotations

from typing import Any

import doral
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario

POLICY = "doral-otf"
SECOND = doral.policy("ts-lp")  # Thompson sampling with the same belief


def play_own(
    scenario: Scenario, policy: str | doral.PolicyOptions = POLICY, *, runs: int, seed: int
) -> list[dict[str, Any]]:
    """What a policy earned, by run."""
    result = doral.simulate(policy, scenario, runs=runs, seed=seed, progress=False)
    return [
        {
            "run": one.run,
            "reward": one.rewards[WITHIN_DEADLINE],
            "expected": one.expected,
            "best": one.oracle,
        }
        for one in result.outcomes
    ]
