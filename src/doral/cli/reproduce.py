"""`doral reproduce`: the paper's experiments, with progress, and what they say."""

from __future__ import annotations

from pathlib import Path

from doral.cli import terminal
from doral.cli.conducting import command_of, conduct_shown, say_where
from doral.cli.verdicts import show_claims
from doral.experiments.kit.claim import held
from doral.experiments.paper.cells import FULL, QUICK, SHORT_TITLES
from doral.experiments.paper.page import EXPERIMENT


def run(
    *, runs: int | None, seed: int, out: Path, jobs: int, cluster: str | None, is_quick: bool, comparison_only: bool
) -> None:
    """Everything that the command does."""
    extent = (QUICK if is_quick else FULL).asked_for(runs=runs, main_only=comparison_only)
    command = command_of("reproduce", extent, seed=seed, main_only="--comparison-only")
    found = conduct_shown(EXPERIMENT, extent, seed=seed, jobs=jobs, cluster=cluster, out=out, command=command)
    show_claims(found.claims, place="delays", places=SHORT_TITLES, unit=", %")
    quick = " (a quick try-out: nothing about the paper follows from it)" if extent.is_quick else ""
    terminal.output().print(f"{held(found.claims)} of {len(found.claims)} claims hold{quick}")
    say_where(out)
