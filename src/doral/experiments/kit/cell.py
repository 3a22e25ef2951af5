"""Work as data: which policies play which scenario, how often. What is run is a list of these."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from doral.engine.options import PolicyOptions
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Policies that play one scenario; they share their draws, so that their differences are paired."""

    study: str
    """What it is run for: one table, sweep or set of variants of the experiment."""
    scenario: Scenario
    policies: tuple[NamedPolicy, ...]
    runs: int
    keep_curves: bool = False


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One line of a table of changes: a policy, what is different about it, and the policy it is compared with."""

    policy: PolicyOptions
    says: str
    reference: str


def base_name(scenario: str) -> str:
    """The scenario of the catalogue that an altered one is made from.

    >>> base_name("paper/diverse-pareto@noise=1")
    'paper/diverse-pareto'
    """
    return scenario.partition("@")[0]


def shrunk(scenario: Scenario, by: int) -> Scenario:
    """The same scenario with budget and horizon divided, for a try-out; delays and the deadline stay."""
    if by == 1:
        return scenario
    problem = dataclasses.replace(scenario.problem, budget=scenario.problem.budget / by)
    if scenario.arrivals is None or problem.until is None:
        return dataclasses.replace(scenario, problem=dataclasses.replace(problem, horizon=problem.horizon // by))
    expected = problem.expected_arrivals and max(1, problem.expected_arrivals // by)
    shorter = dataclasses.replace(problem, until=problem.until / by, expected_arrivals=expected)
    if isinstance(scenario.arrivals, Calendar):  # as many as come until then
        return dataclasses.replace(scenario, problem=shorter)
    fewer = dataclasses.replace(scenario.arrivals, number=scenario.arrivals.number / by)
    return dataclasses.replace(scenario, problem=shorter, arrivals=fewer)
