"""What is run, as data: the paper's comparison, sweeps over what it leaves open, and an ablation of our reading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from doral.environments import paper
from doral.experiments.cells import Cell, Variant, shrunk
from doral.policies.presets import policy

POLICIES = ("doral", "d-alp", "d-linucb", "random")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of it is run."""

    runs: int
    """Runs of the comparison."""
    side_runs: int
    """Runs of the sweeps and of the ablation, where differences are large enough to be seen with fewer."""
    shrink: int = 1
    """Budget and horizons are divided by it; delays and the deadline are not."""
    with_sides: bool = True
    """Whether sweeps and ablation are run."""

    @property
    def is_quick(self) -> bool:
        """Whether this is a try-out, from which nothing about the paper follows."""
        return self.shrink != 1


FULL = Plan(runs=50, side_runs=20)
QUICK = Plan(runs=5, side_runs=2, shrink=5)


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """One of the paper's figures."""

    name: str
    scenario: str
    title: str


FIGURES = (
    PaperFigure(name="fig1a", scenario="paper/similar-geometric", title="Fig. 1(a): similar geometric delays"),
    PaperFigure(name="fig1b", scenario="paper/similar-pareto", title="Fig. 1(b): similar Pareto delays"),
    PaperFigure(name="fig2a", scenario="paper/diverse-geometric", title="Fig. 2(a): diverse geometric delays"),
    PaperFigure(name="fig2b", scenario="paper/diverse-pareto", title="Fig. 2(b): diverse Pareto delays"),
)
SCENARIO_NAMES = tuple(figure.scenario for figure in FIGURES)
SHORT_TITLES = {figure.scenario: figure.title.partition(": ")[2].removesuffix(" delays") for figure in FIGURES}


def _variant(says: str, **options: Any) -> Variant:
    return Variant(policy=policy("doral", **options), says=says, reference="doral")


ABLATION = (
    Variant(policy=policy("doral"), says="the reading of this reproduction", reference="doral"),
    Variant(policy=policy("doral/literal"), says="every piece as printed, at once", reference="doral"),
    _variant("printed rule of acceptance, which picks slow arms", acceptance="printed"),
    _variant("printed number of baskets", baskets="printed"),
    _variant("cut-off m over all arms, as printed", cutoff_over="all"),
    _variant("printed ridge: all pulls, returned rewards", learner="thinned"),
    _variant("ridge on features times return probability", learner="scaled"),
    _variant("printed confidence bonus", bonus="printed"),
    _variant("arm by the index alone, as printed", choice="unweighted"),
    _variant("true return probabilities given", return_probability="oracle"),
    _variant("return probability by m, not by the deadline", return_by="cutoff"),
    _variant("printed rate b_t / t", rate="printed"),
    _variant("race counts pending pulls at their age", censoring="min_age"),
    _variant("race on Kaplan-Meier means", censoring="kaplan_meier"),
    _variant("race is told every delay at once", censoring="instant"),
    _variant("answers of the race do not train rewards", race_trains=False),
    *(
        Variant(policy=policy(name), says=says, reference=name.partition("/")[0])
        for preset in POLICIES[1:]
        for name, says in (
            (preset, "the reading of this reproduction"),
            (f"{preset}/literal", "every piece as printed, at once"),
        )
    ),
)


def comparison(plan: Plan) -> Iterable[Cell]:
    """The paper's four figures."""
    for name in SCENARIO_NAMES:
        yield Cell(
            experiment="comparison",
            scenario=shrunk(paper.SCENARIOS[name], plan.shrink),
            policies=tuple(policy(one) for one in POLICIES),
            runs=plan.runs,
            keep_curves=True,
        )


def horizon_sweep(plan: Plan) -> Iterable[Cell]:
    """The comparison at other horizons T; the paper's own is in the comparison already."""
    for name in SCENARIO_NAMES:
        for horizon in paper.SWEEP_HORIZONS:
            if horizon != paper.HORIZON:
                yield Cell(
                    experiment="horizon",
                    scenario=paper.with_horizon(shrunk(paper.SCENARIOS[name], plan.shrink), horizon // plan.shrink),
                    policies=tuple(policy(one) for one in POLICIES),
                    runs=plan.side_runs,
                )


def accept_sweep(plan: Plan) -> Iterable[Cell]:
    """DORAL with every A', the number of arms that the race accepts."""
    for name in SCENARIO_NAMES:
        yield Cell(
            experiment="accept",
            scenario=shrunk(paper.SCENARIOS[name], plan.shrink),
            policies=tuple(policy("doral", accept=accept) for accept in paper.SWEEP_ACCEPTED),
            runs=plan.side_runs,
        )


def ablation(plan: Plan) -> Iterable[Cell]:
    """DORAL with one piece at a time as printed, and every policy as printed throughout."""
    for name in SCENARIO_NAMES:
        yield Cell(
            experiment="ablation",
            scenario=shrunk(paper.SCENARIOS[name], plan.shrink),
            policies=tuple(variant.policy for variant in ABLATION),
            runs=plan.side_runs,
        )


def cells(plan: Plan) -> list[Cell]:
    """Everything that a plan runs, the comparison first."""
    sides = [*horizon_sweep(plan), *accept_sweep(plan), *ablation(plan)] if plan.with_sides else []
    return [*comparison(plan), *sides]
