"""Where a peer stands on a scenario: its share of the oracle, and the paired difference to `doral-otf`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doral.simulation.results.differences import FEWEST_RUNS, Interval, interval, t_quantile

AHEAD, BEHIND, LEVEL, NOT_PLAYED = "ahead", "behind", "level", "not played"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """In percent of the oracle's reward; `lead` is how far `doral-otf` is ahead, in points."""

    peer: str
    policy: str
    scenario: str
    share: Interval | None = None
    lead: Interval | None = None
    runs: int = 0
    way: str = ""
    words: str = ""  # why there are no figures
    pace: str = ""  # of somebody who is too slow

    @property
    def verdict(self) -> str:
        """Of the peer."""
        if self.lead is None:
            return NOT_PLAYED
        if self.lead.high < 0.0:
            return AHEAD
        return BEHIND if self.lead.low > 0.0 else LEVEL


def shares_of(runs: list[dict[str, Any]], best: dict[int, float]) -> dict[int, float]:
    """By run: what the choices were worth, in percent of the oracle's."""
    return {run["run"]: 100.0 * run["expected"] / best[run["run"]] for run in runs}


def standings(found: dict[str, Any]) -> list[Standing]:
    """One for every policy of every peer on every scenario."""
    own = {row["name"]: row["runs"] for row in found["scenarios"]}
    return [_standing(played, own[played["scenario"]]) for played in found["played"]]


def mean_lead(every: list[Standing]) -> Interval | None:
    """Over scenarios, each with the same weight; their runs are independent (degrees of freedom after Welch)."""
    leads = [(one.lead, one.runs) for one in every if one.lead is not None]
    if not leads:
        return None
    squares = np.array([lead.se**2 for lead, _ in leads])
    mean, se = float(np.mean([lead.mean for lead, _ in leads])), float(np.sqrt(squares.sum())) / len(leads)
    if se == 0.0:
        return Interval(mean, 0.0, mean, mean)
    degrees = squares.sum() ** 2 / float((squares**2 / [runs - 1 for _, runs in leads]).sum())
    reach = se * t_quantile(degrees)
    return Interval(mean, se, mean - reach, mean + reach)


def own_share(row: dict[str, Any]) -> Interval:
    best = {run["run"]: run["best"] for run in row["runs"]}
    return interval(np.array(list(shares_of(row["runs"], best).values())))


def other_share(row: dict[str, Any], who: str) -> Interval:
    """Return the share of `known` (true means, a plain way with the budget) or `second` (another policy of DORAL)."""
    best = {run["run"]: run["best"] for run in row["runs"]}
    return interval(np.array(list(shares_of(row[who]["runs"], best).values())))


def _standing(played: dict[str, Any], own: list[dict[str, Any]]) -> Standing:
    named = {name: played[name] for name in ("peer", "policy", "scenario")}
    if "left_out" in played:
        return Standing(**named, words=played["left_out"])
    if "error" in played:
        return Standing(**named, words=f"failed: {played['error']}")
    whole = [run for run in played["runs"] if run["rounds"] == run["horizon"]]
    if len(whole) < FEWEST_RUNS:
        rounds, seconds = (sum(run[name] for run in played["runs"]) for name in ("rounds", "seconds"))
        return Standing(**named, words="too slow", pace=f" ({1000.0 * seconds / rounds:.2g} ms a round)")
    best = {run["run"]: run["best"] for run in own}
    ours, theirs = shares_of(own, best), shares_of(whole, best)
    return Standing(
        **named,
        share=interval(np.array(list(theirs.values()))),
        lead=interval(np.array([ours[run] - share for run, share in theirs.items()])),
        runs=len(whole),
        way=played["way"],
    )
