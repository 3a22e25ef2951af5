"""`doral reproduce`: the paper's experiments, with progress, and what they say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from doral.cli import tables
from doral.cli.exits import announce_compiling
from doral.cli.progress import progress
from doral.cli.verdicts import show_claims
from doral.experiments.folder import REPORT_FILE
from doral.experiments.paper import FULL, QUICK, SHORT_TITLES, Plan
from doral.experiments.reproduce import reproduce


def make_plan(*, runs: int | None, is_quick: bool, comparison_only: bool) -> Plan:
    """The plan that the options ask for; the sweeps never take more runs than the comparison."""
    plan = QUICK if is_quick else FULL
    wanted = plan.runs if runs is None else runs
    return dataclasses.replace(plan, runs=wanted, side_runs=min(plan.side_runs, wanted), with_sides=not comparison_only)


def command_of(plan: Plan, seed: int) -> str:
    """The command that gives the same numbers."""
    words = ["doral reproduce", f"--runs {plan.runs}", f"--seed {seed}"]
    words += ["--quick"] if plan.is_quick else []
    words += [] if plan.with_sides else ["--comparison-only"]
    return " ".join(words)


def run(*, runs: int | None, seed: int, out: Path, jobs: int, is_quick: bool, comparison_only: bool) -> None:
    """Everything that the command does."""
    plan = make_plan(runs=runs, is_quick=is_quick, comparison_only=comparison_only)
    announce_compiling()
    with progress() as shown:
        found = reproduce(plan, seed=seed, n_jobs=jobs, folder=out, progress=shown, command=command_of(plan, seed))
    console = tables.output()
    show_claims(found.claims, place="delays", places=SHORT_TITLES, unit=", %")
    held = sum(claim.holds for claim in found.claims)
    quick = " (a quick try-out: nothing about the paper follows from it)" if plan.is_quick else ""
    console.print(f"{held} of {len(found.claims)} claims hold{quick}")
    console.print(f"report: {out / REPORT_FILE}", soft_wrap=True, markup=False)
