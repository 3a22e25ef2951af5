"""Rewards as shares of the oracle's, and the columns that tables make of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.kit.batches import CellResult
from doral.simulation.results.intervals import Interval
from doral.simulation.results.result import SimulationResult

METRIC = "within_deadline"  # what the oracle plays for


def together(found: Iterable[CellResult], *, seed: int) -> SimulationResult:
    """The outcomes of several cells as one result."""
    return SimulationResult(outcomes=tuple(outcome for one in found for outcome in one.result.outcomes), seed=seed)


def oracle_rewards(result: SimulationResult, scenario: str, policy: str) -> Floats:
    """By run of a policy: what the oracle earns in it."""
    return np.array([one.oracle for one in result.of(scenario, policy)])


def share_percent(result: SimulationResult, scenario: str, policy: str) -> Floats:
    """By run: the reward in percent of the oracle's; unknown where nothing is worth its cost."""
    best = oracle_rewards(result, scenario, policy)
    return 100.0 * result.rewards(scenario, policy, METRIC) / np.where(best > 0.0, best, np.nan)


def regret(result: SimulationResult, scenario: str, policy: str) -> Floats:
    """By run: what is lost to the oracle."""
    return oracle_rewards(result, scenario, policy) - result.rewards(scenario, policy, METRIC)


def end_columns(name: str, found: Interval) -> dict[str, float]:
    """An interval in three columns."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """A table of rows, in which what is not known is missing."""
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)
