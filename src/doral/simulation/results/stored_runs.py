"""Runs in a file that may be larger than memory, and a summary that reads it block by block."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral._cached import cached_property
from doral.simulation.results.files import NAMES_OF_0_2
from doral.simulation.results.intervals import interval_of
from doral.simulation.results.outcome import BY_END, METRICS, WITHIN_DEADLINE

BLOCK_ROWS = 60_000  # that a summary holds at a time
METADATA = "doral"  # under which the file says what it holds
_NUMBERS = (*METRICS, "expected", "oracle", "oracle_error")


@dataclass
class _Moments:
    """Mean and spread of numbers that come in blocks; one block has the bits that NumPy gives."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, block: Floats) -> None:
        mean = float(block.mean())
        squares = float(np.square(block - mean).sum())
        if self.n == 0:
            self.n, self.mean, self.squares = block.size, mean, squares
            return
        both = self.n + block.size
        apart = mean - self.mean
        self.mean += apart * block.size / both
        self.squares += squares + apart * apart * self.n * block.size / both
        self.n = both

    def columns(self, name: str, ends: tuple[str, ...]) -> dict[str, float]:
        found = interval_of(self.n, self.mean, float(np.sqrt(self.squares / (self.n - 1))) if self.n > 1 else 0.0)
        return {f"{name}_{end}": getattr(found, end) for end in ends}


@dataclass
class _Pair:
    """A policy on a scenario."""

    rewards: tuple[_Moments, ...] = field(default_factory=lambda: tuple(_Moments() for _ in METRICS))
    regrets: tuple[_Moments, ...] = field(default_factory=lambda: tuple(_Moments() for _ in METRICS))
    differences: tuple[_Moments, ...] = field(default_factory=lambda: tuple(_Moments() for _ in METRICS))
    best: _Moments = field(default_factory=_Moments)
    expected: _Moments = field(default_factory=_Moments)
    expected_difference: _Moments = field(default_factory=_Moments)
    squared_errors: float = 0.0
    earns: bool = False
    came: bool = False
    in_time: bool = False

    def add(self, own: dict[str, Floats], first: dict[str, Floats]) -> None:
        best = own["oracle"]
        for i, metric in enumerate(METRICS):
            self.rewards[i].add(own[metric])
            self.regrets[i].add(best - own[metric])
            self.differences[i].add(own[metric] - first[metric])
        self.best.add(best)
        self.expected.add(own["expected"])
        self.expected_difference.add(own["expected"] - first["expected"])
        self.squared_errors += float((own["oracle_error"] ** 2).sum())
        self.earns |= bool((best > 0.0).any())
        self.came |= bool((own[METRICS[BY_END]] > 0.0).any())
        self.in_time |= bool((own[METRICS[WITHIN_DEADLINE]] != 0.0).any())

    def rows(self, scenario: str, policy: str) -> Iterator[dict[str, Any]]:
        unknown = float("nan")
        best = self.best.mean
        for i, metric in enumerate(METRICS):
            is_known = i == WITHIN_DEADLINE
            expected = self.expected if is_known else _Moments(mean=unknown)
            expected_difference = self.expected_difference if is_known else _Moments(mean=unknown)
            yield {
                "scenario": scenario,
                "policy": policy,
                "metric": metric,
                "runs": self.best.n,
                **self.rewards[i].columns("reward", ("mean", "se")),
                "oracle_mean": best,
                "oracle_error": float(np.sqrt(self.squared_errors) / self.best.n),
                "regret_mean": self.regrets[i].mean,
                "regret_share": self.regrets[i].mean / best if best > 0 else unknown,
                **self.differences[i].columns("difference", ("mean", "low", "high")),
                **expected.columns("expected", ("mean", "se")),
                "expected_share": expected.mean / best if best > 0 else unknown,
                **expected_difference.columns("expected_difference", ("mean", "low", "high")),
            }


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
        return pl.scan_parquet(self.path, glob=False).rename(NAMES_OF_0_2, strict=False)  # brackets stay brackets

    def summary(self) -> pl.DataFrame:
        """Per scenario, policy and metric, as `SimulationResult.summary`: the file is read once, block by block."""
        rows = [row for (scenario, policy), pair in self._pairs.items() for row in pair.rows(scenario, policy)]
        return pl.DataFrame(rows).fill_nan(None)

    @property
    def worthless(self) -> tuple[str, ...]:
        """Scenarios in which nothing is worth its cost: the oracle spends and earns nothing, in any run."""
        return tuple(name for name in self.scenarios if not any(one.earns for one in self._of(name)))

    @property
    def too_late(self) -> tuple[str, ...]:
        """Scenarios in which rewards came, but none within the deadline: it may be in the wrong unit."""
        return tuple(
            name
            for name in self.scenarios
            if any(one.came for one in self._of(name)) and not any(one.in_time for one in self._of(name))
        )

    def policies_in(self, scenario: str) -> tuple[str, ...]:
        """The policies that played a scenario, in the order given.

        Args:
            scenario: Its name.
        """
        return self.policies if scenario in self.scenarios else ()

    def _of(self, scenario: str) -> list[_Pair]:
        return [self._pairs[scenario, policy] for policy in self.policies]

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], _Pair]:
        found = {(scenario, policy): _Pair() for scenario in self.scenarios for policy in self.policies}
        many = len(self.policies)
        step = max(1, BLOCK_ROWS // many)
        for place, scenario in enumerate(self.scenarios):
            for first in range(0, self.runs, step):
                start = (place * self.runs + first) * many
                rows = min(step, self.runs - first) * many
                block = self.scan().slice(start, rows).select(_NUMBERS).collect()
                columns = {name: block[name].to_numpy().reshape(-1, many) for name in _NUMBERS}
                by_policy = [{name: table[:, i].copy() for name, table in columns.items()} for i in range(many)]
                for policy, own in zip(self.policies, by_policy, strict=True):
                    found[scenario, policy].add(own, by_policy[0])
        return found

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
