"""Runs in a file that may be larger than memory, and a summary that reads one scenario at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral._cached import cached_property
from doral.simulation.results.outcome import BY_END, METRICS, WITHIN_DEADLINE
from doral.simulation.results.tables import SUMMARISED, summary_of

METADATA = "doral"  # under which the file says what it holds


@dataclass(frozen=True)
class StoredRuns:
    """Runs in a Parquet file, which may be larger than memory; `doral.simulate_to` makes it.

    Attributes:
        path: The file: one row per scenario, run and policy, with the columns of `SimulationResult.runs`.
        seed: Of the draws that all policies share.
        scenarios: Names, in the order played.
        policies: Names, in the order given; the first is the one that differences are taken to.
        first_run: The number of the first run.
        runs: How many there are of each scenario.
    """

    path: Path
    seed: int
    scenarios: tuple[str, ...]
    policies: tuple[str, ...]
    first_run: int
    runs: int

    def scan(self) -> pl.LazyFrame:
        """The rows, to be filtered and grouped without reading all of them."""
        return pl.scan_parquet(self.path, glob=False)  # brackets stay brackets

    def summary(self) -> pl.DataFrame:
        """Per scenario, policy and metric, as `SimulationResult.summary`; one scenario is read at a time."""
        rows: list[dict[str, Any]] = []
        for name in self.scenarios:
            runs = self._columns(name)
            for policy in self.policies:
                rows += summary_of(name, policy, runs[policy], runs[self.policies[0]])
        return pl.DataFrame(rows).fill_nan(None)

    @property
    def worthless(self) -> tuple[str, ...]:
        """Scenarios in which nothing is worth its cost: the oracle spends and earns nothing, in any run."""
        return tuple(name for name in self.scenarios if not self._most[name]["oracle"] > 0.0)

    @property
    def too_late(self) -> tuple[str, ...]:
        """Scenarios in which rewards came, but none within the deadline: it may be in the wrong unit."""
        by_end, in_time = METRICS[BY_END], METRICS[WITHIN_DEADLINE]
        return tuple(name for name, most in self._most.items() if most[by_end] > 0.0 and most[in_time] == 0.0)

    def policies_in(self, scenario: str) -> tuple[str, ...]:
        """The policies that played a scenario, in the order given.

        Args:
            scenario: Its name.
        """
        return self.policies if scenario in self.scenarios else ()

    @cached_property
    def _most(self) -> dict[str, dict[str, float]]:
        """By scenario the largest size of a number, or its maximum."""
        in_time = METRICS[WITHIN_DEADLINE]
        return {
            name: {
                column: max(float((np.abs(own[column]) if column == in_time else own[column]).max()) for own in runs)
                for column in (in_time, METRICS[BY_END], "oracle")
            }
            for name in self.scenarios
            for runs in [self._columns(name).values()]
        }

    def _columns(self, scenario: str) -> dict[str, dict[str, Floats]]:
        """Read the numbers of every run, by policy: rows are sorted by scenario, run and policy."""
        many = len(self.policies)
        rows = self.runs * many
        block = self.scan().slice(self.scenarios.index(scenario) * rows, rows).select(SUMMARISED).collect()
        tables = {name: block[name].to_numpy().reshape(-1, many) for name in SUMMARISED}
        return {one: {n: table[:, i].copy() for n, table in tables.items()} for i, one in enumerate(self.policies)}

    def __repr__(self) -> str:
        return (
            f"<StoredRuns: {len(self.policies)} policies on {len(self.scenarios)} scenarios, {self.runs:,} runs each, "
            f"seed {self.seed}, in {self.path.name!r}>"
        )


def said_by(path: Path) -> dict[str, Any]:
    """What a file says of what it holds; nothing where it is none of ours."""
    try:
        return dict(json.loads(pl.read_parquet_metadata(path)[METADATA]))
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError):
        return {}
