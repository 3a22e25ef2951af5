"""`doral compare`: every policy on every scenario, as a table in colours, with what follows from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from doral.cli import terminal
from doral.cli.policy_words import parse_policy
from doral.experiments.beyond.cells import FULL, QUICK, BeyondExtent
from doral.simulation.catalogue.lookup import named_scenario as scenario


def _extent(
    scenarios: list[str], policies: list[str], *, runs: int | None, is_quick: bool, table_only: bool
) -> BeyondExtent:
    """What the options ask for: nothing named means everything."""
    extent = (QUICK if is_quick else FULL).asked_for(runs=runs, main_only=table_only)
    return dataclasses.replace(
        extent,
        policies=tuple(parse_policy(word) for word in policies) or extent.policies,
        scenarios=tuple(scenario(name) for name in scenarios) or extent.scenarios,
    )


def run(
    scenarios: list[str],
    policies: list[str],
    *,
    runs: int | None,
    seed: int,
    out: Path,
    jobs: int,
    cluster: str | None,
    is_quick: bool,
    table_only: bool,
) -> None:
    """Everything that the command does."""
    extent = _extent(scenarios, policies, runs=runs, is_quick=is_quick, table_only=table_only)
    # Only now: a misspelt name is answered at once.
    from doral.cli.conducting import command_of, conduct_shown, say_where
    from doral.cli.heat_table import show_shares
    from doral.cli.verdicts import show_claims
    from doral.experiments.beyond.page import EXPERIMENT, where_not_ahead
    from doral.experiments.kit.claim import held

    words = [word for name in scenarios for word in ("-s", name)] + [word for one in policies for word in ("-p", one)]
    command = command_of("compare", extent, seed=seed, main_only="--table-only", words=words)
    found = conduct_shown(EXPERIMENT, extent, seed=seed, jobs=jobs, cluster=cluster, out=out, command=command)
    show_shares(found)
    console = terminal.output()
    said = where_not_ahead(found)
    if said:
        console.print(said, markup=False)
    if found.claims:
        show_claims(found.claims, place="scenario", places={}, is_signed=False)
        console.print(f"{held(found.claims)} of {len(found.claims)} targets are reached")
    if extent.is_quick:
        console.print("a quick try-out: nothing about the policies follows from it")
    say_where(out)
