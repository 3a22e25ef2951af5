"""How much of the comparison is run, and the cells that this makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from doral.environments.catalogue import SCENARIOS
from doral.environments.scenario import Scenario
from doral.experiments.beyond.choices import CHOICES, Choice
from doral.experiments.beyond.ingredients import INGREDIENTS, REFERENCE
from doral.experiments.cells import Cell, shrunk
from doral.policies.options import PolicyOptions
from doral.policies.presets import PRESETS, policy

COMPARE = "compare"
INGREDIENT = "ingredients"
COURSE = "course"

COURSE_SCENARIOS = (
    "paper/similar-geometric",
    "paper/diverse-pareto",
    "stress/context-delays",
    "stress/costs",
    "stress/drift",
)
"""Where the cut-off and the arms in play are followed over time."""


@dataclass(frozen=True, kw_only=True)
class ComparePlan:
    """Which policies play which scenarios, how often and how long."""

    policies: tuple[PolicyOptions, ...] = tuple(policy(name) for name in PRESETS)
    scenarios: tuple[Scenario, ...] = tuple(SCENARIOS.values())
    runs: int = 20
    """Runs of the table."""
    side_runs: int = 20
    """Runs of ingredients and choices, where differences are large enough to be seen with fewer."""
    shrink: int = 1
    """Budgets and horizons are divided by it; delays and deadlines are not."""
    table_only: bool = False
    """Whether ingredients and choices are left out."""

    @property
    def is_quick(self) -> bool:
        """Whether this is a try-out, from which nothing follows."""
        return self.shrink != 1

    @property
    def with_sides(self) -> bool:
        """Ingredients and choices are about `doral-otf`: they are run where it is."""
        return not self.table_only and any(one == policy(REFERENCE) for one in self.policies)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Those that the chosen scenarios can answer, with their points on them."""
        if not self.with_sides:
            return ()
        chosen = {one.name for one in self.scenarios}
        cut = (
            dataclasses.replace(choice, points=tuple(point for point in choice.points if point.belongs_to in chosen))
            for choice in CHOICES
        )
        return tuple(choice for choice in cut if choice.points)


FULL = ComparePlan()
QUICK = ComparePlan(runs=3, side_runs=2, shrink=5)


def experiment_of(choice: Choice) -> str:
    """The name under which the cells of a choice are run."""
    return f"choice {choice.name}"


def table_cells(plan: ComparePlan) -> Iterable[Cell]:
    """Every policy on every scenario."""
    for scenario in plan.scenarios:
        yield Cell(experiment=COMPARE, scenario=shrunk(scenario, plan.shrink), policies=plan.policies, runs=plan.runs)


def ingredient_cells(plan: ComparePlan) -> Iterable[Cell]:
    """`doral-otf` and everything that lacks one of its ingredients, on every scenario."""
    policies = (policy(REFERENCE), *(variant.policy for variant in INGREDIENTS))
    for scenario in plan.scenarios:
        yield Cell(
            experiment=INGREDIENT, scenario=shrunk(scenario, plan.shrink), policies=policies, runs=plan.side_runs
        )


def course_cells(plan: ComparePlan) -> Iterable[Cell]:
    """`doral-otf` with its course kept: how m and the arms in play move over time."""
    for scenario in plan.scenarios:
        if plan.with_sides and scenario.name in COURSE_SCENARIOS:
            yield Cell(
                experiment=COURSE,
                scenario=shrunk(scenario, plan.shrink),
                policies=(policy(REFERENCE),),
                runs=plan.side_runs,
                keep_curves=True,
            )


def choice_cells(choice: Choice, plan: ComparePlan) -> Iterable[Cell]:
    """The points of a choice; those on one scenario are played together."""
    scenarios = {point.scenario.name: point.scenario for point in choice.points}
    for name, scenario in scenarios.items():
        policies = {point.policy.name: point.policy for point in choice.points if point.scenario.name == name}
        yield Cell(
            experiment=experiment_of(choice),
            scenario=shrunk(scenario, plan.shrink),
            policies=tuple(policies.values()),
            runs=plan.side_runs,
        )


def cells(plan: ComparePlan) -> list[Cell]:
    """Everything that a plan runs, the table first."""
    sides = ingredient_cells(plan) if plan.with_sides else ()
    choices = (cell for choice in plan.choices for cell in choice_cells(choice, plan))
    return [*table_cells(plan), *sides, *course_cells(plan), *choices]
