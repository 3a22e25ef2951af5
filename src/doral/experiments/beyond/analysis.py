"""Tables of the comparison, tidy: one row per fact."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.beyond.cells import COURSE_STUDY, INGREDIENTS_STUDY, TABLE, BeyondExtent, study_of
from doral.experiments.beyond.claims import judge
from doral.experiments.beyond.names import REFERENCE, changed_words
from doral.experiments.beyond.variants import INGREDIENTS
from doral.experiments.kit.batches import CellResult, Finished
from doral.experiments.kit.claim import MARGIN_PERCENT, Claim
from doral.experiments.kit.shares import end_columns, frame_of, share_percent, together
from doral.simulation.results.intervals import UNKNOWN, Interval, interval
from doral.simulation.results.outcome import Outcome
from doral.simulation.results.result import SimulationResult

Standing = Literal["ahead", "tied", "behind", "unknown"]
"""Unknown: the runs are too few to say, or too different from each other."""
Mark = Literal["best", "tied", "", "open", "unknown"]
"""Nothing: surely behind the best; open: the interval does not say; unknown: there is no interval."""


@dataclass(frozen=True, kw_only=True)
class BeyondFindings:
    """Everything that is written down or shown."""

    compared: SimulationResult
    """The main table's outcomes."""
    shares: pl.DataFrame
    claims: list[Claim]
    ingredients: pl.DataFrame | None
    sweeps: pl.DataFrame | None
    courses: pl.DataFrame | None

    @property
    def policies(self) -> tuple[str, ...]:
        """Names, in the order of the table."""
        return self.compared.policies

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names, in the order of the table."""
        return self.compared.scenarios

    def tables(self) -> dict[str, pl.DataFrame | None]:
        """All tables by the names of their files."""
        return {
            "shares": self.shares,
            "ingredients": self.ingredients,
            "choices": self.sweeps,
            "courses": self.courses,
        }

    def row(self, scenario: str, policy: str) -> dict[str, Any]:
        """The line of `shares` about one policy on one scenario."""
        return self.shares.row(by_predicate=(pl.col("scenario") == scenario) & (pl.col("policy") == policy), named=True)


def analyse(finished: Finished, extent: BeyondExtent) -> BeyondFindings:
    """From outcomes to tables."""
    played, changed = finished.of(TABLE), finished.of(INGREDIENTS_STUDY)
    compared = together(played, seed=played[0].result.seed)
    shares = shares_table(played)
    return BeyondFindings(
        compared=compared,
        shares=shares,
        claims=judge(compared, shares, together(changed, seed=compared.seed)),
        ingredients=ingredients_table(changed) if changed else None,
        sweeps=sweeps_table(finished, extent) if extent.sweeps else None,
        courses=courses_table(finished.of(COURSE_STUDY)),
    )


def standing_of(difference: Interval) -> Standing:
    """Where a policy stands to another: by the interval of their paired difference, never by the means.

    A tie has to be shown: that it is behind by more than the margin is ruled out.
    """
    if difference.low > 0:
        return "ahead"
    if difference.low >= -MARGIN_PERCENT:
        return "tied"
    return "behind" if difference.high < 0 else "unknown"


def _shares(one: CellResult, policy: str) -> Floats:
    return share_percent(one.result, one.cell.scenario.name, policy)


def shares_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and policy: the share of the oracle's reward, and the difference to the best other policy."""
    return frame_of([row for one in found for row in _scenario_rows(one)])


def _scenario_rows(one: CellResult) -> Iterable[dict[str, Any]]:
    names = [each.name for each in one.cell.policies]
    shares = {name: _shares(one, name) for name in names}
    ranked = sorted(names, key=lambda name: -float(shares[name].mean()))
    for name in names:
        rival = next((other for other in ranked if other != name), None)
        difference = UNKNOWN if rival is None else interval(shares[name] - shares[rival])
        yield {
            "scenario": one.cell.scenario.name,
            "policy": name,
            "runs": shares[name].size,
            **end_columns("share_percent", interval(shares[name])),
            "mark": _mark(shares, name, ranked[0]),
            "best_other": rival,
            **end_columns("difference_points", difference),
            "standing": standing_of(difference),
        }


def _mark(shares: dict[str, Floats], name: str, best: str) -> Mark:
    """The best of a scenario, and those that are shown to come as close to it as the margin."""
    if name == best:
        return "best"
    difference = interval(shares[name] - shares[best])
    standing = standing_of(difference)
    if standing == "unknown":
        return "unknown" if np.isnan(difference.low) else "open"
    return "" if standing == "behind" else "tied"


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
                    **end_columns("share_percent", interval(shares)),
                    **end_columns("worth_points", interval(base - shares)),
                }
            )
    return frame_of(rows)


def sweeps_table(finished: Finished, extent: BeyondExtent) -> pl.DataFrame:
    """By sweep and point: the share of the oracle's reward, and the cut-off m at the end."""
    rows = []
    for sweep in extent.sweeps:
        played = {one.cell.scenario.name: one.result for one in finished.of(study_of(sweep))}
        for point in sweep.points:
            place, policy = point.scenario.name, point.policy.name
            outcomes = played[place].of(place, policy)
            rows.append(
                {
                    "choice": sweep.name,
                    "panel": point.panel,
                    "line": point.line,
                    "x": point.x,
                    "scenario": place,
                    "policy": policy,
                    "runs": len(outcomes),
                    **end_columns("share_percent", interval(share_percent(played[place], place, policy))),
                    **end_columns("cutoff_rounds", mean_cutoff(outcomes)),
                }
            )
    return frame_of(rows)


def courses_table(found: Iterable[CellResult]) -> pl.DataFrame | None:
    """By scenario and round: the cut-off m and the arms in play."""
    frames = [one.result.courses() for one in found]
    return pl.concat(frames) if frames else None


def mean_cutoff(outcomes: Iterable[Outcome]) -> Interval:
    """A policy without a cut-off has no mean of it."""
    cutoffs = np.array([outcome.cutoff for outcome in outcomes])
    return interval(cutoffs) if np.isfinite(cutoffs).all() else UNKNOWN
