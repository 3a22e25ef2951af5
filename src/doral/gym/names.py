"""What scenarios are called as environments."""

from __future__ import annotations

import re

from doral.simulation.catalogue.descriptions import PEOPLE, SCENARIO_WORDS

ANY = "doral/Scenario-v0"


def environment_name(scenario: str) -> str:
    """The name of a scenario of the catalogue as an environment.

    >>> environment_name("paper/diverse-pareto"), environment_name("people/linear@strata")
    ('doral/DiversePareto-v0', 'doral/PeopleLinearStrata-v0')
    """
    group, _, name = scenario.partition("/")
    words = re.split("[-@]", name if group != "people" else f"{group}-{name}")
    return f"doral/{''.join(word.capitalize() for word in words)}-v0"


def environments() -> dict[str, str]:
    """From the names of environments to those of their scenarios.

    >>> environments()["doral/Tiny-v0"]
    'stress/tiny'
    """
    names = [name for words in SCENARIO_WORDS.values() for name in words]
    stratified = [f"{name}@strata" for name in SCENARIO_WORDS[PEOPLE]]
    return {environment_name(name): name for name in (*names, *stratified)}
