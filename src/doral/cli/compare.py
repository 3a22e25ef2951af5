"""`doral compare`: every policy on every scenario, as a table in colours, with what follows from it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path

from doral.cli import tables
from doral.cli.exits import announce_compiling
from doral.cli.policy_words import parse_policy
from doral.environments.catalogue import scenario
from doral.environments.scenario import Scenario
from doral.experiments.beyond.plan import FULL, QUICK, ComparePlan
from doral.policies.options import PolicyOptions


def make_plan(
    *,
    policies: tuple[PolicyOptions, ...],
    scenarios: tuple[Scenario, ...],
    runs: int | None,
    is_quick: bool,
    table_only: bool,
) -> ComparePlan:
    """The plan that the options ask for: nothing named means everything, and sides take no more runs than the table."""
    plan = QUICK if is_quick else FULL
    wanted = plan.runs if runs is None else runs
    return dataclasses.replace(
        plan,
        policies=policies or plan.policies,
        scenarios=scenarios or plan.scenarios,
        runs=wanted,
        side_runs=min(plan.side_runs, wanted),
        table_only=table_only,
    )


def command_of(plan: ComparePlan, seed: int, *, scenarios: Sequence[str], policies: Sequence[str]) -> str:
    """The command that gives the same numbers."""
    words = ["doral", "compare", *(word for name in scenarios for word in ("-s", name))]
    words += [word for one in policies for word in ("-p", one)]
    words += ["--runs", str(plan.runs), "--seed", str(seed)]
    words += ["--quick"] if plan.is_quick else []
    words += ["--table-only"] if plan.table_only else []
    return shlex.join(words)


def run(
    scenarios: list[str],
    policies: list[str],
    *,
    runs: int | None,
    seed: int,
    out: Path,
    jobs: int,
    is_quick: bool,
    table_only: bool,
) -> None:
    """Everything that the command does."""
    plan = make_plan(
        policies=tuple(parse_policy(word) for word in policies),
        scenarios=tuple(scenario(name) for name in scenarios),
        runs=runs,
        is_quick=is_quick,
        table_only=table_only,
    )
    # Only now: a misspelt name is answered at once.
    from doral.cli.heat_table import show_shares
    from doral.cli.progress import progress
    from doral.cli.verdicts import show_claims
    from doral.experiments import folder
    from doral.experiments.beyond.compare import check_plan, compare
    from doral.experiments.beyond.page import where_not_ahead

    check_plan(plan, seed=seed)
    folder.check(out)
    announce_compiling()
    command = command_of(plan, seed, scenarios=scenarios, policies=policies)
    with progress() as shown:
        found = compare(plan, seed=seed, n_jobs=jobs, folder=out, progress=shown, command=command)
    show_shares(found)
    console = tables.output()
    said = where_not_ahead(found)
    if said:
        console.print(said, markup=False)
    if found.claims:
        show_claims(found.claims, place="scenario", places={}, is_signed=False)
        held = sum(claim.holds for claim in found.claims)
        console.print(f"{held} of {len(found.claims)} targets are reached")
    if plan.is_quick:
        console.print("a quick try-out: nothing about the policies follows from it")
    console.print(f"report: {out / folder.REPORT_FILE}", soft_wrap=True, markup=False)
