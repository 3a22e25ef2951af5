"""What arms cost, by the list and on average in the end; and what comes where nothing is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from doral._arrays import Ints
from doral.inference.bands import Average, mean_of_answers
from doral.inference.survival import rows_by_group
from doral.logs.log import Log
from doral.planning.curves import MOST_ARMS
from doral.planning.facts import Fact, number, percent

PaidWhen = Literal["always", "on answer", "on success only"]

_RARELY = 0.01  # of answers: what is paid more rarely than this is an exception, not a rule


@dataclass(frozen=True, kw_only=True)
class Price(Fact):
    """What a decision for an arm costs: what is not known to be paid yet is not counted as nothing.

    Where payment depends on the answer, answers that are still to come are estimated (Kaplan and Meier); what comes
    later than anybody was watched, or never, is taken as not paid, as a campaign would.
    """

    arm: str
    context: str | None  # None: all together
    rows: int
    list_price: float  # on average, where it differs
    paid: float | None  # per decision
    low: float | None  # 95% interval
    high: float | None
    paid_share: float | None  # of the list price
    paid_when: PaidWhen | None  # None where nothing was answered


def prices(log: Log, *, most_arms: int = MOST_ARMS) -> tuple[Price, ...]:
    """Every arm that was used, and the arms that were used most also by context, where there are several."""
    by_arm = rows_by_group(log.arm + 1, len(log.arms) + 1)[1:]
    found: list[Price] = []
    for arm, rows in enumerate(by_arm):
        if rows.size == 0:
            continue
        paid_when = _when(log, rows)
        found.append(_price(log, log.arms[arm], None, rows, paid_when))
        if arm < most_arms and len(log.contexts) > 1:
            by_context = rows_by_group(log.context[rows], len(log.contexts))
            found += [
                _price(log, log.arms[arm], log.contexts[context], rows[mine], paid_when)
                for context, mine in enumerate(by_context)
                if mine.size
            ]
    return tuple(found)


def _when(log: Log, rows: Ints) -> PaidWhen | None:
    """By what was paid for: answers above 0, other answers, no answer at all."""
    if log.paid_when == "always":
        return "always"
    known = rows[~np.isnan(log.paid[rows]) & (log.cost[rows] > 0.0)]
    is_paid, is_answered = log.paid[known] > 0.0, np.isfinite(log.delay[known])
    if not is_answered.any():
        return None
    if (~is_answered).any() and is_paid[~is_answered].mean() > _RARELY:
        return "always"
    failed = is_answered & ~(log.reward[known] > 0.0)
    if failed.any() and is_paid[failed].mean() <= _RARELY and is_paid[is_answered & ~failed].any():
        return "on success only"
    return "on answer"


def _price(log: Log, arm: str, context: str | None, rows: Ints, paid_when: PaidWhen | None) -> Price:
    is_known = ~np.isnan(log.paid[rows])
    left = np.where(np.isfinite(log.delay[rows]), log.delay[rows], log.watched[rows])
    listed = float(log.cost[rows].mean())
    paid: Average | None
    if is_known.all() and (log.paid[rows] == log.cost[rows]).all() and np.ptp(log.cost[rows]) == 0.0:
        paid = Average(listed, listed, listed)  # nothing to be unsure of
    else:  # an end that is known without an answer, such as one that expired, is known when it came to its end
        paid = mean_of_answers(np.where(is_known, left, np.inf), log.watched[rows], log.paid[rows])
    price = Price(
        arm=arm,
        context=context,
        rows=int(rows.size),
        list_price=listed,
        paid=None if paid is None else paid.mean,
        low=None if paid is None else paid.low,
        high=None if paid is None else paid.high,
        paid_share=None if paid is None or listed == 0.0 else paid.mean / listed,
        paid_when=paid_when,
        sentence="",
    )
    return _told(price)


def _told(price: Price) -> Price:
    who = price.arm if price.context is None else f"{price.arm} for {price.context}"
    if price.paid is None or price.low is None or price.high is None:
        return replace(
            price, sentence=f"{who} is listed at {number(price.list_price)}; what of it is paid is not known yet."
        )
    if price.list_price == 0.0 and price.paid == 0.0:
        return replace(price, sentence=f"{who} costs nothing.")
    if price.paid_when == "always" and price.low == price.high:
        return replace(price, sentence=f"{who} costs {number(price.paid)}.")
    when = {"on success only": ", only on success", "on answer": ", when an answer comes"}.get(
        price.paid_when or "", ""
    )
    of_it = "" if price.paid_share is None else f", {percent(price.paid_share)} of its list price{when}"
    return replace(
        price,
        sentence=(f"{who} costs {number(price.paid)} ({number(price.low)} to {number(price.high)}) on average{of_it}."),
    )


@dataclass(frozen=True, kw_only=True)
class NothingDone(Fact):
    """The mean reward of those for whom nothing was done, corrected for answers that are still to come."""

    context: str | None  # None: all together
    rows: int  # skipped
    answered: int
    value: float | None  # per arrival
    low: float | None  # 95% interval
    high: float | None


def nothing_done(log: Log) -> tuple[NothingDone, ...]:
    """All together, then by context where there are several; the first alone where nothing is known of it."""
    skipped = np.flatnonzero(~log.is_served)
    found = [_of(log, None, skipped)]
    if log.skips_are_answered and len(log.contexts) > 1:
        by_context = rows_by_group(log.context, len(log.contexts), ~log.is_served)
        found += [_of(log, name, rows) for name, rows in zip(log.contexts, by_context, strict=True)]
    return tuple(found)


def _of(log: Log, context: str | None, rows: Ints) -> NothingDone:
    average = mean_of_answers(log.delay[rows], log.watched[rows], log.reward[rows])
    answered = int(np.isfinite(log.delay[rows]).sum())
    whom = "" if context is None else f" for {context}"
    if rows.size == 0:
        sentence = f"The log does not say what doing nothing{whom} brings: every row has an arm."
    elif average is None:
        sentence = f"The log does not say what doing nothing{whom} brings: none of {rows.size:,} skipped was answered."
    else:
        sentence = (
            f"Doing nothing{whom} brings {number(average.mean)} ({number(average.low)} to {number(average.high)}) "
            f"per arrival ({answered:,} of {rows.size:,} skipped were answered)."
        )
    return NothingDone(
        context=context,
        rows=int(rows.size),
        answered=answered,
        value=None if average is None else average.mean,
        low=None if average is None else average.low,
        high=None if average is None else average.high,
        sentence=sentence,
    )
