"""What the paper claims."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from doral.experiments.kit.claim import MARGIN_PERCENT, Claim, claim, is_above, is_below, is_within, percent_difference
from doral.experiments.kit.shares import METRIC
from doral.experiments.paper.names import (
    DIVERSE_GEOMETRIC,
    DIVERSE_PARETO,
    SCENARIO_NAMES,
    SHOWN_NAMES,
    SIMILAR_GEOMETRIC,
    SIMILAR_PARETO,
)
from doral.simulation.results.intervals import Interval
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
