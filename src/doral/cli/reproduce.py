"""`doral reproduce`: the paper's experiments, with progress, and what they say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rich.text import Text

from doral.cli import tables
from doral.cli.exits import announce_compiling
from doral.cli.progress import progress
from doral.experiments.folder import REPORT_FILE
from doral.experiments.paper import FULL, QUICK, SHORT_TITLES, Plan
from doral.experiments.report.markup import number, spread
from doral.experiments.reproduce import reproduce

WIDE_COLUMNS = 150  # a narrower terminal gets the short names of the claims
_STYLES = {"holds": ("holds", "green"), "fails": ("DOES NOT HOLD", "red"), "undecided": ("NOT SHOWN", "red")}


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
    is_wide = console.width >= WIDE_COLUMNS
    rows: list[list[str | Text]] = []
    for claim in found.claims:
        words, style = _STYLES[claim.verdict]
        bounds = spread(claim.low, claim.high, 2, signed=True)
        estimate = number(claim.estimate, 2, signed=True)
        said = [claim.statement, SHORT_TITLES[claim.scenario]] if is_wide else [claim.id]
        rows.append([Text(words, style=style), *said, estimate, bounds, *([claim.unit] if is_wide else [])])
    if is_wide:
        tables.show(["", "claim", "delays", "estimate", "95% interval", "unit"], rows, numbers=(3, 4))
    else:
        tables.show(["", "claim", "estimate, %", "95% interval"], rows, numbers=(2, 3))
    held = sum(claim.holds for claim in found.claims)
    quick = " (a quick try-out: nothing about the paper follows from it)" if plan.is_quick else ""
    console.print(f"{held} of {len(found.claims)} claims hold{quick}")
    console.print(f"report: {out / REPORT_FILE}", soft_wrap=True, markup=False)
