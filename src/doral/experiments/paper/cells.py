"""What is run, as data: the paper's comparison, sweeps over what it leaves open, and an ablation of our reading."""

from __future__ import annotations

from collections.abc import Iterable

from doral.engine.options import make_policy as policy
from doral.experiments.kit.cell import Cell, shrunk
from doral.experiments.kit.extent import Extent
from doral.experiments.paper.names import POLICIES, SCENARIO_NAMES
from doral.experiments.paper.variants import ABLATION
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.scenario.scenario import Scenario

FULL = Extent(runs=50, side_runs=20)
QUICK = Extent(runs=5, side_runs=2, shrink=5)

COMPARISON = "comparison"
HORIZON_SWEEP = "sweep over T"
ACCEPT_SWEEP = "sweep over A'"
ABLATION_STUDY = "ablation"


def _scenarios(extent: Extent) -> Iterable[Scenario]:
    return (shrunk(paper_scenarios.SCENARIOS[name], extent.shrink) for name in SCENARIO_NAMES)


def comparison(extent: Extent) -> Iterable[Cell]:
    """The paper's four figures."""
    policies = tuple(policy(name) for name in POLICIES)
    for scenario in _scenarios(extent):
        yield Cell(study=COMPARISON, scenario=scenario, policies=policies, runs=extent.runs, keep_curves=True)


def horizon_sweep(extent: Extent) -> Iterable[Cell]:
    """The comparison at other horizons T; the paper's own is in the comparison already."""
    policies = tuple(policy(name) for name in POLICIES)
    for scenario in _scenarios(extent):
        for horizon in paper_scenarios.SWEEP_HORIZONS:
            if horizon != paper_scenarios.HORIZON:
                other = paper_scenarios.with_horizon(scenario, horizon // extent.shrink)
                yield Cell(study=HORIZON_SWEEP, scenario=other, policies=policies, runs=extent.side_runs)


def accept_sweep(extent: Extent) -> Iterable[Cell]:
    """DORAL with every A', the number of arms that the race accepts."""
    policies = tuple(policy("doral", accept=accept) for accept in paper_scenarios.SWEEP_ACCEPTED)
    for scenario in _scenarios(extent):
        yield Cell(study=ACCEPT_SWEEP, scenario=scenario, policies=policies, runs=extent.side_runs)


def ablation(extent: Extent) -> Iterable[Cell]:
    """DORAL with one piece at a time as printed, and every policy as printed throughout."""
    policies = tuple(variant.policy for variant in ABLATION)
    for scenario in _scenarios(extent):
        yield Cell(study=ABLATION_STUDY, scenario=scenario, policies=policies, runs=extent.side_runs)


def cells(extent: Extent) -> list[Cell]:
    """Everything that is run, the comparison first."""
    sides = [*horizon_sweep(extent), *accept_sweep(extent), *ablation(extent)] if extent.with_sides else []
    return [*comparison(extent), *sides]
