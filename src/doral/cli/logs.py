"""`doral log`: what there is to do with a log before a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doral.cli import log_options as of
from doral.cli.exits import exit_codes
from doral.cli.help_text import Grouped

app = typer.Typer(cls=Grouped, help="Look at a log before it is planned with.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CSV or Parquet: one row per arrival.")],
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
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Say how a log is read: which column is what, what was assumed and left out, or what is unclear."""
    columns = of.chosen_columns(locals())
    with exit_codes(spelling=of.as_options):
        from doral.cli import log_reading

        log_reading.check(log, columns, as_json=as_json)
