"""`doral scenarios` and `doral policies`: what there is, a line each; `--json` has all that is known of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import typer
from rich.text import Text

from doral.cli import terminal
from doral.cli.campaign_words import json_line
from doral.simulation.catalogue.descriptions import PRESET_WORDS, RIVAL_WORDS, SCENARIO_WORDS

_GAP = 2
_LEAST_WORDS = 20  # columns that words need, however narrow the terminal is

POLICY_WORDS: Mapping[str, Mapping[str, str]] = {**PRESET_WORDS, **RIVAL_WORDS}


def show_scenarios(*, as_json: bool) -> None:
    """All scenarios."""
    if not as_json:
        _show(SCENARIO_WORDS)
        terminal.show_words("doral scenarios NAME shows one in full; doral simulate NAME lets policies play it.")
        return
    from doral.cli.scenario_facts import scenario_facts
    from doral.simulation.catalogue.lookup import SCENARIOS

    groups = {name: (group, words) for group, names in SCENARIO_WORDS.items() for name, words in names.items()}
    found = []
    for name, scenario in SCENARIOS.items():
        group, words = groups.get(name, ("", ""))
        found.append({"name": name, "group": group, "about": words, **scenario_facts(scenario)})
    typer.echo(json_line(found))


def show_policies(*, as_json: bool) -> None:
    """All policies."""
    if not as_json:
        _show(POLICY_WORDS)
        terminal.show_words("doral policies NAME shows one with its options; doral simulate SCENARIO -p NAME plays it.")
        rivals = ", ".join(name for names in RIVAL_WORDS.values() for name in names)
        terminal.show_words(f"Campaigns run all but {rivals}; and policies and models of your own (DORAL_CODE).")
        return
    from doral.cli.policy_facts import policy_facts
    from doral.simulation.rivals.rival import named_policy

    groups = {name: (group, words) for group, names in POLICY_WORDS.items() for name, words in names.items()}
    typer.echo(
        json_line(
            [
                {"name": name, "group": group, "about": words, **policy_facts(named_policy(name))}
                for name, (group, words) in groups.items()
            ]
        )
    )


def about(groups: Mapping[str, Mapping[str, str]], name: str) -> str:
    """The line of one of them; of what is not listed, none."""
    return next((names[name] for names in groups.values() if name in names), "")


def _show(groups: Mapping[str, Mapping[str, str]]) -> None:
    """Names and words in two columns; words that do not fit go on below each other."""
    console = terminal.output()
    widest = max(len(name) for names in groups.values() for name in names)
    room = max(_LEAST_WORDS, min(console.width, terminal.READ_WIDTH) - widest - 2 * _GAP)
    for group, names in groups.items():
        console.print(Text(group, style="bold"))
        for name, words in names.items():
            first, *more = textwrap.wrap(words, room)
            for start, line in [(name, first), *(("", line) for line in more)]:
                console.print(Text(f"{'':{_GAP}}{start:{widest}}{'':{_GAP}}{line}"), soft_wrap=True)
        console.print()
