"""How long to wait for an answer: what each wait keeps and holds open, and the deadline of a log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.inference import bands
from doral.inference.intervals import DRAWS, limits_of_draws
from doral.inference.survival import ENOUGH, NEARLY_ALL, Survival, sample, settled_age, survival_of, weigh_answers
from doral.logs.log import Log
from doral.planning.curves import enough_of, grid_of
from doral.planning.facts import Fact, percent


@dataclass(frozen=True, kw_only=True)
class Deadline(Fact):
    """How old an answer may be to count. Where nobody gives one: the age by which 99% of what comes has come."""

    age: float | None  # on the clock of the log; None where it has no delays or no answers
    is_given: bool
    watched: int  # rows that were watched so long


def deadline_of(log: Log, given: float | None = None) -> Deadline:
    """The one that is given (on the clock of the log, see `Clock.duration`), or one that is derived, and said."""
    watched = log.watched[log.is_served]
    longest = float(watched.max()) if watched.size else 0.0
    if given is not None:
        enough = int((watched >= given).sum())
        sentence = f"The deadline is {log.clock.shown(given)}, as given."
        if enough == 0:
            until = log.clock.shown(longest)
            sentence += f" No decision was watched for longer than {until}: what comes later is unknown."
        return Deadline(age=float(given), is_given=True, watched=enough, sentence=sentence)
    if not log.has_delays:
        why = "The log does not say when answers came, so no deadline can be derived from it."
        return Deadline(age=None, is_given=False, watched=0, sentence=why)
    settled = settled_age(log)
    if settled is None:
        why = "No answer has come yet, so no deadline can be derived from the log: give one."
        return Deadline(age=None, is_given=False, watched=0, sentence=why)
    return Deadline(
        age=settled.age,
        is_given=False,
        watched=int((watched >= settled.age).sum()),
        sentence=(
            f"No deadline is given: {log.clock.shown(settled.age)} is taken, by when {percent(NEARLY_ALL)} of the "
            f"answers that come within {log.clock.shown(settled.last)} have come."
        ),
    )


# Of what comes within the deadline: waits are told where these shares have come, and at half the deadline.
_SHARES = (0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)


@dataclass(frozen=True, kw_only=True)
class Wait(Fact):
    """What it means to wait so long for an answer and no longer.

    Biases are of the mean reward of a decision, relative to all that comes within the deadline: -0.3 is 30% too low.
    """

    age: float
    share: float  # of decisions that have answered by then
    share_low: float | None  # of the band of the return curve
    share_high: float | None
    kept: float | None  # of the answers within the deadline, those by then
    value: float | None  # of the reward within the deadline, what is there by then; None without any
    bias_as_zero: float | None  # if silence by then is counted as a zero
    bias_ignored: float | None  # if those who have not answered by then are left out
    variance: float | None  # of an estimate that corrects for the missing: times that of waiting until the deadline
    open_decisions: float | None  # on average, at the pace of the log
    open_budget: float | None  # list prices of these


class Answers(NamedTuple):
    """Answered rows of all arms in the order of their delays, with what they weigh."""

    delay: Floats
    reward: Floats
    weight: Floats
    cost_weight: Floats  # where each row counts by its list price
    never: float
    cost_never: float
    pace: float  # decisions per unit of the clock
    mean_cost: float


def answers_of(log: Log) -> Answers:
    is_served = log.is_served
    delay, watched, cost = log.delay[is_served], log.watched[is_served], log.cost[is_served]
    weighed = weigh_answers(delay, watched)
    by_cost = weigh_answers(delay, watched, cost) if cost.any() else weighed
    came = np.flatnonzero(np.isfinite(delay))
    came = came[np.argsort(delay[came], kind="stable")]
    return Answers(
        delay=delay[came],
        reward=log.reward[is_served][came],
        weight=weighed.weight[came],
        cost_weight=by_cost.weight[came],
        never=weighed.never,
        cost_never=by_cost.never,
        pace=delay.size / log.span,
        mean_cost=float(cost.mean()),
    )


def wait_of(log: Log, answers: Answers, age: float, limit: float, band: tuple[float | None, float | None]) -> Wait:
    by_then, in_time = answers.delay <= age, answers.delay <= limit
    share, whole = float(answers.weight[by_then].sum()), float(answers.weight[in_time].sum())
    brought = answers.weight * answers.reward
    value, all_value = float(brought[by_then].sum()), float(brought[in_time].sum())
    held = np.minimum(answers.delay, age)
    open_decisions = answers.pace * (float(answers.weight @ held) + answers.never * age)
    open_budget = answers.pace * answers.mean_cost * (float(answers.cost_weight @ held) + answers.cost_never * age)
    is_worth = all_value > 0.0
    kept = share / whole if whole > 0.0 else None
    told = Wait(
        age=age,
        share=share,
        share_low=None if band[0] is None else min(band[0], share),
        share_high=None if band[1] is None else max(band[1], share),
        kept=kept,
        value=value / all_value if is_worth else None,
        bias_as_zero=value / all_value - 1.0 if is_worth else None,
        bias_ignored=value / share / all_value - 1.0 if is_worth and share > 0.0 else None,
        variance=whole / share if share > 0.0 else None,
        open_decisions=open_decisions,
        open_budget=open_budget,
        sentence="",
    )
    words = f"By {log.clock.shown(age)}, {percent(share)} have answered"
    if told.value is not None and told.bias_as_zero is not None:
        words += f" and {percent(told.value)} of the value is there"
        if abs(told.bias_as_zero) >= 0.005:
            words += f"; counting silence as zeros is {percent(abs(told.bias_as_zero))} too "
            words += "low" if told.bias_as_zero < 0.0 else "high"
    return replace(told, sentence=f"{words}; about {open_decisions:,.0f} decisions are open at a time.")


def ages_of(log: Log, answers: Answers, limit: float) -> list[float]:
    """Where the shares of interest have come, in round numbers; the last is the limit."""
    weight = np.cumsum(answers.weight[answers.delay <= limit])
    at = np.searchsorted(weight, np.array(_SHARES) * weight[-1])
    found = [rounded_up(log, float(answers.delay[i])) for i in at] + [rounded_up(log, 0.5 * limit)]
    return [*sorted({age for age in found if 0.0 < age < limit}), limit]


def rounded_up(log: Log, age: float) -> float:
    """To two digits of the unit in which it is told: nobody waits 8.9372 days."""
    if age <= 0.0:
        return age
    unit = 1.0
    if log.clock.unit == "seconds":
        unit = next(
            (log.clock.size_of(one) for one in ("days", "hours", "minutes") if age >= log.clock.size_of(one)), 1.0
        )
    number = age / unit
    digit = 10.0 ** max(math.floor(math.log10(number)) - 1, 0 if log.clock.unit == "rounds" else -1)
    return math.ceil(number / digit - 1e-9) * digit * unit


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
    low, high = limits_of_draws(first) if first.size >= DRAWS else (0.0, limit)
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
        words += f" (95%: {log.clock.shown(told.advised_low)} to {log.clock.shown(told.advised_high)})"
    return words + "."
