"""How heavy the tail of the delays is, and whether a mean delay exists.

Answers later than any row was watched are not seen, and some never come: only the delays between the beginning of the
tail and the longest watch are used, with the law cut off there (Aban, Meerschaert and Panorska 2006). So neither those
that never answer nor the end of watching bend the index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.inference.bands import Z
from doral.inference.survival import ENOUGH, rows_by_group, survival_of, weigh_answers
from doral.logs.log import Log
from doral.planning.curves import MOST_ARMS
from doral.planning.facts import Fact, YesNo

FEWEST = 50  # answers of a tail: an index from fewer is known to no more than a third of itself
# The distance of a law with a fitted rate from its sample, times the root of the sample's size, is below this in 4 of 5
# samples (Lilliefors 1969, for the exponential law, which a power law is in logarithms): what bends is seen early.
_FITS = 0.86
_STARTS = 40
_HALVINGS = 60
_STEEPEST = 600.0  # of a rate times its span: beyond it, the cut-off changes nothing and exponentials overflow
_ONE_SIDED = 1.645


class TailFit(NamedTuple):
    """The tail of some delays."""

    power: float  # 0 where late answers do not become fewer the way those of a tail do
    low: float
    high: float  # infinite where the answers say nothing against any large index
    start: float
    answers: int
    # Vuong's comparison of both laws, in units of what chance does in 1 of 20: above 1 the power law is surely better,
    # below -1 the exponential.
    against_exponential: float


class _Delays(NamedTuple):
    """Distinct delays, ascending; delays in whole steps were rounded up, and lie half a step earlier on average."""

    edge: Floats
    middle: Floats
    weight: Floats  # of all answers with this delay
    square: Floats  # sum of their squared weights
    n_answers: Floats


def fit_tail(delay: Floats, weight: Floats, until: float) -> TailFit | None:
    """Of answers in ascending order of delay, with their weights, watched `until` an age; None where they are too few.

    The tail begins at the first age from which a power law fits, by the largest distance of the two curves: a shorter
    tail would be less sure, a longer one is bent.
    """
    if delay.size < FEWEST or until <= delay[0]:
        return None
    found = _distinct(delay, weight)
    best: tuple[float, int] | None = None
    for first in _starts(found):
        apart = _distance(found, first, until)
        if best is None or apart < best[0]:
            best = apart, first
        if apart <= _FITS:
            break
    return None if best is None else _fitted(found, best[1], until)


def _distinct(delay: Floats, weight: Floats) -> _Delays:
    first = np.flatnonzero(np.concatenate([[True], delay[1:] > delay[:-1]]))
    edge = delay[first]
    is_in_steps = 2 * edge.size <= delay.size
    step = float(np.diff(edge).min()) if is_in_steps and edge.size > 1 else 0.0
    count = np.diff(np.append(first, delay.size)).astype(np.float64)
    return _Delays(
        edge, edge - 0.5 * step, np.add.reduceat(weight, first), np.add.reduceat(weight * weight, first), count
    )


def _starts(found: _Delays) -> list[int]:
    """Positions of the first delays of tails, from the longest tail to the shortest that still has enough answers."""
    left = _answers_from(found)
    last = int(np.flatnonzero(left >= FEWEST)[-1])
    if last < 1:
        return []
    goals = np.geomspace(left[1], left[last], _STARTS)
    return np.unique(np.clip(np.searchsorted(-left, -goals), 1, last)).tolist()


def _rate(mean: float, span: float) -> float:
    """Of an exponential law that is cut off at `span`, by its mean; below 0 where more is late than early."""
    if mean < span / _STEEPEST:
        return 1.0 / mean if mean > 0.0 else math.inf
    low, high = -_STEEPEST / span, 2.0 * _STEEPEST / span
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _mean_at(middle, span) > mean else (low, middle)
    return 0.5 * (low + high)


def _mean_at(rate: float, span: float) -> float:
    x = rate * span
    if abs(x) < 1e-6:
        return span * (0.5 - x / 12.0)
    return span * (1.0 / x - 1.0 / math.expm1(x)) if x < _STEEPEST else 1.0 / rate


def _share_by(logs: Floats, rate: float, span: float) -> Floats:
    if abs(rate * span) < 1e-9:
        return logs / span
    return np.asarray(np.expm1(-rate * logs) / math.expm1(-rate * span), dtype=np.float64)


def _distance(found: _Delays, first: int, until: float) -> float:
    """The largest distance of the law from its sample, times the root of the size of the sample."""
    start, weight = found.edge[first - 1], found.weight[first:]
    span = math.log(until / start)
    rate = _rate(float(np.average(np.log(found.middle[first:] / start), weights=weight)), span)
    by = np.cumsum(weight) / weight.sum()
    law = _share_by(np.log(found.edge[first:] / start), rate, span)
    before = np.concatenate([[0.0], by[:-1]]) if found.edge is found.middle else by
    return float(max(np.abs(by - law).max(), np.abs(before - law).max()) * math.sqrt(_size(found, first)))


def _size(found: _Delays, first: int) -> float:
    """How many answers of equal weight would be as sure."""
    return float(found.weight[first:].sum() ** 2 / found.square[first:].sum())


def _fitted(found: _Delays, first: int, until: float) -> TailFit:
    """From its beginning; an index that holds for a tail holds for its outer half and its outer quarter as well."""
    left = _answers_from(found)
    goals = [left[first] / part for part in (1.0, 2.0, 4.0)]
    # Answers that are collected in steps leave few ages: the outer parts begin no later than enough answers remain.
    last = int(np.flatnonzero(left >= FEWEST)[-1])
    firsts = [min(int(np.searchsorted(-left, -goal)), last) for goal in goals if goal >= FEWEST]
    fits = [_index(found, max(one, first), until) for one in firsts or [first]]
    compared = min(int(np.searchsorted(-left, -max(FEWEST, 0.25 * left[0]))), last)
    return TailFit(
        power=max(fits[0][0], 0.0),
        low=max(min(index - half for index, half in fits), 0.0),
        high=max(index + half for index, half in fits),
        start=float(found.edge[first - 1]),
        answers=int(left[first]),
        against_exponential=_against_exponential(found, max(compared, 1), until),
    )


def _answers_from(found: _Delays) -> Floats:
    """How many answers come at each delay or later."""
    return np.asarray(np.cumsum(found.n_answers[::-1])[::-1], dtype=np.float64)


def _index(found: _Delays, first: int, until: float) -> tuple[float, float]:
    """The index of the tail that begins just before a delay, and half of its 95% interval."""
    start, weight = float(found.edge[first - 1]), found.weight[first:]
    logs, span = np.log(found.middle[first:] / start), math.log(until / start)
    mean = float(np.average(logs, weights=weight))
    index = _rate(mean, span)
    spread = float((found.square[first:] * (logs - mean) ** 2).sum())  # late answers weigh more, and differ more
    return index, Z * math.sqrt(spread) / (float(weight.sum()) * _information(index, span))


def _against_exponential(found: _Delays, first: int, until: float) -> float:
    """Vuong's comparison, over the latest quarter of the answers: where laws differ, and where many are left."""
    start, weight = float(found.edge[first - 1]), found.weight[first:]
    logs, span = np.log(found.middle[first:] / start), math.log(until / start)
    index = _rate(float(np.average(logs, weights=weight)), span)
    beyond, reach = found.middle[first:] - start, until - start
    rate = _rate(float(np.average(beyond, weights=weight)), reach)
    gap = _log_density(logs, index, span) - logs - math.log(start) - _log_density(beyond, rate, reach)
    mean = float(np.average(gap, weights=weight))
    spread = math.sqrt(float((found.square[first:] * (gap - mean) ** 2).sum())) / float(weight.sum())
    return mean / (_ONE_SIDED * spread) if spread > 0.0 else 0.0


def _information(rate: float, span: float) -> float:
    """About the rate, in one answer: the variance of the law."""
    x = rate * span
    if abs(x) < 1e-3:
        return span**2 / 12.0
    return (1.0 / x**2 - 1.0 / (4.0 * math.sinh(0.5 * x) ** 2)) * span**2 if abs(x) < _STEEPEST else 1.0 / rate**2


def _log_density(at: Floats, rate: float, span: float) -> Floats:
    if abs(rate * span) < 1e-9:
        return np.full(at.size, -math.log(span))
    return np.asarray(math.log(rate / -math.expm1(-rate * span)) - rate * at, dtype=np.float64)


Tail = Literal["heavy", "light", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class DelayTail(Fact):
    """The tail of the delays of those who answer: P(delay > x) falls like x ** -index.

    A mean exists where the index is above 1. Those who never answer are not part of it: an answer is late here, not
    absent, and what is later than anybody was watched is not known. `tail` is "light" where late answers fall off as
    fast as an exponential or faster (then a mean exists, whatever the index), "heavy" where surely more slowly.
    """

    arm: str | None  # None: all arms together
    rows: int
    answered: int
    index: float | None
    low: float | None  # 95% interval of the index
    high: float | None  # None: no upper limit is known
    from_age: float | None  # the tail begins here
    answers: int  # later than that
    mean_exists: YesNo
    tail: Tail


def delay_tails(log: Log, *, most_arms: int = MOST_ARMS) -> tuple[DelayTail, ...]:
    """All arms together, then the arms that were used most; none for a log without delays."""
    if not log.has_delays:
        return ()
    by_arm = rows_by_group(log.arm + 1, len(log.arms) + 1)[1 : most_arms + 1]
    groups: list[tuple[str | None, Ints]] = [(None, np.flatnonzero(log.is_served))]
    groups += list(zip(log.arms, by_arm, strict=False))
    return tuple(_tail(log, name, rows) for name, rows in groups)


def _tail(log: Log, arm: str | None, rows: Ints) -> DelayTail:
    delay, watched = log.delay[rows], log.watched[rows]
    found = survival_of(delay, watched)
    known = found.ages[found.at_risk >= ENOUGH]
    fit = fit_tail(*_answers(delay, watched, float(known[-1])), float(known[-1])) if known.size else None
    is_power = fit is not None and fit.low > 0.0
    told = DelayTail(
        arm=arm,
        rows=int(rows.size),
        answered=int(np.isfinite(delay).sum()),
        index=fit.power if fit is not None and is_power else None,
        low=fit.low if fit is not None and is_power else None,
        high=fit.high if fit is not None and is_power and np.isfinite(fit.high) else None,
        from_age=None if fit is None else fit.start,
        answers=0 if fit is None else fit.answers,
        mean_exists="cannot tell",
        tail="cannot tell",
        sentence="",
    )
    who = "All arms together" if arm is None else arm
    if fit is None:
        why = f"{who}: too few late answers to say how long they can take (fewer than {FEWEST})."
        return replace(told, sentence=why)
    return _decided(log, told, fit, who)


def _answers(delay: Floats, watched: Floats, until: float) -> tuple[Floats, Floats]:
    """Delays up to an age, ascending, and what each weighs."""
    weight = weigh_answers(delay, watched).weight
    rows = np.flatnonzero((delay <= until) & (delay > 0.0))
    rows = rows[np.argsort(delay[rows], kind="stable")]
    return delay[rows], weight[rows]


def _decided(log: Log, told: DelayTail, fit: TailFit, who: str) -> DelayTail:
    tail: Tail = (
        "heavy" if fit.against_exponential > 1.0 else "light" if fit.against_exponential < -1.0 else "cannot tell"
    )
    mean_exists: YesNo = "cannot tell"
    if tail == "light" or fit.low > 1.0:
        mean_exists = "yes"
    elif fit.low > 0.0 and fit.high < 1.0:
        mean_exists = "no"
    after = f"after {log.clock.shown(fit.start)}"
    if tail == "light":
        words = f"{who}: late answers fall off quickly {after}; a mean delay exists."
    elif told.index is None:
        words = f"{who}: how long answers can take cannot be told: no tail is to be seen in what was watched."
    else:
        high = "no limit" if not np.isfinite(fit.high) else f"{fit.high:.2g}"
        words = (
            f"{who}: {after}, the share still to come falls like a power of {fit.power:.2g} ({fit.low:.2g} to {high}); "
        )
        words += {
            "yes": "a mean delay exists.",
            "no": "some answers take so long that there is no mean delay.",
            "cannot tell": "whether a mean delay exists cannot be told.",
        }[mean_exists]
    return replace(told, tail=tail, mean_exists=mean_exists, sentence=words)
