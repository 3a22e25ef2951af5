"""`doral plan`: from a log to a decision. What the command needs is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doral.cli.campaign_options import DEFAULT_STORAGE, Storage, refuse_unkept
from doral.cli.cluster import HELP as CLUSTER_HELP
from doral.cli.cluster import check_cluster
from doral.cli.exits import check_jobs, exit_codes

_LOG_HELP = "CSV or Parquet: one row for everybody who arrived."
_BUDGET_HELP = "What may be spent next; as much as the log spent if not given."
_HORIZON_HELP = "For how many arrivals; as many as the log has if not given."
_DEADLINE_HELP = "How old an answer may be to count: 14d, 36h, or a number in the log's unit; learned if not given."
_POLICY_HELP = "A name from `doral policies`, with options as in doral:accept=3; all if none. May be given again."
_CONTEXT_HELP = "A column that says who arrived. May be given again."
_OBSERVED_HELP = "A column, or a time: until when answers would have been seen."
_CREATE_HELP = "Also start a campaign of this name, which knows what the log says."
_COLUMNS, _PLAN, _OUTPUT = "Columns (guessed where their names are plain)", "What is asked", "What comes out"


def _column(help_: str, *names: str) -> typer.models.OptionInfo:
    made: typer.models.OptionInfo = typer.Option(*names, metavar="COLUMN", help=help_, rich_help_panel=_COLUMNS)
    return made


def plan(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=_LOG_HELP)],
    budget: Annotated[float | None, typer.Option(help=_BUDGET_HELP, rich_help_panel=_PLAN)] = None,
    horizon: Annotated[int | None, typer.Option(metavar="ARRIVALS", help=_HORIZON_HELP, rich_help_panel=_PLAN)] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help=_DEADLINE_HELP, rich_help_panel=_PLAN)] = None,
    policies: Annotated[
        list[str] | None, typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP, rich_help_panel=_PLAN)
    ] = None,
    truths: Annotated[
        int | None, typer.Option(min=2, help="Truths to draw; more make intervals surer.", rich_help_panel=_PLAN)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all draws.", rich_help_panel=_PLAN)] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Workers; -1: all cores.", rich_help_panel=_PLAN)] = -1,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ADDRESS", help=CLUSTER_HELP, rich_help_panel=_PLAN)
    ] = None,
    time: Annotated[str | None, _column("When somebody arrived.")] = None,
    context: Annotated[list[str] | None, _column(_CONTEXT_HELP)] = None,
    arm: Annotated[str | None, _column("What was done.")] = None,
    reward: Annotated[str | None, _column("What came of it.")] = None,
    answered: Annotated[str | None, _column("When the answer came; empty: not yet.")] = None,
    delay: Annotated[str | None, _column("Or how long it took.")] = None,
    cost: Annotated[str | None, _column("The list price.")] = None,
    paid: Annotated[str | None, _column("What was paid in the end.")] = None,
    probability: Annotated[str | None, _column("Of what was done.")] = None,
    key: Annotated[str | None, _column("By which duplicates are known.")] = None,
    observed_until: Annotated[
        str | None, typer.Option(metavar="COLUMN|TIME", help=_OBSERVED_HELP, rich_help_panel=_COLUMNS)
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="A reward that counts as 1.", rich_help_panel=_COLUMNS)
    ] = None,
    nothing: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The arm of doing nothing.", rich_help_panel=_COLUMNS)
    ] = None,
    feedback: Annotated[
        str | None, typer.Option(metavar="explicit|silent", help="silent: no news is 0.", rich_help_panel=_COLUMNS)
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Of times that are numbers.", rich_help_panel=_COLUMNS)
    ] = None,
    delay_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Of delays that are numbers.", rich_help_panel=_COLUMNS)
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="For the page and its files.", rich_help_panel=_OUTPUT)
    ] = Path("plan"),
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.", rich_help_panel=_OUTPUT)] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the answer.", rich_help_panel=_OUTPUT)
    ] = False,
    create: Annotated[str | None, typer.Option(metavar="NAME", help=_CREATE_HELP, rich_help_panel=_OUTPUT)] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """From a log to a decision: how long to wait, what a budget buys, what to run."""
    with exit_codes(if_interrupted="nothing was written"):
        check_jobs(jobs)
        check_cluster(cluster, jobs=jobs)
        if create is not None:
            refuse_unkept(storage)
        from doral.cli import planning

        planning.run(
            log,
            columns={
                "time": time,
                "context": context,
                "arm": arm,
                "reward": reward,
                "answered": answered,
                "delay": delay,
                "cost": cost,
                "paid": paid,
                "probability": probability,
                "key": key,
                "observed_until": observed_until,
                "positive": positive,
                "nothing": nothing,
                "feedback": feedback,
                "time_unit": time_unit,
                "delay_unit": delay_unit,
            },
            asked={"budget": budget, "horizon": horizon, "deadline": deadline, "truths": truths},
            policies=policies or [],
            seed=seed,
            jobs=jobs,
            cluster=cluster,
            out=out,
            as_json=as_json,
            is_quiet=quiet,
            create=create,
            storage=storage,
        )
