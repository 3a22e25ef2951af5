"""How long to wait: what is there after each wait, what is lost without the rest, and what is held open meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from doral import _check
from doral.log.kaplan_meier import ENOUGH, Survival, sample, survival_of
from doral.log.log import Log
from doral.planning import bands
from doral.planning.curves import enough_of, grid_of
from doral.planning.deadline import Deadline, deadline_of
from doral.planning.fact import Fact, percent
from doral.planning.waits import Answers, Wait, ages_of, answers_of, rounded_up, wait_of

KEEP = 0.95


@dataclass(frozen=True, kw_only=True)
class Waiting(Fact):
    """How long to wait: the shortest wait that keeps `keep` of what comes within the deadline.

    That is reward, where rewards are above 0 in sum, otherwise answers.
    """

    deadline: Deadline
    waits: tuple[Wait, ...]  # ages ascending, the last one the deadline, or as long as anybody was watched
    keep: float
    advised: float | None
    advised_low: float | None  # 95% interval
    advised_high: float | None
    advised_wait: Wait | None
    fewer_open: float | None  # share of decisions that are not held open any more


def waiting(log: Log, *, deadline: float | None = None, keep: float = KEEP, seed: int = 0) -> Waiting:
    """What each wait means, and the shortest that keeps enough of what comes within the deadline."""
    keep = _check.finite_number("keep", keep, above=0, at_most=1)
    until = deadline_of(log, deadline)
    is_served = log.is_served
    delay, watched = log.delay[is_served], log.watched[is_served]
    if not log.has_delays or until.age is None or not np.isfinite(delay).any():
        why = "Nothing can be said about waiting: "
        why += "the log does not say when answers came." if not log.has_delays else "no answer has come yet."
        return _unknown(until, keep, why)
    limit = min(until.age, float(watched.max()))
    found = survival_of(delay, watched)
    answers = answers_of(log)
    if not answers.delay.size or answers.delay[0] > limit:
        return _unknown(until, keep, f"Nothing came within {log.clock.shown(limit)}: wait longer.")
    grid = grid_of(found, float(watched.max()))
    sampled = sample(found, grid)
    known = sampled.at_risk >= enough_of(delay.size)
    drawn = bands.redraw(sampled, delay.size, bands.all_alike(grid.size), np.random.default_rng(seed))
    band = bands.band_of(sampled, known, drawn)

    def wait(age: float) -> Wait:
        at = int(np.searchsorted(grid, age, side="right")) - 1
        after = min(int(np.searchsorted(grid, age, side="left")), grid.size - 1)
        limits = (float(band.low[at]), float(band.high[after])) if known[after] else (None, None)
        return wait_of(log, answers, age, limit, limits)

    waits = tuple(wait(age) for age in ages_of(log, answers, limit))
    n_in_time = int((answers.delay <= limit).sum())
    if n_in_time < ENOUGH:
        came = "1 answer" if n_in_time == 1 else f"{n_in_time:,} answers"
        why = f"Only {came} came in time: too few to say how long to wait."
        return replace(_unknown(until, keep, why), waits=waits)
    advised, low, high = _advice(answers, found, delay.size, limit, keep, seed)
    snapped = min(rounded_up(log, advised), limit)
    best, whole = wait(snapped), wait(limit)
    fewer = None
    if best.open_decisions is not None and whole.open_decisions:
        fewer = 1.0 - best.open_decisions / whole.open_decisions
    result = Waiting(
        deadline=until,
        waits=waits,
        keep=keep,
        advised=snapped,
        advised_low=low,
        advised_high=max(high, snapped),
        advised_wait=best,
        fewer_open=fewer,
        sentence="",
    )
    return replace(result, sentence=_sentence(log, result, limit))


def _unknown(until: Deadline, keep: float, why: str) -> Waiting:
    return Waiting(
        deadline=until,
        waits=(),
        keep=keep,
        advised=None,
        advised_low=None,
        advised_high=None,
        advised_wait=None,
        fewer_open=None,
        sentence=why,
    )


def _advice(
    answers: Answers, found: Survival, rows: int, limit: float, keep: float, seed: int
) -> tuple[float, float, float]:
    """The shortest wait that keeps enough, and the interval of what it would be in logs drawn anew."""
    in_time = answers.delay <= limit
    delay, value = answers.delay[in_time], answers.reward[in_time]
    brought = answers.weight[in_time] * value
    if not np.isfinite(value).all() or brought.sum() <= 0.0:
        value, brought = np.ones(delay.size), answers.weight[in_time]
    # rewards below 0 may take back what came before: enough is kept once it stays kept
    lacks = np.flatnonzero(np.cumsum(brought) < keep * brought.sum() * (1.0 - 1e-12))
    advised = float(delay[min(lacks[-1] + 1, delay.size - 1)]) if lacks.size else float(delay[0])
    grid = np.unique(np.append(grid_of(found, limit), [advised, limit]))
    grid = grid[grid <= limit]
    worth = bands.worth_by_step(delay, value, grid)
    parts = bands.parts_of(bands.redraw(sample(found, grid), rows, worth, np.random.default_rng([seed, 1])).came)
    if parts.shape[0] < 2:
        return advised, 0.0, limit
    first = grid[np.argmax(parts >= keep, axis=1)]
    low, high = np.quantile(first, [0.025, 0.975])
    return advised, float(min(low, advised)), float(max(high, advised))


def _sentence(log: Log, told: Waiting, limit: float) -> str:
    best = told.advised_wait
    assert best is not None
    assert told.advised is not None
    kept = (
        f"{percent(best.value)} of the value is"
        if best.value is not None
        else f"{percent(best.kept or 0.0)} of the answers are"
    )
    shown, whole = log.clock.shown(told.advised), log.clock.shown(limit)
    if told.advised >= limit or shown == whole:
        return f"Wait {whole}: less would lose more than {percent(1.0 - told.keep)} of what comes by then."
    words = f"Wait {shown}, not {whole}: {kept} there"
    if told.fewer_open is not None and told.fewer_open >= 0.01:
        words += f", with {percent(told.fewer_open)} fewer decisions open"
    if told.advised_low is not None and told.advised_high is not None:
        words += (
            f" (between {log.clock.shown(told.advised_low)} and {log.clock.shown(told.advised_high)}, for all we know)"
        )
    return words + "."
