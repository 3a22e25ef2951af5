"""Tables of the experiments, tidy: one row per fact."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from doral._arrays import Floats
from doral.experiments.claims import METRIC, Claim, check, check_totals
from doral.experiments.paper import ABLATION, Plan
from doral.experiments.run import CellResult, Finished
from doral.simulation.outcome import Outcome
from doral.simulation.result import Interval, SimulationResult, interval

_UNKNOWN = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """Everything that is written down or shown."""

    comparison: SimulationResult
    claims: list[Claim]
    literal_claims: list[Claim] | None
    """Those about final rewards, with every policy as printed."""
    summary: pl.DataFrame
    runs: pl.DataFrame
    race: pl.DataFrame
    horizon: pl.DataFrame | None
    accept: pl.DataFrame | None
    ablation: pl.DataFrame | None


def analyse(finished: Finished, plan: Plan) -> Analysis:
    """From outcomes to tables."""
    compared = finished.of("comparison")
    outcomes = tuple(outcome for one in compared for outcome in one.result.outcomes)
    comparison = SimulationResult(outcomes=outcomes, seed=compared[0].result.seed)
    runs = comparison.runs()
    # The paper's own horizon comes from the comparison, cut to the runs of the others.
    horizons = [*(_first_runs(one, plan.side_runs) for one in compared), *finished.of("horizon")]
    return Analysis(
        comparison=comparison,
        claims=check(comparison),
        literal_claims=check_totals(literal_result(finished.of("ablation"))) if plan.with_sides else None,
        summary=comparison.summary(),
        runs=runs.with_columns(pl.col("accepted").list.join(";")),
        race=race_table(comparison),
        horizon=horizon_table(horizons) if plan.with_sides else None,
        accept=accept_table(finished.of("accept")) if plan.with_sides else None,
        ablation=ablation_table(finished.of("ablation")) if plan.with_sides else None,
    )


def _first_runs(one: CellResult, runs: int) -> CellResult:
    outcomes = tuple(outcome for outcome in one.result.outcomes if outcome.run < runs)
    return CellResult(cell=one.cell, result=SimulationResult(outcomes=outcomes, seed=one.result.seed))


def literal_result(found: Iterable[CellResult]) -> SimulationResult:
    """The policies as printed, under their plain names, so that the same claims can be checked on them."""
    outcomes = tuple(
        dataclasses.replace(outcome, policy=outcome.policy.removesuffix("/literal"))
        for one in found
        for outcome in one.result.outcomes
        if outcome.policy.endswith("/literal")
    )
    return SimulationResult(outcomes=outcomes, seed=0)


def base_name(scenario: str) -> str:
    """The name of a scenario without the horizon that a sweep gave it."""
    return scenario.partition("@")[0]


def share_percent(outcomes: Iterable[Outcome], result: SimulationResult) -> Floats:
    """By run: the reward in percent of the clairvoyant's."""
    found = list(outcomes)
    rewards = result.rewards(found[0].scenario, found[0].policy, METRIC)
    best = np.array([one.clairvoyant for one in found])
    return 100.0 * rewards / best


def _spread(name: str, found: Interval) -> dict[str, float]:
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def _row(one: CellResult, policy: str, reference: str) -> dict[str, Any]:
    """The share of the clairvoyant's reward, and its paired difference to the reference in points."""
    name = one.cell.scenario.name
    found = one.result.of(name, policy)
    shares = share_percent(found, one.result)
    base = share_percent(one.result.of(name, reference), one.result)
    # A policy is not compared with itself.
    difference = interval(shares - base) if policy != reference else _UNKNOWN
    return {
        "runs": len(found),
        **_spread("share_percent", interval(shares)),
        "reference": reference,
        **_spread("difference_points", difference),
        "race_spend_mean": float(np.mean([outcome.race_spend for outcome in found])),
        "race_capped_runs": sum(outcome.race_capped for outcome in found),
        "cutoff_mean": float(np.mean([outcome.cutoff for outcome in found])),
    }


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows).fill_nan(None)


def horizon_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario, horizon and policy; differences are to DORAL."""
    rows = [
        {
            "scenario": base_name(one.cell.scenario.name),
            "horizon": one.cell.scenario.problem.horizon,
            "rate": one.cell.scenario.problem.rate,
            "policy": policy.name,
            **_row(one, policy.name, "doral"),
        }
        for one in found
        for policy in one.cell.policies
    ]
    order = {name: position for position, name in enumerate(dict.fromkeys(row["scenario"] for row in rows))}
    return _frame(sorted(rows, key=lambda row: (order[row["scenario"]], row["horizon"])))


def accept_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and A'; differences are to A' = 5, the default."""
    return _frame(
        [
            {
                "scenario": one.cell.scenario.name,
                "accept": policy.accept,
                **_row(one, policy.name, "doral(accept=5)"),
            }
            for one in found
            for policy in one.cell.policies
        ]
    )


def ablation_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and variant; differences are to the corrected policy of the same name."""
    return _frame(
        [
            {
                "scenario": one.cell.scenario.name,
                "variant": variant.policy.name,
                "says": variant.says,
                **_row(one, variant.policy.name, variant.reference),
            }
            for one in found
            for variant in ABLATION
        ]
    )


def race_table(result: SimulationResult) -> pl.DataFrame:
    """What DORAL's stage 1 took and found, by scenario. D-ALP's race is the same one: it sees the same answers."""
    rows = []
    for scenario in result.scenarios:
        found = result.of(scenario, "doral")
        rounds = np.array([one.race_rounds for one in found])
        cutoffs = np.array([one.cutoff for one in found])
        rows.append(
            {
                "scenario": scenario,
                "runs": len(found),
                "rounds_median": float(np.median(rounds)),
                "rounds_min": int(rounds.min()),
                "rounds_max": int(rounds.max()),
                "spend_percent": 100.0 * float(np.mean([one.race_spend / one.spend for one in found])),
                "capped_runs": sum(one.race_capped for one in found),
                "cutoff_median": float(np.median(cutoffs)),
                "cutoff_min": float(cutoffs.min()),
                "cutoff_max": float(cutoffs.max()),
            }
        )
    return pl.DataFrame(rows)


def accepted_percent(result: SimulationResult, scenario: str, arms: Iterable[str]) -> dict[str, float]:
    """By arm: in how many percent of the runs DORAL's race accepted it."""
    found = result.of(scenario, "doral")
    counts = Counter(name for one in found for name in one.accepted)
    return {arm: 100.0 * counts[arm] / len(found) for arm in arms}
