"""What the paper claims, and the tables of the experiments, tidy: one row per fact."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from doral.engine.options import PolicyOptions
from doral.experiments.kit.batches import CellResult, Extent, Finished, base_name
from doral.experiments.kit.claim import (
    MARGIN_PERCENT,
    METRIC,
    Claim,
    claim,
    end_columns,
    frame_of,
    is_above,
    is_below,
    is_within,
    percent_difference,
    share_percent,
    together,
)
from doral.experiments.paper.cells import (
    ABLATION,
    ABLATION_STUDY,
    ACCEPT_SWEEP,
    COMPARISON,
    DIVERSE_GEOMETRIC,
    DIVERSE_PARETO,
    HORIZON_SWEEP,
    SCENARIO_NAMES,
    SHOWN_NAMES,
    SIMILAR_GEOMETRIC,
    SIMILAR_PARETO,
)
from doral.simulation.results.differences import UNKNOWN, Interval, interval
from doral.simulation.results.outcome import METRICS
from doral.simulation.results.result import SimulationResult

OVERLAP_PERCENT = MARGIN_PERCENT
CLOSE_PERCENT = 2.0


def judge(result: SimulationResult) -> list[Claim]:
    """All claims, on a result of the paper's comparison."""
    return [*judge_totals(result), *_late_start(result)]


def judge_totals(result: SimulationResult) -> list[Claim]:
    """The claims about final rewards, which need no curves."""
    return [*_against_d_alp(result), *_above_the_others(result)]


def _against_d_alp(result: SimulationResult) -> Iterable[Claim]:
    unit = "% of D-ALP's reward"
    for scenario in (SIMILAR_GEOMETRIC, SIMILAR_PARETO):
        statement = f"Similar delays: DORAL and D-ALP overlap, their difference is within ±{OVERLAP_PERCENT:g}%"
        found = _final(result, scenario, "d-alp")
        yield claim(1, "overlap", scenario, statement, found, is_within(OVERLAP_PERCENT), unit)
    statement = "Diverse Pareto delays: DORAL earns more than D-ALP"
    found = _final(result, DIVERSE_PARETO, "d-alp")
    yield claim(2, "above-d-alp", DIVERSE_PARETO, statement, found, is_above, unit)
    statement = f"Diverse geometric delays: DORAL and D-ALP come close, their difference is within ±{CLOSE_PERCENT:g}%"
    found = _final(result, DIVERSE_GEOMETRIC, "d-alp")
    yield claim(3, "close", DIVERSE_GEOMETRIC, statement, found, is_within(CLOSE_PERCENT), unit)


def _above_the_others(result: SimulationResult) -> Iterable[Claim]:
    for other in ("d-linucb", "random"):
        shown = SHOWN_NAMES[other]
        for scenario in SCENARIO_NAMES:
            found = _final(result, scenario, other)
            statement = f"DORAL earns more than {shown}"
            yield claim(4, f"above-{other}", scenario, statement, found, is_above, f"% of {shown}'s reward")


def _late_start(result: SimulationResult) -> Iterable[Claim]:
    statement = "DORAL starts late: when its stage 1 ends, it has earned less than D-LinUCB"
    for scenario in SCENARIO_NAMES:
        found = at_end_of_race(result, scenario, "d-linucb")
        yield claim(5, "late-start", scenario, statement, found, is_below, "% of D-LinUCB's reward by then")


def _final(result: SimulationResult, scenario: str, other: str) -> Interval:
    return percent_difference(result.rewards(scenario, "doral", METRIC), result.rewards(scenario, other, METRIC))


def at_end_of_race(result: SimulationResult, scenario: str, other: str) -> Interval:
    """The difference at the last checkpoint of DORAL's stage 1 (or the first there is), run by run."""
    column = METRICS.index(METRIC)
    ours, theirs = [], []
    for mine, yours in zip(result.of(scenario, "doral"), result.of(scenario, other), strict=True):
        # A race that never ended lasted until the end.
        ended = mine.race_ended or int(mine.rounds[-1])
        index = max(0, int(np.searchsorted(mine.rounds, ended, side="right")) - 1)
        ours.append(mine.curve[index, column])
        theirs.append(yours.curve[index, column])
    return percent_difference(np.array(ours), np.array(theirs))


@dataclass(frozen=True, kw_only=True)
class PaperFindings:
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

    def tables(self) -> dict[str, pl.DataFrame | None]:
        """All tables by the names of their files."""
        return {
            "summary": self.summary,
            "runs": self.runs,
            "race": self.race,
            "sweep_horizon": self.horizon,
            "sweep_accept": self.accept,
            "ablation": self.ablation,
        }


def analyse(finished: Finished, extent: Extent) -> PaperFindings:
    """From outcomes to tables."""
    compared, ablated = finished.of(COMPARISON), finished.of(ABLATION_STUDY)
    comparison = together(compared, seed=compared[0].result.seed)
    # The paper's own horizon comes from the comparison, cut to the runs of the others.
    horizons = [*(_first_runs(one, extent.side_runs) for one in compared), *finished.of(HORIZON_SWEEP)]
    return PaperFindings(
        comparison=comparison,
        claims=judge(comparison),
        literal_claims=judge_totals(literal_result(ablated)) if extent.with_sides else None,
        summary=comparison.summary(),
        runs=comparison.runs().with_columns(pl.col("accepted").list.join(";")),
        race=race_table(comparison),
        horizon=horizon_table(horizons) if extent.with_sides else None,
        accept=accept_table(finished.of(ACCEPT_SWEEP)) if extent.with_sides else None,
        ablation=ablation_table(ablated) if extent.with_sides else None,
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


def _row(one: CellResult, policy: str, reference: str) -> dict[str, Any]:
    """The share of the oracle's reward, and its paired difference to the reference in points."""
    name = one.cell.scenario.name
    found = one.result.of(name, policy)
    shares = share_percent(one.result, name, policy)
    base = share_percent(one.result, name, reference)
    # A policy is not compared with itself.
    difference = interval(shares - base) if policy != reference else UNKNOWN
    return {
        "runs": len(found),
        **end_columns("share_percent", interval(shares)),
        "reference": reference,
        **end_columns("difference_points", difference),
        "race_spend_mean": float(np.mean([outcome.race_spend for outcome in found])),
        "race_capped_runs": sum(outcome.race_capped for outcome in found),
        "cutoff_mean": float(np.mean([outcome.cutoff for outcome in found])),
    }


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
    return frame_of(sorted(rows, key=lambda row: (order[row["scenario"]], row["horizon"])))


def accept_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and A'; differences are to A' = 5, the default."""
    return frame_of(
        [
            {
                "scenario": one.cell.scenario.name,
                "accept": policy.accept,
                **_row(one, policy.name, "doral(accept=5)"),
            }
            for one in found
            for policy in one.cell.policies
            if isinstance(policy, PolicyOptions)
        ]
    )


def ablation_table(found: Iterable[CellResult]) -> pl.DataFrame:
    """By scenario and variant; differences are to the corrected policy of the same name."""
    return frame_of(
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
