"""The paper's comparison, sweeps over what it leaves open, and an ablation of our reading, as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from doral.engine.options import make_policy as policy
from doral.experiments.kit.batches import Cell, Extent, Variant, shrunk
from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.scenario.scenario import Scenario

SHOWN_NAMES = {"doral": "DORAL", "d-alp": "D-ALP", "d-linucb": "D-LinUCB", "random": "Random"}
POLICIES = tuple(SHOWN_NAMES)
SIMILAR_GEOMETRIC, SIMILAR_PARETO = "paper/similar-geometric", "paper/similar-pareto"
DIVERSE_GEOMETRIC, DIVERSE_PARETO = "paper/diverse-geometric", "paper/diverse-pareto"


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """One of the paper's figures."""

    name: str
    scenario: str
    title: str


FIGURES = (
    PaperFigure(name="fig1a", scenario=SIMILAR_GEOMETRIC, title="Fig. 1(a): similar geometric delays"),
    PaperFigure(name="fig1b", scenario=SIMILAR_PARETO, title="Fig. 1(b): similar Pareto delays"),
    PaperFigure(name="fig2a", scenario=DIVERSE_GEOMETRIC, title="Fig. 2(a): diverse geometric delays"),
    PaperFigure(name="fig2b", scenario=DIVERSE_PARETO, title="Fig. 2(b): diverse Pareto delays"),
)
SCENARIO_NAMES = tuple(figure.scenario for figure in FIGURES)
SHORT_TITLES = {figure.scenario: figure.title.partition(": ")[2].removesuffix(" delays") for figure in FIGURES}


def _variant(says: str, **options: Any) -> Variant:
    return Variant(policy=policy("doral", **options), says=says, reference="doral")


ABLATION = (
    Variant(policy=policy("doral"), says="the reading of this reproduction", reference="doral"),
    Variant(policy=policy("doral/literal"), says="every piece as printed, at once", reference="doral"),
    _variant("printed rule of acceptance, which picks slow arms", printed=["acceptance"]),
    _variant("printed number of baskets", printed=["baskets"]),
    _variant("cut-off m over all arms, as printed", printed=["cutoff"]),
    _variant("printed ridge: all pulls, returned rewards", learner="thinned"),
    _variant("ridge on features times return probability", learner="scaled"),
    _variant("printed confidence bonus", printed=["bonus"]),
    _variant("arm by the index alone, as printed", printed=["choice"]),
    _variant("true return probabilities given", return_probability="oracle"),
    _variant("return probability by m, not by the deadline", printed=["returns"]),
    _variant("printed rate b_t / t", printed=["rate"]),
    _variant("race counts pending pulls at their age", censoring="min_age"),
    _variant("race on Kaplan-Meier means", censoring="kaplan_meier"),
    _variant("race is told every delay at once", censoring="instant"),
    *(
        Variant(policy=policy(name), says=says, reference=name.partition("/")[0])
        for preset in POLICIES[1:]
        for name, says in (
            (preset, "the reading of this reproduction"),
            (f"{preset}/literal", "every piece as printed, at once"),
        )
    ),
)


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
