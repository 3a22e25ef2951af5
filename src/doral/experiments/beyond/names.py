"""What is compared, and what it is called."""

from __future__ import annotations

from doral.simulation.catalogue import paper as paper_scenarios
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS

REFERENCE = "doral-otf"
"""The policy that sweeps, variants and most claims are about."""
PAPER_SCENARIOS = tuple(paper_scenarios.SCENARIOS)
STRESS_SCENARIOS = tuple(name for name in CLASS_SCENARIOS if name not in PAPER_SCENARIOS)
DIVERSE_PARETO = "paper/diverse-pareto"


def short_name(scenario: str) -> str:
    """A scenario without its family.

    >>> short_name("stress/many-arms")
    'many-arms'
    """
    return scenario.rpartition("/")[2]


def changed_words(name: str) -> str:
    """The changed words of a variant, as they are given to `doral.policy`.

    >>> changed_words("doral-otf(curves_by=arm)")
    'curves_by=arm'
    """
    return name.partition("(")[2].removesuffix(")")
