"""Tables of the comparison, tidy: one row per fact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.analysis import share_percent
from doral.experiments.beyond.ingredients import INGREDIENTS, REFERENCE, changed_words
from doral.experiments.beyond.plan import COMPARE, COURSE, INGREDIENT, ComparePlan, experiment_of
from doral.experiments.beyond.targets import check
from doral.experiments.claims import Claim
from doral.experiments.run import CellResult, Finished
from doral.simulation.outcome import Outcome
from doral.simulation.result import Interval, SimulationResult, interval

Standing = Literal["ahead", "tied", "behind", "unknown"]
Mark = Literal["best", "tied", "", "unknown"]

_UNKNOWN = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is written down or shown."""

    table: SimulationResult
    shares: pl.DataFrame
    claims: list[Claim]
    ingredients: pl.DataFrame | None
    choices: pl.DataFrame | None
    courses: pl.DataFrame | None

    @property
    def policies(self) -> tuple[str, ...]:
        """Names, in the order of the table."""
        return self.table.policies

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names, in the order of the table."""
        return self.table.scenarios

    def row(self, scenario: str, policy: str) -> dict[str, Any]:
        """The line of `shares` about one policy on one scenario."""
        return self.shares.row(by_predicate=(pl.col("scenario") == scenario) & (pl.col("policy") == policy), named=True)


def analyse(finished: Finished, plan: ComparePlan) -> Comparison:
    """From outcomes to tables."""
    compared = finished.of(COMPARE)
    outcomes = tuple(outcome for one in compared for outcome in one.result.outcomes)
    table = SimulationResult(outcomes=outcomes, seed=compared[0].result.seed)
    parts = finished.of(INGREDIENT)
    sides = SimulationResult(
        outcomes=tuple(outcome for one in parts for outcome in one.result.outcomes), seed=table.seed
    )
    shares = shares_table(compared)
    return Comparison(
        table=table,
        shares=shares,
        claims=check(table, shares, sides),
        ingredients=ingredients_table(parts) if parts else None,
        choices=choices_table(finished, plan) if plan.choices else None,
        courses=courses_table(finished.of(COURSE)),
    )


def standing_of(difference: Interval) -> Standing:
    """Where a policy stands to another: by the interval of their paired difference, never by the means."""
    if np.isnan(difference.low):
        return "unknown"
    return "ahead" if difference.low > 0 else "behind" if difference.high < 0 else "tied"


def _spread(name: str, found: Interval) -> dict[str, float]:
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def _shares(one: CellResult, policy: str) -> Floats:
    return share_percent(one.result.of(one.cell.scenario.name, policy), one.result)


def shares_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and policy: the share of the clairvoyant's reward, and the difference to the best other policy."""
    return _frame([row for one in found for row in _scenario_rows(one)])


def _scenario_rows(one: CellResult) -> Iterable[dict[str, Any]]:
    names = [each.name for each in one.cell.policies]
    shares = {name: _shares(one, name) for name in names}
    ranked = sorted(names, key=lambda name: -float(shares[name].mean()))
    for name in names:
        rival = next((other for other in ranked if other != name), None)
        difference = _UNKNOWN if rival is None else interval(shares[name] - shares[rival])
        yield {
            "scenario": one.cell.scenario.name,
            "policy": name,
            "runs": shares[name].size,
            **_spread("share_percent", interval(shares[name])),
            "mark": _mark(shares, name, ranked[0]),
            "best_other": rival,
            **_spread("difference_points", difference),
            "standing": standing_of(difference),
        }


def _mark(shares: dict[str, Floats], name: str, best: str) -> Mark:
    """The best of a scenario, and those of which the runs cannot say that they are worse."""
    if name == best:
        return "best"
    standing = standing_of(interval(shares[name] - shares[best]))
    return "unknown" if standing == "unknown" else "" if standing == "behind" else "tied"


def ingredients_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and ingredient: what is lost without it, in points; positive is what it is worth."""
    rows = []
    for one in found:
        base = _shares(one, REFERENCE)
        for variant in INGREDIENTS:
            shares = _shares(one, variant.policy.name)
            rows.append(
                {
                    "scenario": one.cell.scenario.name,
                    "without": changed_words(variant.policy.name),
                    "says": variant.says,
                    "runs": shares.size,
                    **_spread("share_percent", interval(shares)),
                    **_spread("worth_points", interval(base - shares)),
                }
            )
    return _frame(rows)


def choices_table(finished: Finished, plan: ComparePlan) -> pl.DataFrame:
    """By choice and point: the share of the clairvoyant's reward, and the cut-off m at the end."""
    rows = []
    for choice in plan.choices:
        played = {one.cell.scenario.name: one for one in finished.of(experiment_of(choice))}
        for point in choice.points:
            one = played[point.scenario.name]
            outcomes = one.result.of(point.scenario.name, point.policy.name)
            rows.append(
                {
                    "choice": choice.name,
                    "panel": point.panel,
                    "line": point.line,
                    "x": point.x,
                    "scenario": point.scenario.name,
                    "policy": point.policy.name,
                    "runs": len(outcomes),
                    **_spread("share_percent", interval(share_percent(outcomes, one.result))),
                    **_spread("cutoff_rounds", mean_cutoff(outcomes)),
                }
            )
    return _frame(rows)


def courses_table(found: Iterable[CellResult]) -> pl.DataFrame | None:
    """By scenario and round: the cut-off m and the arms in play."""
    frames = [one.result.courses() for one in found]
    return pl.concat(frames) if frames else None


def mean_cutoff(outcomes: Iterable[Outcome]) -> Interval:
    """A policy without a cut-off has no mean of it."""
    cutoffs = np.array([outcome.cutoff for outcome in outcomes])
    return interval(cutoffs) if np.isfinite(cutoffs).all() else _UNKNOWN
