"""The options of `doral evaluate`. What it does is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="When people came.")] = None,
    context: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Who; may be given again.")] = None,
    arm: Annotated[str | None, typer.Option(metavar="COLUMN", help="What was done; empty: nothing.")] = None,
    reward: Annotated[str | None, typer.Option(metavar="COLUMN", help="What came of it.")] = None,
    answered: Annotated[str | None, typer.Option(metavar="COLUMN", help="When it came; empty: not yet.")] = None,
    delay: Annotated[str | None, typer.Option(metavar="COLUMN", help="Or after how long.")] = None,
    cost: Annotated[str | None, typer.Option(metavar="COLUMN", help="The list price.")] = None,
    paid: Annotated[str | None, typer.Option(metavar="COLUMN", help="What was paid in the end.")] = None,
    probability: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of what was done.")] = None,
    observed_until: Annotated[str | None, typer.Option(metavar="WHEN", help="A column, or a time for all.")] = None,
    key: Annotated[str | None, typer.Option(metavar="COLUMN", help="What tells rows apart.")] = None,
    positive: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Rewards that count as 1.")] = None,
    nothing: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Arms that mean nothing.")] = None,
    feedback: Annotated[str | None, typer.Option(metavar="WORD", help="explicit or silent.")] = None,
    time_unit: Annotated[str | None, typer.Option(metavar="UNIT", help="Of times that are numbers.")] = None,
    delay_unit: Annotated[str | None, typer.Option(metavar="UNIT", help="Of delays.")] = None,
    seed: Annotated[int, typer.Option(min=0, help=_SEED_HELP)] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help=_OUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=_PLOT_HELP)] = None,
) -> None:
    """Value other policies by a log of what was done: intervals, and whether the log can tell."""
    with exit_codes(if_interrupted="nothing was written"):
        from doral.cli import evaluate as command

        command.run(
            log,
            policies,
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
                "observed_until": observed_until,
                "key": key,
                "positive": positive,
                "nothing": nothing,
                "feedback": feedback,
                "time_unit": time_unit,
                "delay_unit": delay_unit,
            },
            deadline=deadline,
            budget=budget,
            propensities=propensities,
            estimators=estimators,
            seed=seed,
            out=out,
            plot=plot,
        )
