"""Runs as rows: what `SimulationResult.runs` shows, and what files of runs hold."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from doral.simulation.results.outcome import METRICS, Outcome

SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "scenario": pl.String,
    "policy": pl.String,
    "run": pl.Int64,
    **dict.fromkeys(METRICS, pl.Float64),
    "expected": pl.Float64,
    "clairvoyant": pl.Float64,
    "clairvoyant_error": pl.Float64,
    "decisions": pl.Int64,
    "spend": pl.Float64,
    "race_rounds": pl.Int64,
    "race_spend": pl.Float64,
    "race_ended": pl.Int64,
    "race_capped": pl.Boolean,
    "accepted": pl.List(pl.String),
    "cutoff": pl.Float64,
    "explored": pl.Int64,
    "explored_loss": pl.Float64,
}


def rows_of_runs(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """One row for each."""
    return pl.DataFrame(
        [
            {
                "scenario": one.scenario,
                "policy": one.policy,
                "run": one.run,
                **dict(zip(METRICS, one.rewards, strict=True)),
                "expected": one.expected,
                "clairvoyant": one.clairvoyant,
                "clairvoyant_error": one.clairvoyant_error,
                "decisions": one.decisions,
                "spend": one.spend,
                "race_rounds": one.race_rounds,
                "race_spend": one.race_spend,
                "race_ended": one.race_ended,
                "race_capped": one.race_capped,
                "accepted": list(one.accepted),
                "cutoff": one.cutoff,
                "explored": one.explored,
                "explored_loss": one.explored_loss,
            }
            for one in outcomes
        ],
        schema=SCHEMA,
    )
