"""`doral.scenario`: shipped scenarios by name."""

from __future__ import annotations

from typing import Literal, TypeAlias

from doral import _check
from doral.errors import UnknownName
from doral.simulation.catalogue import paper, people, stress
from doral.simulation.scenario.scenario import Scenario

CLASS_SCENARIOS: dict[str, Scenario] = {**paper.SCENARIOS, **stress.SCENARIOS}
"""Those whose arrivals are classes."""

STRATA = "@strata"
SCENARIOS: dict[str, Scenario] = {**CLASS_SCENARIOS, **people.SCENARIOS}
_STRATIFIED = tuple(name + STRATA for name in people.SCENARIOS)


def named_scenario(name: str) -> Scenario:
    """Return the shipped scenario with this name; an unknown name raises `UnknownName` with the nearest."""
    if _check.is_among(name, _STRATIFIED):
        return SCENARIOS[name.removesuffix(STRATA)].once(Scenario.stratified)
    if not _check.is_among(name, SCENARIOS):
        raise UnknownName("scenario", name, SCENARIOS)
    return SCENARIOS[name]


ScenarioName: TypeAlias = Literal[
    "paper/similar-geometric",
    "paper/similar-pareto",
    "paper/diverse-geometric",
    "paper/diverse-pareto",
    "stress/never-30",
    "stress/costs",
    "stress/context-delays",
    "stress/urgent",
    "stress/silent",
    "stress/positives-first",
    "stress/drift",
    "stress/short",
    "stress/many-arms",
    "stress/heavy",
    "stress/control",
    "stress/harm",
    "stress/silent-slow",
    "stress/dear-is-right",
    "stress/tiny",
    "stress/wrong-features",
    "stress/no-features",
    "stress/rare",
    "stress/pay-on-success",
    "stress/until",
    "people/linear",
    "people/hybrid",
    "people/nonlinear",
    "people/drift",
    "people/many",
    "people/categories",
    "people/one-class-each",
    "people/silent",
    "people/linear@strata",
    "people/hybrid@strata",
    "people/nonlinear@strata",
    "people/drift@strata",
    "people/many@strata",
    "people/categories@strata",
    "people/one-class-each@strata",
    "people/silent@strata",
]


def scenario(name: ScenarioName) -> Scenario:
    """A scenario that ships, by name; `doral scenarios` on the command line lists them with what they are for.

    Args:
        name: "paper/...", the four of the paper; "stress/...", one difficulty each; "people/...", arrivals with
            features, and with "@strata" behind it the same people cut into classes. An unknown one raises
            `UnknownName`, with the nearest. For a name that a program reads there is `Scenario.named`.

    >>> scenario("paper/diverse-pareto").problem.budget
    85000.0
    """
    return named_scenario(name)
