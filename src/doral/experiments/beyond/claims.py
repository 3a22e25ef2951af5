"""What `doral-otf` is meant to reach, as statements that an interval decides. One that fails is shown as failing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.beyond.names import PAPER_SCENARIOS, REFERENCE, STRESS_SCENARIOS
from doral.experiments.kit.claim import (
    MARGIN_PERCENT,
    Claim,
    Verdict,
    claim,
    is_above,
    is_at_least,
    is_less_than,
    is_not_behind,
)
from doral.experiments.kit.shares import regret, share_percent
from doral.simulation.results.intervals import CONFIDENCE, FEWEST_RUNS, UNKNOWN, Interval, interval
from doral.simulation.results.result import SimulationResult

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
    return [*_shares(compared), *_regrets(compared), *_standings(shares), *_curves(ingredients)]


def _shares(compared: SimulationResult) -> Iterable[Claim]:
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
