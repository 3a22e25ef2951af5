"""All decisions are those of the version before the engine was made of pieces, bit for bit.

`decisions.json` was written by that version (commit 3d6b941), from the same cases: every decision with its reward and
delay, the curves, and how the run ended, in 16 hexadecimal digits each. That version counted what had come by the last
arrival, and so do the cases here. A change that is meant to decide otherwise removes the cases that it concerns, or
writes them anew, and says so. Written anew since: who rules arms out where costs differ, because the price is now known
within a range only; Thompson sampling, which mixes several draws; and 75 cases, with 102 of those below, where ages and
chances are no longer NumPy's, which on processors with vectors of 512 bits rounds the last bit otherwise. Where a
preset has changed, its cases are played with the words that it had: the pieces that it was made of decide as they did.

What the presets that learn on the fly decide since they learn cells, look ahead and start by plan is in
`decisions_on_the_fly.json`, written by the version that made them so.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doral.engine.presets import POLICY_NAMES, policy

import doral
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.catalogue import stress as stress_scenarios
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from tests.engine.cases import (
    EVERY_VALUE,
    NO_WORDS,
    OPTION_VALUES,
    SMALL_WORLDS,
    Case,
    distinct,
    option_values,
    outcomes_told_apart,
    presets,
)

ON_THE_FLY = ("doral-otf", "doral-ids")
DIGESTS: dict[str, str] = json.loads((Path(__file__).parent / "decisions.json").read_text())
DIGESTS_NOW: dict[str, str] = json.loads((Path(__file__).parent / "decisions_on_the_fly.json").read_text())

# What the version before could not do yet.
OLD_NAMES = [name for name in POLICY_NAMES if name not in (*ON_THE_FLY, "oracle")]
SHARES = [("start_share", share) for share in OPTION_VALUES["start_share"]]
NEW_VALUES = [("learner", "early"), ("prior", "cells"), ("bonus", "ahead"), *SHARES]
NEWER_VALUES = [("sampling", "directed"), ("sampling", "oracle"), ("bonus", "to_come"), *NEW_VALUES]
OLD_VALUES = [one for one in EVERY_VALUE if one not in NEWER_VALUES and one[0] not in ("draws", "explore", "cost")]
# What doral-otf was before; its learner of silent feedback was `scaled`.
FORMER: dict[str, Any] = {"cutoff_share": 0.95, "prior": "shared", "bonus": "calibrated", "start_share": 0.0}
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


def _catalogue(names: Iterable[str], words: Mapping[str, Any] = NO_WORDS) -> Iterator[Case]:
    for place, scenario in {**paper_scenarios.SCENARIOS, **stress_scenarios.SCENARIOS}.items():
        shorter = _shortened(scenario)
        yield from (Case(f"catalogue {name} {place}", policy(name, **words), shorter) for name in names)


def _formerly(case: Case) -> Case:
    if case.options.learner == "auto" and case.scenario.problem.feedback == "silent":
        return case._replace(options=dataclasses.replace(case.options, learner="scaled", outcome_split=None))
    return case


CASES = [
    case
    for case in distinct(
        [
            *presets(OLD_NAMES),
            *presets(["doral-otf"], FORMER),
            *option_values("doral", SMALL_WORLDS, OLD_VALUES),
            *option_values("doral-otf", SMALL_WORLDS, OLD_VALUES, FORMER),
            *outcomes_told_apart(("fixed", "noise", "shared"), FORMER),
            *_catalogue(OLD_NAMES),
            *_catalogue(["doral-otf"], FORMER),
        ]
    )
    if case.name not in LAST_UNIT | NO_HOPE_IN_HARM | NO_LESSON_WITHOUT_PUPILS
]
CASES_NOW = distinct(
    [
        *presets(ON_THE_FLY),
        *option_values("doral", SMALL_WORLDS, NEW_VALUES),
        *option_values("doral-otf", SMALL_WORLDS),
        *outcomes_told_apart(),
        *_catalogue(ON_THE_FLY),
    ]
)


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


def _played(case: Case) -> str:
    result = doral.simulate(case.options, _by_end(case.scenario), runs=1, seed=1, keep_decisions=True)
    return _digest(result.outcomes[0])


def test_nothing_is_left_out() -> None:
    assert {case.name for case in CASES} == set(DIGESTS)
    assert {case.name for case in CASES_NOW} == set(DIGESTS_NOW)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_decisions_are_those_of_the_version_before(case: Case) -> None:
    assert _played(_formerly(case)) == DIGESTS[case.name]


@pytest.mark.parametrize("case", CASES_NOW, ids=lambda case: str(case.name))
def test_decisions_are_those_of_the_version_that_changed_them(case: Case) -> None:
    assert _played(case) == DIGESTS_NOW[case.name]
