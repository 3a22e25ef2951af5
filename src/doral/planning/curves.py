"""How many answers have come by each age: return curves with bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.inference import bands
from doral.inference.survival import ENOUGH, Survival, rows_by_group, sample, survival_of
from doral.logs.log import Log
from doral.planning.facts import Fact, percent

Outcome = Literal["any", "above 0", "not above 0"]

MOST_ARMS = 40  # more curves than this nobody reads: those of the arms that were used most
_QUANTILES, _EVEN = 120, 60  # ages where answers are many, and ages spread evenly: at most 200 in all


@dataclass(frozen=True, kw_only=True)
class ReturnCurve(Fact):
    """The share that has answered by each age: of one arm, or of all together; all answers, or those of one outcome.

    With silent feedback only what is not 0 is ever heard: the curve is the share of all decisions of which something
    was heard. With explicit feedback there are also curves by outcome. Nobody knows the outcome of those who have not
    answered, so these are shares of what is known to come: of all answers of this outcome by `known_until`, how many
    are there by each age (cumulative incidences, divided by their last value). They say which outcome comes sooner,
    not how many come.

    The true curve lies inside `low` to `high` as a whole, from the first answer to `known_until`, in 95 of 100 logs;
    at a single age it lies inside `point_low` to `point_high` in 95 of 100. Where too little is known these are None.
    """

    arm: str | None  # None: all arms together
    outcome: Outcome
    rows: int
    answered: int
    ages: tuple[float, ...]  # on the clock of the log, ascending, the first 0; at most 200
    share: tuple[float, ...]  # by each of them, 0 to 1
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    point_low: tuple[float | None, ...]
    point_high: tuple[float | None, ...]
    longest: float  # how long somebody was watched at most
    known_until: float | None  # the last age at which enough were still watched for a band


def return_curves(log: Log, *, seed: int = 0, most_arms: int = MOST_ARMS) -> tuple[ReturnCurve, ...]:
    """All arms together, then the arms that were used most; each with its outcomes where feedback is explicit.

    Doing nothing comes last, where it was answered. A log without delays has no curves.
    """
    if not log.has_delays:
        return ()
    rng = np.random.default_rng(seed)
    groups: list[tuple[str | None, Ints]] = [(None, np.flatnonzero(log.is_served))]
    rows = rows_by_group(log.arm + 1, len(log.arms) + 1)
    groups += [(name, rows[arm + 1]) for arm, name in enumerate(log.arms[:most_arms])]
    if log.skips_are_answered:
        groups.append((log.arm_names()[-1], rows[0]))
    found: list[ReturnCurve] = []
    for name, members in groups:
        found += _curves(log, name, members, rng)
    return tuple(found)


def enough_of(rows: int) -> float:
    """How many must still be watched for a band: one of them then moves a curve by no more than chance moves it all."""
    return max(float(ENOUGH), math.sqrt(rows))


def grid_of(found: Survival, longest: float) -> Floats:
    """Ages at which a curve is told: where answers are many, and evenly; the first is 0, the last the longest watch."""
    even = np.linspace(0.0, longest, _EVEN)
    came = found.answered > 0.0
    if came.sum() > 1:
        # Midway between two ages at which answers came: just at one, the estimate is at its highest against the truth.
        midway = 0.5 * (found.ages[came][:-1] + found.ages[came][1:])
        by = np.cumsum(found.answered[came])[:-1]
        at = np.unique(np.searchsorted(by, np.linspace(by[0], by[-1], _QUANTILES)))
        even = np.concatenate([even, midway[at]])
    return np.unique(even)


def _curves(log: Log, arm: str | None, rows: Ints, rng: np.random.Generator) -> list[ReturnCurve]:
    """All answers of an arm, and those of each outcome where feedback is explicit: from the same logs drawn anew."""
    delay, watched = log.delay[rows], log.watched[rows]
    is_answered = np.isfinite(delay)
    is_above = is_answered & (log.reward[rows] > 0.0)
    found = survival_of(delay, watched)
    longest = float(np.where(is_answered, np.maximum(delay, watched), watched).max()) if rows.size else 0.0
    grid = grid_of(found, longest)
    sampled = sample(found, grid)
    is_known = sampled.at_risk >= enough_of(rows.size)
    n_known = int(is_known.sum())  # the first ages: ever fewer are watched
    worth = bands.worth_by_step(delay[is_answered], is_above[is_answered].astype(np.float64), grid)
    drawn = bands.redraw(sampled, rows.size, worth, rng)

    def curve(outcome: Outcome, of_kind: Flags, ages: Floats, band: bands.Band) -> ReturnCurve:
        known = n_known if of_kind.any() else 0
        told = ReturnCurve(
            arm=arm,
            outcome=outcome,
            rows=int(rows.size),
            answered=int(of_kind.sum()),
            ages=tuple(ages.tolist()),
            share=tuple(band.share.tolist()),
            low=_known(band.low, known),
            high=_known(band.high, known),
            point_low=_known(band.point_low, known),
            point_high=_known(band.point_high, known),
            longest=longest,
            known_until=float(grid[known - 1]) if known else None,
            sentence="",
        )
        return replace(told, sentence=_sentence(log, told))

    curves = [curve("any", is_answered, grid, bands.band_of(sampled, is_known, drawn))]
    if log.feedback == "explicit":  # shares of what comes by the last age at which enough were watched
        ages, of_above = grid[:n_known], drawn.came[:, :n_known]
        above = bands.band_of_part(_incidence(found, delay[is_above], ages), of_above)
        is_other = is_answered & ~is_above
        came_other = 1.0 - drawn.waiting[:, :n_known] - of_above
        other = bands.band_of_part(_incidence(found, delay[is_other], ages), came_other)
        curves += [curve("above 0", is_above, ages, above), curve("not above 0", is_other, ages, other)]
    return curves


def _known(values: Floats, n_known: int) -> tuple[float | None, ...]:
    return tuple(one if i < n_known else None for i, one in enumerate(values.tolist()))


def _incidence(found: Survival, delay: Floats, grid: Floats) -> Floats:
    """The share of all rows that has answered with an outcome by each age: `delay` are those with this outcome.

    A row that was answered weighs as in `weigh_answers`: the share still waiting just before, over those watched.
    """
    at = np.searchsorted(found.ages, delay)
    before = np.concatenate([[1.0], found.waiting[:-1]])[at] / found.at_risk[at] if delay.size else delay
    order = np.argsort(delay)
    upto = np.searchsorted(delay[order], grid, side="right")
    return np.concatenate([[0.0], np.cumsum(before[order])])[upto]


def _sentence(log: Log, curve: ReturnCurve) -> str:
    who = "All arms together" if curve.arm is None else f"{curve.arm}"
    if curve.rows == 0:
        return f"{who}: it was never used, so nothing is known."
    if curve.answered == 0:
        kind = "" if curve.outcome == "any" else f" {curve.outcome}"
        return (
            f"{who}: no answer{kind} in {curve.rows:,} decisions, watched for up to {log.clock.shown(curve.longest)}."
        )
    if curve.known_until is None and curve.answered == curve.rows:
        return f"{who}: all {curve.rows:,} answered, within {log.clock.shown(curve.longest)}."
    if curve.known_until is None:
        return f"{who}: {curve.answered:,} of {curve.rows:,} answered; too few were watched for a curve with a band."
    last = max(i for i, one in enumerate(curve.low) if one is not None)
    share, low, high = curve.share[last], curve.low[last] or 0.0, curve.high[last] or 0.0
    half = next(age for age, one in zip(curve.ages, curve.share, strict=True) if one >= 0.5 * share - 1e-12)
    if curve.outcome != "any":
        return f"{who}: half of the answers {curve.outcome} were there by {log.clock.shown(half)}."
    return (
        f"{who}: {percent(share)} ({percent(low)} to {percent(high)}) answered within "
        f"{log.clock.shown(curve.known_until)}, half of them by {log.clock.shown(half)}."
    )
