"""How much of the comparison is run, and the cells that this makes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from doral.engine.options import PRESETS
from doral.engine.options import make_policy as policy
from doral.experiments.beyond.names import DIVERSE_PARETO, REFERENCE
from doral.experiments.beyond.sweeps import SWEEPS, Sweep
from doral.experiments.beyond.variants import INGREDIENTS
from doral.experiments.kit.cell import Cell, base_name, shrunk
from doral.experiments.kit.extent import Extent
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.scenario.scenario import Scenario

TABLE = "table"
INGREDIENTS_STUDY = "ingredients"
COURSE_STUDY = "course"

COURSE_SCENARIOS = (
    "paper/similar-geometric",
    "paper/diverse-pareto",
    "stress/context-delays",
    "stress/costs",
    "stress/drift",
)
"""Where the cut-off and the arms in play are followed over time."""


@dataclass(frozen=True, kw_only=True)
class BeyondExtent(Extent):
    """Also which policies play which scenarios."""

    policies: tuple[NamedPolicy, ...] = tuple(policy(name) for name in PRESETS if name != "oracle")
    scenarios: tuple[Scenario, ...] = tuple(CLASS_SCENARIOS.values())

    @property
    def with_sides(self) -> bool:
        """Ingredients and sweeps are about `doral-otf`: they are run where it is."""
        return super().with_sides and policy(REFERENCE) in self.policies

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Those that the chosen scenarios can answer, with their points on them."""
        if not self.with_sides:
            return ()
        chosen = {one.name for one in self.scenarios}
        cut = (
            dataclasses.replace(
                sweep, points=tuple(one for one in sweep.points if base_name(one.scenario.name) in chosen)
            )
            for sweep in SWEEPS
        )
        return tuple(sweep for sweep in cut if sweep.points)


FULL = BeyondExtent(runs=20, side_runs=20)
QUICK = BeyondExtent(runs=3, side_runs=2, shrink=5)


def study_of(sweep: Sweep) -> str:
    """The study in which a sweep is run."""
    return f"choice {sweep.name}"


def table_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """Every policy on every scenario."""
    for scenario in extent.scenarios:
        yield Cell(
            study=TABLE,
            scenario=shrunk(scenario, extent.shrink),
            policies=extent.policies,
            runs=extent.runs,
            keep_curves=scenario.name == DIVERSE_PARETO,  # which is shown over time, too
        )


def ingredient_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """`doral-otf` and everything that lacks one of its ingredients, on every scenario."""
    policies = (policy(REFERENCE), *(variant.policy for variant in INGREDIENTS))
    for scenario in extent.scenarios:
        yield Cell(
            study=INGREDIENTS_STUDY, scenario=shrunk(scenario, extent.shrink), policies=policies, runs=extent.side_runs
        )


def course_cells(extent: BeyondExtent) -> Iterable[Cell]:
    """`doral-otf` with its course kept: how m and the arms in play move over time."""
    for scenario in extent.scenarios:
        if extent.with_sides and scenario.name in COURSE_SCENARIOS:
            yield Cell(
                study=COURSE_STUDY,
                scenario=shrunk(scenario, extent.shrink),
                policies=(policy(REFERENCE),),
                runs=extent.side_runs,
                keep_curves=True,
            )


def sweep_cells(sweep: Sweep, extent: BeyondExtent) -> Iterable[Cell]:
    """The points of a sweep; those on one scenario are played together."""
    scenarios = {point.scenario.name: point.scenario for point in sweep.points}
    for name, scenario in scenarios.items():
        policies = {point.policy.name: point.policy for point in sweep.points if point.scenario.name == name}
        yield Cell(
            study=study_of(sweep),
            scenario=shrunk(scenario, extent.shrink),
            policies=tuple(policies.values()),
            runs=extent.side_runs,
        )


def cells(extent: BeyondExtent) -> list[Cell]:
    """Everything that is run, the table first."""
    sides = ingredient_cells(extent) if extent.with_sides else ()
    swept = (cell for sweep in extent.sweeps for cell in sweep_cells(sweep, extent))
    return [*table_cells(extent), *sides, *course_cells(extent), *swept]
