"""What the paper claims, as statements that an interval decides, never the eye."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from doral._arrays import Floats
from doral.simulation.outcome import METRICS
from doral.simulation.result import Interval, SimulationResult, interval

Verdict = Literal["holds", "fails", "undecided"]
Rule = Callable[[Interval], Verdict]

METRIC = "within_deadline"
OVERLAP_PERCENT = 1.0
CLOSE_PERCENT = 2.0

SIMILAR = ("paper/similar-geometric", "paper/similar-pareto")
DIVERSE_GEOMETRIC, DIVERSE_PARETO = "paper/diverse-geometric", "paper/diverse-pareto"
ALL = (*SIMILAR, DIVERSE_GEOMETRIC, DIVERSE_PARETO)
SHOWN_NAMES = {"doral": "DORAL", "d-alp": "D-ALP", "d-linucb": "D-LinUCB", "random": "Random"}


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
        """Shown to hold; what is undecided does not."""
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
        return "fails" if found.low > margin or found.high < -margin else "undecided"

    return rule


def is_above(found: Interval) -> Verdict:
    """The whole interval lies above 0; it fails when all of it lies below."""
    return "holds" if found.low > 0 else "fails" if found.high < 0 else "undecided"


def is_below(found: Interval) -> Verdict:
    """The whole interval lies below 0; it fails when all of it lies above."""
    return "holds" if found.high < 0 else "fails" if found.low > 0 else "undecided"


def percent_difference(ours: Floats, theirs: Floats) -> Interval:
    """The paired difference of the runs, in percent of their mean."""
    base = float(theirs.mean())
    if base == 0:
        unknown = float("nan")
        return Interval(unknown, unknown, unknown, unknown)
    return interval(100.0 * (ours - theirs) / base)


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


def check(result: SimulationResult) -> list[Claim]:
    """All claims, on a result of the paper's comparison."""
    return [*check_totals(result), *_late_start(result)]


def check_totals(result: SimulationResult) -> list[Claim]:
    """The claims about final rewards, which need no curves."""
    return [*_against_d_alp(result), *_above_the_others(result)]


def _against_d_alp(result: SimulationResult) -> Iterable[Claim]:
    unit = "% of D-ALP's reward"
    for scenario in SIMILAR:
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
        for scenario in ALL:
            found = _final(result, scenario, other)
            statement = f"DORAL earns more than {shown}"
            yield claim(4, f"above-{other}", scenario, statement, found, is_above, f"% of {shown}'s reward")


def _late_start(result: SimulationResult) -> Iterable[Claim]:
    statement = "DORAL starts late: when its stage 1 ends, it has earned less than D-LinUCB"
    for scenario in ALL:
        found = at_end_of_race(result, scenario, "d-linucb")
        yield claim(5, "late-start", scenario, statement, found, is_below, "% of D-LinUCB's reward by then")


def to_json(claims: Iterable[Claim]) -> str:
    """The file `claims.json`."""
    return json.dumps([claim.to_dict() for claim in claims], indent=2, ensure_ascii=False) + "\n"
