"""Made-up results, for analysis without simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pytest

from doral._arrays import Floats
from doral.experiments.paper.cells import SCENARIO_NAMES
from doral.simulation.results.outcome import Outcome
from doral.simulation.results.result import SimulationResult

ROUNDS = np.array([100, 200, 300, 400], dtype=np.int64)
RACE_ENDED = 230

MakeResult = Callable[..., SimulationResult]


def _outcome(scenario: str, policy: str, run: int, reward: float, by_race_end: float) -> Outcome:
    path = np.array([by_race_end / 2, by_race_end, (by_race_end + reward) / 2, reward])
    return Outcome(
        scenario=scenario,
        policy=policy,
        run=run,
        oracle=2_000.0,
        rewards=(reward, reward, reward),
        expected=reward,
        rounds=ROUNDS,
        curve=np.repeat(path[:, None], 3, axis=1),
        course=np.column_stack(
            [np.where(ROUNDS < RACE_ENDED, np.inf, 300.0), np.where(ROUNDS < RACE_ENDED, 10.0, 1.0)]
        ),
        decisions=100,
        spend=100.0,
        race_rounds=RACE_ENDED,
        race_spend=20.0,
        race_ended=RACE_ENDED,
        race_capped=False,
        accepted=("arm-1",),
        cutoff=300.0,
    )


@pytest.fixture
def make_result() -> MakeResult:
    """Rewards by policy, one per run, the same in all scenarios; `by_race_end` at the checkpoint in the race."""

    def make(
        rewards: Mapping[str, Floats],
        by_race_end: Mapping[str, Floats] | None = None,
        *,
        scenarios: Iterable[str] = SCENARIO_NAMES,
    ) -> SimulationResult:
        earlier = by_race_end or {policy: own / 4 for policy, own in rewards.items()}
        outcomes = tuple(
            _outcome(scenario, policy, run, float(reward), float(earlier[policy][run]))
            for scenario in scenarios
            for policy, own in rewards.items()
            for run, reward in enumerate(own)
        )
        return SimulationResult(outcomes=outcomes, seed=0)

    return make
