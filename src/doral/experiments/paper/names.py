"""The paper's policies, scenarios and figures, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass

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
