"""The commands and their options. What they do is imported when they run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from doral import __version__
from doral.cli import completing
from doral.cli.campaigns import app as campaigns
from doral.cli.cluster import HELP as _CLUSTER_HELP
from doral.cli.cluster import check_cluster
from doral.cli.evaluation import evaluate
from doral.cli.exits import check_jobs, exit_codes
from doral.cli.help_text import Grouped
from doral.cli.initial import init
from doral.cli.keys import app as keys
from doral.cli.logs import app as logs
from doral.cli.plan import plan
from doral.cli.serve import serve

app = typer.Typer(
    name="doral",
    help="Spend a limited budget well when answers come back late, or never.",
    cls=Grouped,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Frames and colours are for people at a terminal; everybody else gets plain text.
    rich_markup_mode="rich" if sys.stdout.isatty() and sys.stderr.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Groups of commands, in the order in which the help lists them.
_START, _SIMULATE, _OWN_DATA, _LIVE = "Start", "Simulate", "Your own data", "Live campaigns"

_POLICIES = ["doral-otf", "doral", "d-alp", "d-linucb", "random"]
_POLICY_HELP = "A name from `doral policies`, with options as in doral:accept=3,exploration=0.5. May be given again."
_METRIC_HELP = "What the printed table counts: within_deadline, by_end or within_cutoff."
_OUT_HELP = "Write the summary to this file (.csv, .parquet, .json) instead of printing a table."
_RUNS_OUT_HELP = (
    "Also write one row per policy and run to this file (.csv, .parquet, .json); a .parquet is written as runs come, "
    "takes no more memory for more of them, and once interrupted goes on where it stopped."
)
_GOES_ON = "finished parts are kept, the same command goes on from here"
_WIDE_HELP = "All columns of the table, however narrow the terminal is."
_COMPARISON_RUNS_HELP = "Runs of the comparison; 50 as in the paper, or 5 with --quick."
_FOLDER_HELP = "Folder for figures, tables and report."
_COMPARISON_ONLY_HELP = "The paper's figures and claims, without sweeps and ablation."

_COMPARED_SCENARIO_HELP = "A name from `doral scenarios`; without one, all of them. May be given again."
_COMPARED_POLICY_HELP = (
    "A name from `doral policies`, with options as in doral:accept=3; without one, all that are not literal. "
    "May be given again."
)
_COMPARE_RUNS_HELP = "Runs of the table; 20, or 3 with --quick."
_TABLE_ONLY_HELP = "The table and its targets, without the ingredients of doral-otf and the sweeps behind its choices."

Seed = Annotated[int, typer.Option(min=0, help="Seed of all draws; the same seed gives the same numbers, to the bit.")]
Json = Annotated[bool, typer.Option("--json", help="JSON with all details instead of text.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Parallel workers; -1 uses all cores. Changes no number.")]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help=_CLUSTER_HELP)]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"doral {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command(rich_help_panel=_START)(init)


@app.command(rich_help_panel=_START)
def policies(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One of them, in full.", autocompletion=completing.policies),
    ] = None,
    option: Annotated[str | None, typer.Argument(metavar="[OPTION]", help="What this option of it means.")] = None,
    as_json: Json = False,
) -> None:
    """List the policies; with a name, show one with all its options."""
    with exit_codes(if_interrupted="nothing was written"):
        if name is None:
            from doral.cli.listing import show_policies

            show_policies(as_json=as_json)
            return
        from doral.cli.policy_facts import show_option, show_policy

        if option is not None:
            show_option(name, option)
            return
        show_policy(name, as_json=as_json)


@app.command(rich_help_panel=_START)
def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="One of them, or a JSON file, in full.",
            autocompletion=completing.scenarios_and_files,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the scenarios; with a name, show one in full."""
    with exit_codes(if_interrupted="nothing was written"):
        if name is None:
            from doral.cli.listing import show_scenarios

            show_scenarios(as_json=as_json)
            return
        from doral.cli.scenario_facts import show_scenario
        from doral.cli.simulate import scenario_of

        show_scenario(scenario_of(name), as_json=as_json)


@app.command(rich_help_panel=_SIMULATE)
def simulate(
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO",
            help="Names from `doral scenarios`, or TOML or JSON files as `doral init` writes them.",
            autocompletion=completing.scenarios_and_files,
        ),
    ],
    policies: Annotated[
        list[str],
        typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP, autocompletion=completing.policies),
    ] = _POLICIES,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Runs of each scenario.")] = 10,
    seed: Seed = 0,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    metric: Annotated[str, typer.Option(help=_METRIC_HELP)] = "within_deadline",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help=_OUT_HELP)] = None,
    runs_out: Annotated[Path | None, typer.Option(metavar="FILE", help=_RUNS_OUT_HELP)] = None,
    wide: Annotated[bool, typer.Option("--wide", "-w", help=_WIDE_HELP)] = False,
) -> None:
    """Let policies play scenarios, all on the same draws, and compare them."""
    is_kept = runs_out is not None and runs_out.suffix.lower() == ".parquet"
    with exit_codes(if_interrupted=_GOES_ON if is_kept else "nothing was written"):
        check_jobs(jobs)
        check_cluster(cluster, jobs=jobs)
        from doral.cli import simulate as command

        command.run(
            scenarios,
            policies,
            are_chosen=policies != _POLICIES,
            runs=runs,
            seed=seed,
            jobs=jobs,
            cluster=cluster,
            metric=metric,
            out=out,
            runs_out=runs_out,
            wide=wide,
        )


@app.command(rich_help_panel=_SIMULATE)
def reproduce(
    runs: Annotated[int | None, typer.Option("--runs", "-n", min=1, help=_COMPARISON_RUNS_HELP)] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help=_FOLDER_HELP)] = Path("reproduction"),
    jobs: Jobs = -1,
    cluster: Cluster = None,
    quick: Annotated[bool, typer.Option("--quick", help="A try-out with few, short runs.")] = False,
    comparison_only: Annotated[bool, typer.Option("--comparison-only", help=_COMPARISON_ONLY_HELP)] = False,
) -> None:
    """Run the paper's experiments: figures, tables, claims, report.

    Once interrupted, it goes on where it stopped.
    """
    with exit_codes(if_interrupted=_GOES_ON):
        check_jobs(jobs)
        check_cluster(cluster, jobs=jobs)
        from doral.cli import reproduce as command

        command.run(
            runs=runs,
            seed=seed,
            out=out,
            jobs=jobs,
            cluster=cluster,
            is_quick=quick,
            comparison_only=comparison_only,
        )


@app.command(rich_help_panel=_SIMULATE)
def compare(
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "-s",
            metavar="SCENARIO",
            help=_COMPARED_SCENARIO_HELP,
            autocompletion=completing.scenarios,
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", metavar="POLICY", help=_COMPARED_POLICY_HELP, autocompletion=completing.policies
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option("--runs", "-n", min=1, help=_COMPARE_RUNS_HELP)] = None,
    seed: Seed = 0,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help=_FOLDER_HELP)] = Path("comparison"),
    jobs: Jobs = -1,
    cluster: Cluster = None,
    quick: Annotated[bool, typer.Option("--quick", help="A try-out with few, short runs; it proves nothing.")] = False,
    table_only: Annotated[bool, typer.Option("--table-only", help=_TABLE_ONLY_HELP)] = False,
) -> None:
    """Let every policy play every scenario: one table and a report.

    The report also says what doral-otf is made of. Once interrupted, it goes on where it stopped.
    """
    with exit_codes(if_interrupted=_GOES_ON):
        check_jobs(jobs)
        check_cluster(cluster, jobs=jobs)
        from doral.cli import compare as command

        command.run(
            scenarios or [],
            policies or [],
            runs=runs,
            seed=seed,
            out=out,
            jobs=jobs,
            cluster=cluster,
            is_quick=quick,
            table_only=table_only,
        )


app.command(rich_help_panel=_OWN_DATA)(plan)
app.command(rich_help_panel=_OWN_DATA)(evaluate)
app.add_typer(logs, name="log", rich_help_panel=_OWN_DATA)
app.add_typer(campaigns, rich_help_panel=_LIVE)
app.command(rich_help_panel=_LIVE)(serve)
app.add_typer(keys, rich_help_panel=_LIVE)
