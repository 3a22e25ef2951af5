"""What `doral-otf` is meant to reach, decided by intervals, and the tables of the comparison, tidy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.beyond.cells import (
    COURSE_STUDY,
    INGREDIENTS,
    INGREDIENTS_STUDY,
    PAPER_SCENARIOS,
    REFERENCE,
    STRESS_SCENARIOS,
    TABLE,
    BeyondExtent,
    changed_words,
    study_of,
)
from doral.experiments.kit.batches import CellResult, Finished
from doral.experiments.kit.claim import (
    MARGIN_PERCENT,
    Claim,
    Verdict,
    claim,
    end_columns,
    frame_of,
    is_above,
    is_at_least,
    is_less_than,
    is_not_behind,
    regret,
    share_percent,
    together,
)
from doral.simulation.results.differences import CONFIDENCE, FEWEST_RUNS, UNKNOWN, Interval, interval
from doral.simulation.results.outcome import Outcome
from doral.simulation.results.result import SimulationResult

LEAST_LOSS, MOST_LOSS = 0.25, 60.0  # in % of the oracle's reward
SIGNS = {"best": "*", "tied": "=", "": "", "open": "?", "unknown": ""}
"""What stands behind a number, so that nothing is said by colour alone."""
SIGNS_KEY = f"* best of its row, = at most {MARGIN_PERCENT:g} point behind it, ? the runs do not tell"
SMALL_POINTS, MOST_POINTS = 0.1, 50.0


def depth_of_share(share_percent: float) -> float:
    """From 0 (pale) to 1 (deep), by the logarithm of what is lost to the oracle: 99.7 and 99.1 differ to the eye.

    >>> depth_of_share(100.0), depth_of_share(40.0)
    (1.0, 0.0)
    """
    loss = min(MOST_LOSS, max(LEAST_LOSS, 100.0 - share_percent))
    return math.log(MOST_LOSS / loss) / math.log(MOST_LOSS / LEAST_LOSS)


def depth_of_points(points: float) -> float:
    """From -1 (a loss) over 0 to 1 (a gain); small differences are drawn apart.

    >>> depth_of_points(0.0), depth_of_points(50.0), depth_of_points(-100.0)
    (0.0, 1.0, -1.0)
    """
    size = min(MOST_POINTS, abs(points))
    return math.copysign(math.log1p(size / SMALL_POINTS) / math.log1p(MOST_POINTS / SMALL_POINTS), points)


def worth_depth(row: Mapping[str, Any]) -> float:
    """The depth of what an ingredient is worth; 0 where its interval contains 0 or is not known."""
    points, low, high = (row[f"worth_points{end}"] for end in ("", "_low", "_high"))
    is_clear = low is not None and high is not None and (low > 0 or high < 0)
    return depth_of_points(points) if is_clear else 0.0


SHARE_PERCENT = 99.2
REGRET_RATIO = 8.0
MEAN_REGRET_RATIO = 20.0
MAY_BE_BEHIND = 1
CURVES_COST_POINTS = 0.3
NOT_BEHIND = is_not_behind(MARGIN_PERCENT)

BY_CONTEXT = "stress/context-delays"
BY_ARM = f"{REFERENCE}(curves_by=arm)"
BASELINE = "doral"
RESAMPLES = 10_000


def regret_ratio(theirs: Iterable[Floats], ours: Iterable[Floats]) -> Interval:
    """How many times larger their mean regret is than ours, averaged over scenarios; bootstrap over whole runs.

    A run has the same parameters in all scenarios, so that a resampled run takes all of its scenarios along. Where our
    mean regret is not above 0, the ratio is infinite.
    """
    pairs = [np.array(pair) for pair in zip(theirs, ours, strict=True)]
    runs = pairs[0].shape[1]
    estimate = float(np.mean([_ratio(pair.mean(axis=1)) for pair in pairs]))
    if runs < FEWEST_RUNS:
        return dataclasses.replace(UNKNOWN, mean=estimate)
    picks = np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs))
    ratios = np.mean([_ratio(pair[:, picks].mean(axis=2)) for pair in pairs], axis=0)
    tail = (1.0 - CONFIDENCE) / 2.0
    # Order statistics, which stay defined where some ratios are infinite.
    low, high = (float(end) for end in np.quantile(ratios, (tail, 1.0 - tail), method="nearest"))
    se = float(ratios.std()) if np.isfinite(ratios).all() else float("inf")
    return Interval(estimate, se, low, high)


def _ratio(means: Floats) -> Floats:
    theirs, ours = means
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ours > 0, theirs / ours, np.inf)


def judge(compared: SimulationResult, shares: pl.DataFrame, ingredients: SimulationResult) -> list[Claim]:
    """All statements that these results can decide; `shares` are theirs, with where each policy stands."""
    if REFERENCE not in compared.policies:
        return []
    return [*_share_claims(compared), *_regrets(compared), *_standings(shares), *_curves(ingredients)]


def _share_claims(compared: SimulationResult) -> Iterable[Claim]:
    statement = f"{REFERENCE} earns at least {SHARE_PERCENT:g}% of what the oracle does"
    for scenario in _among(PAPER_SCENARIOS, compared):
        found = interval(share_percent(compared, scenario, REFERENCE))
        yield claim(1, "share", scenario, statement, found, is_at_least(SHARE_PERCENT), "% of the oracle's reward")


def _regrets(compared: SimulationResult) -> Iterable[Claim]:
    if BASELINE not in compared.policies:
        return
    played = _among(PAPER_SCENARIOS, compared)
    theirs = [regret(compared, scenario, BASELINE) for scenario in played]
    ours = [regret(compared, scenario, REFERENCE) for scenario in played]
    statement = f"The regret of {REFERENCE} is at least {REGRET_RATIO:g} times smaller than that of {BASELINE}"
    for scenario, their, our in zip(played, theirs, ours, strict=True):
        found = regret_ratio([their], [our])
        yield claim(2, "regret", scenario, statement, found, is_at_least(REGRET_RATIO), "times")
    if played == PAPER_SCENARIOS:
        statement = f"On average, it is at least {MEAN_REGRET_RATIO:g} times smaller"
        found = regret_ratio(theirs, ours)
        yield claim(3, "mean-regret", "paper/*", statement, found, is_at_least(MEAN_REGRET_RATIO), "times")


def _standings(shares: pl.DataFrame) -> Iterable[Claim]:
    rows = {row["scenario"]: row for row in shares.filter(policy=REFERENCE).iter_rows(named=True)}
    played = tuple(name for name in STRESS_SCENARIOS if name in rows and rows[name]["best_other"] is not None)
    for scenario in played:
        rival = rows[scenario]["best_other"]
        statement = (
            f"{REFERENCE} is ahead of every other policy or tied with it (at most {MARGIN_PERCENT:g} point behind); "
            f"the best other is {rival}"
        )
        unit = f"points above {rival}, in % of the oracle's reward"
        yield claim(4, "standing", scenario, statement, _difference(rows[scenario]), NOT_BEHIND, unit)
    if played == STRESS_SCENARIOS:
        yield _how_many([_difference(rows[scenario]) for scenario in played])


def _difference(row: Mapping[str, Any]) -> Interval:
    mean, low, high = (
        float("nan") if row[name] is None else float(row[name])
        for name in ("difference_points", "difference_points_low", "difference_points_high")
    )
    return Interval(mean, float("nan"), low, high)


def _how_many(differences: list[Interval]) -> Claim:
    """A count has no interval of its own; it lies between those that are shown and those that are not ruled out."""
    needed = len(differences) - MAY_BE_BEHIND
    verdicts = [NOT_BEHIND(one) for one in differences]
    shown, possible = verdicts.count("holds"), len(verdicts) - verdicts.count("fails")
    found = Interval(float(shown), float("nan"), float(shown), float(possible))
    verdict: Verdict = "holds" if shown >= needed else "fails" if possible < needed else "not shown"
    statement = f"{REFERENCE} is ahead or tied on at least {needed} of the {len(differences)} stress scenarios"
    unit = "scenarios; from those where it is shown to those where it is not ruled out"
    return claim(5, "ahead-or-tied", "stress/*", statement, found, lambda _: verdict, unit)


def _curves(ingredients: SimulationResult) -> Iterable[Claim]:
    if BY_ARM not in ingredients.policies:
        return
    unit = "points, in % of the oracle's reward"
    statement = (
        f"Return curves by context cost less than {CURVES_COST_POINTS:g} points where delays do not depend on it"
    )
    for scenario in _among(PAPER_SCENARIOS, ingredients):
        found = interval(share_percent(ingredients, scenario, BY_ARM) - share_percent(ingredients, scenario, REFERENCE))
        yield claim(6, "curves-cost", scenario, statement, found, is_less_than(CURVES_COST_POINTS), unit)
    statement = "Return curves by context win where delays depend on the context"
    for scenario in _among((BY_CONTEXT,), ingredients):
        found = interval(share_percent(ingredients, scenario, REFERENCE) - share_percent(ingredients, scenario, BY_ARM))
        yield claim(7, "curves-win", scenario, statement, found, is_above, unit)


def _among(names: tuple[str, ...], result: SimulationResult) -> tuple[str, ...]:
    return tuple(name for name in names if name in result.scenarios)


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
