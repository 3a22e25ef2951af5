"""All decisions are those of the version before the engine was made of pieces, bit for bit.

`decisions.json` was written by that version (commit 3d6b941), from the same cases: every decision with its reward and
delay, the curves, and how the run ended, in 16 hexadecimal digits each. That version counted what had come by the last
arrival, and so do the cases here. A change that is meant to decide otherwise removes the cases that it concerns, or
writes them anew, and says so. Written anew since: who rules arms out where costs differ, because the price is now known
within a range only; and Thompson sampling, which mixes several draws.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import doral
from doral.engine.presets import POLICY_NAMES, policy
from doral.simulation.outcome import Outcome
from doral.simulation.scenario import Scenario
from doral.simulation.scenarios import paper_scenarios, stress_scenarios
from tests.engine.cases import (
    EVERY_VALUE,
    SMALL_WORLDS,
    Case,
    distinct,
    option_values,
    outcomes_told_apart,
    presets,
)

DIGESTS: dict[str, str] = json.loads((Path(__file__).parent / "decisions.json").read_text())

# What the version before could not do yet.
OLD_NAMES = [name for name in POLICY_NAMES if name not in ("doral-ids", "oracle")]
NEW_VALUES = [("sampling", "directed"), ("sampling", "oracle")]
OLD_VALUES = [one for one in EVERY_VALUE if one not in NEW_VALUES and one[0] not in ("draws", "explore", "cost")]
# What is meant to be decided otherwise: the last unit that the budget can pay is bought, to the last decimal
# (or, with the same decisions, what was spent is told to that digit), ...
LAST_UNIT = {
    "catalogue doral-otf stress/costs",
    "catalogue wait-linucb stress/costs",
    "option doral bonus=printed silent",
    "option doral censoring=instant silent",
    "option doral cutoff=7.5 silent",
    "option doral delta=1.0 silent",
    "option doral dropping=certified silent",
    "option doral learner=auto silent",
    "option doral learner=scaled silent",
    "option doral min_answers=1 silent",
    "option doral penalty=0.01 silent",
    "option doral prior=noise silent",
}
# ... and nobody pays for the hope that harm may not return.
NO_HOPE_IN_HARM = {"option doral-otf cutoff=1.0 silent"}
# ... Where every arm of a context is thought to do harm, it is tried only as far as those still to come are worth it.
NO_LESSON_WITHOUT_PUPILS = {"outcomes noise given none ignored"}
MOST_ROUNDS = 20_000  # of a scenario of the catalogue


def _shortened(scenario: Scenario) -> Scenario:
    problem = scenario.problem
    horizon = min(problem.horizon, MOST_ROUNDS)
    shorter = dataclasses.replace(problem, horizon=horizon, budget=problem.budget * horizon / problem.horizon)
    return dataclasses.replace(scenario, problem=shorter)


def _catalogue() -> Iterator[Case]:
    for place, scenario in {**paper_scenarios.SCENARIOS, **stress_scenarios.SCENARIOS}.items():
        shorter = _shortened(scenario)
        yield from (Case(f"catalogue {name} {place}", policy(name), shorter) for name in OLD_NAMES)


CASES = [
    case
    for case in distinct(
        [
            *presets(OLD_NAMES),
            *option_values("doral", SMALL_WORLDS, OLD_VALUES),
            *option_values("doral-otf", SMALL_WORLDS, OLD_VALUES),
            *outcomes_told_apart(),
            *_catalogue(),
        ]
    )
    if case.name not in LAST_UNIT | NO_HOPE_IN_HARM | NO_LESSON_WITHOUT_PUPILS
]


def _by_end(scenario: Scenario) -> Scenario:
    return dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, counted="by_end"))


def _digest(outcome: Outcome) -> str:
    log = outcome.log
    assert log is not None
    digest = hashlib.sha256()
    for numbers in (log.round, log.context, log.arm, log.reward, log.delay, outcome.curve, outcome.course):
        digest.update(np.ascontiguousarray(numbers.astype(np.float64)).tobytes())
    ending = (
        outcome.rewards,
        outcome.spend,
        outcome.race_rounds,
        outcome.race_spend,
        outcome.race_ended,
        outcome.race_capped,
        outcome.accepted,
        outcome.cutoff,
        [dataclasses.astuple(one)[:7] for one in outcome.certificates],  # the range of prices came later
    )
    digest.update(repr(ending).encode())
    return digest.hexdigest()[:16]


def test_nothing_is_left_out() -> None:
    assert {case.name for case in CASES} == set(DIGESTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_decisions_are_those_of_the_version_before(case: Case) -> None:
    result = doral.simulate(case.options, _by_end(case.scenario), runs=1, seed=1, keep_decisions=True)
    assert _digest(result.outcomes[0]) == DIGESTS[case.name]
