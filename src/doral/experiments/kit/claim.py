"""Statements that an interval decides, never the eye; and rewards as shares of the oracle's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.kit.batches import CellResult
from doral.simulation.results.differences import FEWEST_RUNS, UNKNOWN, Interval, interval
from doral.simulation.results.result import SimulationResult

Verdict = Literal["holds", "fails", "not shown"]
Rule = Callable[[Interval], Verdict]

MARGIN_PERCENT = 1.0
"""Rewards that differ by at most this much are tied.

It is what the reproduction takes the paper's "overlap" to be, so that the word means the same in both experiments, and
about as much as `doral-otf` itself may lose to the oracle on the paper's scenarios (0.8).
"""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about one scenario, with the estimate that decides it and its 95% interval."""

    id: str
    statement: str
    scenario: str
    verdict: Verdict
    estimate: float
    low: float
    high: float
    unit: str

    @property
    def holds(self) -> bool:
        """Shown to hold; what is not shown does not."""
        return self.verdict == "holds"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; an interval that is not known (a single run) is null."""
        numbers = {
            name: value if math.isfinite(value) else None
            for name, value in (("estimate", self.estimate), ("low", self.low), ("high", self.high))
        }
        return {
            "id": self.id,
            "statement": self.statement,
            "scenario": self.scenario,
            "holds": self.holds,
            **numbers,
            "unit": self.unit,
        }


def is_within(margin: float) -> Rule:
    """Equivalence: the whole interval lies within the margin; it fails when the whole interval lies outside."""

    def rule(found: Interval) -> Verdict:
        if -margin <= found.low and found.high <= margin:
            return "holds"
        return "fails" if found.low > margin or found.high < -margin else "not shown"

    return rule


def is_above(found: Interval) -> Verdict:
    """The whole interval lies above 0; it fails when all of it lies below."""
    return "holds" if found.low > 0 else "fails" if found.high < 0 else "not shown"


def is_below(found: Interval) -> Verdict:
    """The whole interval lies below 0; it fails when all of it lies above."""
    return "holds" if found.high < 0 else "fails" if found.low > 0 else "not shown"


def is_at_least(bound: float) -> Rule:
    """The whole interval reaches the bound; it fails when none of it does."""

    def rule(found: Interval) -> Verdict:
        return "holds" if found.low >= bound else "fails" if found.high < bound else "not shown"

    return rule


def is_less_than(bound: float) -> Rule:
    """The whole interval stays below the bound; it fails when none of it does."""

    def rule(found: Interval) -> Verdict:
        return "holds" if found.high < bound else "fails" if found.low >= bound else "not shown"

    return rule


def is_not_behind(margin: float) -> Rule:
    """Ahead or tied: all of the interval lies above minus the margin; it fails when all of it lies below.

    That an interval is too wide to see a difference is no tie: a wider one never holds where a narrower one does not.
    """
    return is_at_least(-margin)


def percent_difference(ours: Floats, theirs: Floats) -> Interval:
    """The paired difference of the runs, in percent of their mean."""
    base = float(theirs.mean())
    return UNKNOWN if base == 0 else interval(100.0 * (ours - theirs) / abs(base))  # who loses less is ahead


def claim(number: int, word: str, scenario: str, statement: str, found: Interval, rule: Rule, unit: str) -> Claim:
    """A statement, decided by its rule. `scenario` may be all of a family, such as "paper/*"."""
    family, _, name = scenario.partition("/")
    return Claim(
        id=f"{number}-{word}/{name if name != '*' else family}",
        statement=statement,
        scenario=scenario,
        verdict=rule(found),
        estimate=found.mean,
        low=found.low,
        high=found.high,
        unit=unit,
    )


def held(claims: Iterable[Claim]) -> int:
    """How many hold."""
    return sum(claim.holds for claim in claims)


def to_json(claims: Iterable[Claim]) -> str:
    """The file `claims.json`."""
    return json.dumps([claim.to_dict() for claim in claims], indent=2, ensure_ascii=False) + "\n"


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


def none_words(runs: int) -> str:
    """Why there is no interval; nothing where there is one.

    >>> none_words(2), none_words(1), none_words(3)
    ('2 runs: no interval', 'one run: no interval', '')
    """
    if runs >= FEWEST_RUNS:
        return ""
    return "one run: no interval" if runs == 1 else f"{runs} runs: no interval"


def ends_note(runs: int, *, otherwise: str) -> str:
    """A sentence about the intervals of a figure or table, or about their absence."""
    few = none_words(runs)
    return f"{few[0].upper()}{few[1:]}, which needs {FEWEST_RUNS}." if few else otherwise
