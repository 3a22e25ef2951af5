"""`doral experiment reproduce|compare`: the paper's experiments, and every policy on every scenario."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.command import command, group, if_interrupted, json_line
from doral.cli.options import (
    Cluster,
    Jobs,
    Json,
    OutFolder,
    Policies,
    Seed,
    check_workers,
    computing_on,
    offer_scenarios,
)

if TYPE_CHECKING:
    from doral.experiments.beyond.analysis import BeyondFindings
    from doral.experiments.kit.batches import Extent
    from doral.experiments.kit.claim import Claim
    from doral.experiments.kit.conduct import AnyExtent, AnyFindings, Experiment

app = group("experiment", "The experiments of this project: figures, tables, claims, a report.")

GOES_ON = "finished parts are kept, the same command goes on from here"
_WIDE_COLUMNS = 150  # a narrower terminal gets the short names of the claims
_COLUMN_GAP = 3  # what a table puts between columns, at most
_VERDICTS = {"holds": ("holds", "green"), "fails": ("FAILS", "red"), "not shown": ("not shown", "yellow")}
# Backgrounds from pale to deep, with a text colour that stands out on each.
_SHADES = (
    "black on #eff3ff",
    "black on #c6dbef",
    "black on #9ecae1",
    "black on #6baed6",
    "white on #2171b5",
    "white on #08306b",
)
_CELL = "100.0*"
_RENAMED = {"--out": "--out-dir", "-o": "--out-dir"}

Runs = Annotated[int | None, typer.Option("--runs", "-n", min=1, help="Runs of each scenario; fewer with --quick.")]
Quick = Annotated[bool, typer.Option("--quick", help="A try-out with few, short runs; it proves nothing.")]
MainOnly = Annotated[
    bool, typer.Option("--main-only", help="The main table and its claims, without sweeps and ablation.")
]


@command(app, example="doral experiment reproduce --quick", renamed={**_RENAMED, "--comparison-only": "--main-only"})
def reproduce(
    runs: Runs = None,
    seed: Seed = 0,
    out: OutFolder = Path("reproduction"),
    jobs: Jobs = -1,
    cluster: Cluster = None,
    quick: Quick = False,
    main_only: MainOnly = False,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments: figures, tables, claims, report.

    Once interrupted, it goes on where it stopped.
    """
    check_workers(jobs, cluster)
    from doral.experiments.paper.cells import FULL, QUICK, SHORT_TITLES
    from doral.experiments.paper.page import EXPERIMENT

    extent = (QUICK if quick else FULL).asked_for(runs=runs, main_only=main_only)
    again = _command("reproduce", extent, seed=seed)
    findings = _conduct(EXPERIMENT, extent, seed=seed, jobs=jobs, cluster=cluster, out=out, again=again)
    if as_json:
        _show_json(findings.claims, out)
        return
    _show_claims(findings.claims, place="delays", places=SHORT_TITLES, unit=", %")
    _show_end(findings.claims, "claims hold", "the paper" if extent.is_quick else "", out)


@command(
    app,
    example="doral experiment compare stress/short --quick",
    renamed={**_RENAMED, "--scenario": "", "-s": "", "--table-only": "--main-only"},
)
def compare(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENARIO",
            help="Names from `doral scenarios`; without one, all of them.",
            autocompletion=offer_scenarios,
        ),
    ] = None,
    policies: Policies = None,
    runs: Runs = None,
    seed: Seed = 0,
    out: OutFolder = Path("comparison"),
    jobs: Jobs = -1,
    cluster: Cluster = None,
    quick: Quick = False,
    main_only: MainOnly = False,
    as_json: Json = False,
) -> None:
    """Let every policy play every scenario: one table and a report.

    The report also says what doral-otf is made of. Once interrupted, it goes on where it stopped.
    """
    check_workers(jobs, cluster)
    from doral.cli.catalogue import parse_policy
    from doral.experiments.beyond.cells import FULL, QUICK
    from doral.simulation.catalogue.lookup import named_scenario

    extent = (QUICK if quick else FULL).asked_for(runs=runs, main_only=main_only)
    extent = dataclasses.replace(
        extent,
        policies=tuple(parse_policy(word) for word in policies or ()) or extent.policies,
        scenarios=tuple(named_scenario(name) for name in scenarios or ()) or extent.scenarios,
    )
    # Only now: a misspelt name is answered at once.
    from doral.experiments.beyond.page import EXPERIMENT, where_not_ahead

    words = [*(scenarios or ()), *(word for one in policies or () for word in ("-p", one))]
    again = _command("compare", extent, seed=seed, words=words)
    findings = _conduct(EXPERIMENT, extent, seed=seed, jobs=jobs, cluster=cluster, out=out, again=again)
    if as_json:
        _show_json(findings.claims, out, shares=findings.shares.to_dicts())
        return
    show_shares(findings)
    where = where_not_ahead(findings)
    if where:
        typer.echo(where)
    if findings.claims:
        _show_claims(findings.claims, place="scenario", places={}, is_signed=False)
    _show_end(findings.claims, "targets are reached", "the policies" if extent.is_quick else "", out)


def _command(name: str, extent: Extent, *, seed: int, words: Sequence[str] = ()) -> str:
    """Return the command that gives the same numbers."""
    again = ["doral", "experiment", name, *words, "--runs", str(extent.runs), "--seed", str(seed)]
    again += ["--quick"] if extent.is_quick else []
    return shlex.join(again + (["--main-only"] if extent.main_only else []))


def _conduct(
    experiment: Experiment[AnyExtent, AnyFindings],
    extent: AnyExtent,
    *,
    seed: int,
    jobs: int,
    cluster: str | None,
    out: Path,
    again: str,
) -> AnyFindings:
    """Conduct it with progress; what is wrong with the request is said before anything is compiled."""
    from doral.cli.terminal import Progress
    from doral.experiments.kit.conduct import check, conduct

    check(experiment.cells(extent), extent, seed=seed, out=out)
    with if_interrupted(GOES_ON), computing_on(cluster), Progress() as progress:
        return conduct(experiment, extent, seed=seed, n_jobs=jobs, out=out, progress=progress, command=again)


def _show_json(claims: Iterable[Claim], out: Path, **more: Any) -> None:
    from doral.experiments.kit.conduct import REPORT_FILE

    typer.echo(json_line({"claims": [one.to_dict() for one in claims], **more, "report": str(out / REPORT_FILE)}))


def _show_end(claims: Sequence[Claim], words: str, unproven: str, out: Path) -> None:
    """Say how many claims hold, and where to read more."""
    from doral.experiments.kit.claim import held
    from doral.experiments.kit.conduct import REPORT_FILE

    if claims:
        typer.echo(f"{held(claims)} of {len(claims)} {words}")
    if unproven:
        typer.echo(f"a quick try-out: nothing about {unproven} follows from it")
    typer.echo(f"report: {out / REPORT_FILE}")


def _show_claims(
    claims: Iterable[Claim], *, place: str, places: Mapping[str, str], unit: str = "", is_signed: bool = True
) -> None:
    """Print a table of claims.

    Args:
        claims: Its rows.
        place: Head of the column of scenarios.
        places: Names of scenarios for people.
        unit: That of all estimates, where they have one in common.
        is_signed: Whether estimates are differences.
    """
    from rich.text import Text

    from doral.cli import terminal
    from doral.pages.numbers import number, spread

    is_wide = terminal.output().width >= _WIDE_COLUMNS
    rows: list[list[str | Text]] = []
    for claim in claims:
        words, style = _VERDICTS[claim.verdict]
        bounds = spread(claim.low, claim.high, 2, signed=is_signed)
        estimate = number(claim.estimate, 2, signed=is_signed)
        names = [claim.statement, places.get(claim.scenario, claim.scenario)] if is_wide else [claim.id]
        rows.append([Text(words, style=style), *names, estimate, bounds, *([claim.unit] if is_wide else [])])
    if is_wide:
        terminal.show_table(["", "claim", place, "estimate", "95% interval", "unit"], rows, numbers=(3, 4))
    else:
        terminal.show_table(["", "claim", f"estimate{unit}", "95% interval"], rows, numbers=(2, 3))


def show_shares(findings: BeyondFindings) -> None:
    """Print policies on scenarios in colours; on a narrow terminal in several tables."""
    from rich.text import Text

    from doral.cli import terminal
    from doral.experiments.beyond.analysis import SIGNS, SIGNS_KEY, depth_of_share
    from doral.experiments.beyond.cells import short_name
    from doral.pages.numbers import number

    def cell(scenario: str, policy: str) -> Text:
        row = findings.row(scenario, policy)
        shade = _SHADES[min(len(_SHADES) - 1, int(depth_of_share(row["share_percent"]) * len(_SHADES)))]
        return Text(number(row["share_percent"], 1) + (SIGNS[row["mark"]] or " "), style=shade)

    console = terminal.output()
    names = [short_name(name) for name in findings.scenarios]
    left = max(len(name) for name in ("scenario", *names))
    for policies in _fitting(findings.policies, console.width - left):
        rows: list[list[str | Text]] = [
            [name, *(cell(scenario, policy) for policy in policies)]
            for name, scenario in zip(names, findings.scenarios, strict=True)
        ]
        terminal.show_table(["scenario", *policies], rows, numbers=range(1, len(policies) + 1))
    console.print(f"% of the oracle's reward; {SIGNS_KEY}")


def _fitting(policies: Sequence[str], width: int) -> Iterable[tuple[str, ...]]:
    """Split policies into groups that fit beside the names of the scenarios, at least one in each."""
    fitting: list[str] = []
    for name in policies:
        needed = sum(max(len(_CELL), len(one)) + _COLUMN_GAP for one in (*fitting, name))
        if fitting and needed > width:
            yield tuple(fitting)
            fitting = []
        fitting.append(name)
    yield tuple(fitting)
