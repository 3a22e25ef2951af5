"""Statements that an interval decides, never the eye."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from doral._arrays import Floats
from doral.simulation.results.intervals import UNKNOWN, Interval, interval

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
