"""The options of `doral evaluate`. What it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doral.cli import log_options as of
from doral.cli.exits import exit_codes

_POLICIES, _ESTIMATORS = ["uniform", "best", "lp"], ["ips", "snips", "dr"]
_LOG_HELP = "A CSV or Parquet file: who came, what was done, what came of it."
_POLICY_HELP = (
    "uniform, nothing, always:ARM, best, lp, a name from `doral policies` (what it settles on), or a JSON file with "
    "{context: arm} or {context: {arm: probability}}, also NAME=FILE. May be given again."
)
_DEADLINE_HELP = "What comes later counts nothing: 14d, 36h; without it, the longest that the log supports."
_BUDGET_HELP = "What lp may spend per arrival; without it, what was paid."
_PROPENSITIES_HELP = "given (as the log tells them) or estimated (counted by context and time); without it, what fits."
_SEED_HELP = "Seed of the folds and halves; the same seed gives the same numbers, to the bit."
_OUT_HELP = "Write the result to this file (.json, .csv, .parquet) instead of printing it."
_PLOT_HELP = "Also draw values and overlap into this file (.png, .svg, .pdf)."


def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=_LOG_HELP)],
    policies: Annotated[list[str], typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP)] = _POLICIES,
    deadline: Annotated[str | None, typer.Option(help=_DEADLINE_HELP)] = None,
    budget: Annotated[float | None, typer.Option(help=_BUDGET_HELP)] = None,
    propensities: Annotated[str | None, typer.Option(help=_PROPENSITIES_HELP)] = None,
    estimators: Annotated[list[str], typer.Option("--estimator", help="May be given again.")] = _ESTIMATORS,
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
    seed: Annotated[int, typer.Option(min=0, help=_SEED_HELP)] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help=_OUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=_PLOT_HELP)] = None,
) -> None:
    """Value other policies by a log of what was done: intervals, and whether the log can tell."""
    columns = of.chosen_columns(locals())
    with exit_codes(if_interrupted="nothing was written", spelling=of.as_options):
        from doral.cli import evaluate as command

        command.run(
            log,
            policies,
            columns=columns,
            deadline=deadline,
            budget=budget,
            propensities=propensities,
            estimators=estimators,
            seed=seed,
            out=out,
            plot=plot,
        )
