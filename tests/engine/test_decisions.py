"""All decisions are those of the version before the engine became one state machine, bit for bit.

`decisions.json` holds what commit b3b751d decides in these cases, in 16 hexadecimal digits each: every decision with
its reward and delay, the curves, and how the run ended. 80 of the 160 are lines of the 1,230 that were recorded then;
the others were played by that commit, because it recorded them with arms ruled out, or not at all. Kept are runs that
differ in kind:

- every preset, corrected and literal, in two of four small worlds, and with a race that ends early where it has one;
- every other value of every option, once, in a world in turn: options of the race and printed readings from `doral`,
  all others from `doral-otf`;
- what options do together: outcomes that return at different speeds, learners with return probabilities, random
  options with every pace, short cut-offs;
- what problems ask for: baselines, ends that are dates, costs that are paid on answer, arrivals with features;
- every scenario of the catalogue once, shortened, with presets in turn.

Runs of the first three kinds and of the catalogue count what has come by the last arrival, as they were recorded. That
version could rule arms out (`dropping`); it is recorded without. A change that is meant to decide otherwise writes the
cases that it concerns anew, and says so: runs made from `doral-otf` were, when its belief and its bonus changed. All
others decide as b3b751d did.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.engine.options import policy_of
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.catalogue import people as people_scenarios
from doral.simulation.catalogue import stress as stress_scenarios
from doral.simulation.catalogue.descriptions import SCENARIO_WORDS, STRESS
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from tests.alone import without_a_compiler
from tests.engine.cases import (
    MIXED,
    OFFERS,
    OPTION_VALUES,
    SILENT,
    UNIT,
    URGENT,
    Case,
    baselines,
    by_date,
    distinct,
    ending,
    explorers,
    learners,
    offers,
    option_values,
    outcomes_told_apart,
    presets,
    short_cutoffs,
    spread,
)

DIGESTS: dict[str, str] = json.loads((Path(__file__).parent / "decisions.json").read_text())
WORLDS = (URGENT, SILENT, UNIT, MIXED)  # in this order fewest runs are alike
MOST_ROUNDS, MOST_PEOPLE = 20_000, 1_500  # of a scenario of the catalogue
OF_THE_RACE = ("screening", "accept", "censoring", "min_answers", "race_budget_share", "cutoff", "delta", "penalty")
OF_DORAL = (*OF_THE_RACE, "printed", "return_probability")
CATALOGUE_POLICIES = ("doral-otf", "doral", "eva", "wait-linucb", "d-lints", "d-linucb", "doral/literal")
PEOPLE = ("people/linear", "people/drift", "people/categories", "people/one-class-each", "people/silent")
PEOPLE_OPTIONS = (
    {"basis": "splines"},
    {"products": "age*distance_km"},
    {"reservoir": 40},
    {"prior": "noise", "bonus": "calibrated"},
    {"sampling": "thompson"},
    {"half_life": 300.0, "curves_by": "arm"},
)


def _other_values(base: str) -> Iterator[tuple[str, Any]]:
    """Yield the words of every option that are not the preset's; of numbers the smallest and the largest."""
    preset = policy_of(base, {})
    for option, values in OPTION_VALUES.items():
        others = [value for value in values if value != getattr(preset, option)]
        is_number = all(isinstance(value, int | float) or value is None for value in others)
        yield from ((option, value) for value in ([others[0], others[-1]] if is_number and others[1:] else others))


def _one_value_at_a_time() -> Iterator[Case]:
    of_otf = [one for one in _other_values("doral-otf") if one[0] not in OF_DORAL]
    yield from option_values("doral", WORLDS, [one for one in _other_values("doral") if one[0] in OF_DORAL])
    yield from option_values("doral-otf", WORLDS, [one for one in of_otf if one[0] != "cost"])
    yield from option_values("doral-otf", [OFFERS], [one for one in of_otf if one[0] == "cost"])


def _shortened(scenario: Scenario, most: int) -> Scenario:
    problem = scenario.problem
    horizon = min(problem.horizon, most)
    shorter = dataclasses.replace(problem, horizon=horizon, budget=problem.budget * horizon / problem.horizon)
    return dataclasses.replace(scenario, problem=shorter)


def _catalogue() -> Iterator[Case]:
    names = itertools.cycle(CATALOGUE_POLICIES)
    stress = {name: stress_scenarios.SCENARIOS[name] for name in SCENARIO_WORDS[STRESS]}
    for place, scenario in {**paper_scenarios.SCENARIOS, **stress}.items():
        name = next(names)
        yield Case(f"catalogue {name} {place}", policy_of(name, {}), _shortened(scenario, MOST_ROUNDS))


def _people() -> Iterator[Case]:
    places = {place: _shortened(people_scenarios.SCENARIOS[place], MOST_PEOPLE) for place in PEOPLE}
    for place, scenario in places.items():
        yield Case(f"people doral-otf {place}", policy_of("doral-otf", {}), scenario)
    for options in PEOPLE_OPTIONS:
        said = ", ".join(f"{option}={value}" for option, value in options.items())
        yield Case(f"people {said}", policy_of("doral-otf", options), places[PEOPLE[0]])


CASES = distinct(
    [
        *(
            case._replace(scenario=ending(case.scenario))
            for case in (
                *presets(each=2),
                *_one_value_at_a_time(),
                *spread(outcomes_told_apart(), 6),
                *spread(short_cutoffs(), 3),
                *_catalogue(),
            )
        ),
        *spread(learners(), 4),
        *spread(explorers(), 4),
        *spread(baselines(), 10),
        *spread(by_date(), 6),
        *spread(offers(), 6),
        *_people(),
    ]
)


def _digest(outcome: Outcome) -> str:
    log = outcome.log
    assert log is not None
    digest = hashlib.sha256()
    for numbers in (log.round, log.context, log.arm, log.reward, log.delay, outcome.curve, outcome.course):
        digest.update(np.ascontiguousarray(numbers.astype(np.float64)).tobytes())
    end: tuple[object, ...] = (
        outcome.rewards,
        outcome.spend,
        outcome.race_rounds,
        outcome.race_spend,
        outcome.race_ended,
        outcome.race_capped,
        outcome.accepted,
        outcome.cutoff,
        [],  # arms that are ruled out: none
    )
    digest.update(repr(end).encode())
    return digest.hexdigest()[:16]


def _play(case: Case) -> str:
    result = doral.simulate(case.options, case.scenario, runs=1, seed=1, keep_decisions=True)
    return _digest(result.outcomes[0])


def test_every_recorded_run_is_compared() -> None:
    assert {case.name for case in CASES} == set(DIGESTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_decisions_are_those_recorded(case: Case) -> None:
    assert _play(case) == DIGESTS[case.name]


PLAIN_CASES = spread([case for case in CASES if 0 < case.scenario.problem.horizon < 1_000], 12)


@pytest.mark.parametrize("case", PLAIN_CASES, ids=lambda case: str(case.name))
def test_without_a_compiler_decisions_are_the_same(case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_a_compiler(monkeypatch, tmp_path)
    with pytest.warns(RuntimeWarning, match="runs as Python.*no compiler today"):
        assert _play(case) == DIGESTS[case.name]
