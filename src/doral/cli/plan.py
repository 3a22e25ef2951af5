"""`doral plan`: from a log to a decision. What the command needs is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doral.cli import log_options as of
from doral.cli.campaign_options import DEFAULT_STORAGE, Storage, refuse_unkept
from doral.cli.cluster import HELP as CLUSTER_HELP
from doral.cli.cluster import check_cluster
from doral.cli.exits import check_jobs, exit_codes

_LOG_HELP = "CSV or Parquet: one row per arrival."
_BUDGET_HELP = "What may be spent next; as much as the log spent if not given."
_HORIZON_HELP = "For how many arrivals; as many as the log has if not given."
_DEADLINE_HELP = "How old an answer may be to count, with its unit: 14d, 36h; learned if not given."
_POLICY_HELP = "A name from `doral policies`, with options as in doral:accept=3; all if none. May be given again."
_CREATE_HELP = "Also start a campaign of this name, which knows what the log says."
_PLAN, _OUTPUT = "What is asked", "What comes out"


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
    time: of.Time = None,
    context: of.Context = None,
    arm: of.ArmColumn = None,
    reward: of.Reward = None,
    answered: of.Answered = None,
    delay: of.Delay = None,
    cost: of.Cost = None,
    paid: of.Paid = None,
    probability: of.Probability = None,
    key: of.Key = None,
    observed_until: of.ObservedUntil = None,
    positive: of.Positive = None,
    nothing: of.Nothing = None,
    feedback: of.FeedbackKind = None,
    time_unit: of.TimeUnit = None,
    delay_unit: of.DelayUnit = None,
    date_order: of.DateOrder = None,
    currency: of.Currency = None,
    outcome: of.Outcome = None,
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
    columns = of.chosen_columns(locals())
    with exit_codes(if_interrupted="nothing was written", spelling=of.as_options):
        check_jobs(jobs)
        check_cluster(cluster, jobs=jobs)
        if create is not None:
            refuse_unkept(storage)
        from doral.cli import planning

        planning.run(
            log,
            columns=columns,
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
