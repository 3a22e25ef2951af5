"""What arms bring and cost: posterior draws, by cell, over all who arrive; and what comes where nothing is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral.inference.bands import Average, mean_of_answers
from doral.inference.intervals import limits_of_draws, of_draws
from doral.inference.survival import rows_by_group
from doral.inference.truths import Truths
from doral.logs.log import Log
from doral.planning.curves import MOST_ARMS
from doral.planning.facts import Fact, between, named, number, percent
from doral.problem import Problem


class Draws(NamedTuple):
    """Arms that are bought; what they bring is beyond what doing nothing brings, where that is known."""

    values: Floats  # (B, J, A) of one decision, by its deadline
    costs: Floats  # (B, J, A) paid for it on average
    shares: Floats  # (B, J)


def draws_of(log: Log, truths: Truths, problem: Problem) -> Draws:
    """As many as there are truths."""
    worth, n_bought = truths.worths.worth, len(log.arms)
    values = worth[:, :, :n_bought]
    if log.skips_are_answered:
        values = values - worth[:, :, n_bought:]
    listed = np.broadcast_to(problem.costs_by_context, (len(log.contexts), problem.n_arms))[:, :n_bought]
    costs = np.broadcast_to(listed, values.shape)
    if problem.paid == "on_answer":
        costs = np.array([_paid(truths, number)[:, :n_bought] for number in range(truths.n)])
    rng = np.random.default_rng([truths.seed, 3])
    counts = np.bincount(log.context, minlength=len(log.contexts)).astype(np.float64)
    return Draws(values, np.ascontiguousarray(costs), rng.dirichlet(np.maximum(counts, 0.5), size=truths.n))


def _paid(truths: Truths, number: int) -> Floats:
    """(J, A) what a decision costs in this truth."""
    total = np.add.reduceat(truths.weights(number) * truths.paid, truths.starts[:-1])
    return total.reshape(truths.cells.n_contexts, truths.cells.n_arms)


def chances_of(log: Log, *, rate: float | None = None) -> Floats:
    """(J, A) with which chance each arm was given to whoever arrived in each context: what is done today.

    Where another budget is planned, all chances are changed by the same factor (`rate`), as far as there are people.
    """
    n_arms = len(log.arms)
    table = np.zeros((len(log.contexts), n_arms))
    is_served = log.is_served
    np.add.at(table, (log.context[is_served], log.arm[is_served]), 1.0)
    chances = table / np.maximum(np.bincount(log.context, minlength=len(log.contexts)), 1)[:, None]
    if rate is None:
        return chances
    scaled = chances * rate
    return np.asarray(scaled / np.maximum(scaled.sum(axis=1, keepdims=True), 1.0))


@dataclass(frozen=True, kw_only=True)
class CellValue:
    """A cell that has rows.

    `seen` is the mean of its own rows, corrected for answers that are still to come; `value` is the posterior mean
    given all cells, where a thin one borrows from those of its arm and of its context. None where nothing is known.
    """

    context: str
    arm: str
    rows: int
    settled: int  # of which it is known what they brought by the deadline
    seen: float | None
    value: float | None
    low: float | None  # 95% interval
    high: float | None


def cell_values(log: Log, truths: Truths) -> tuple[CellValue, ...]:
    """Return the values of all cells that have rows, contexts and arms in the order of the log.

    They are those of the draws from which arms and budgets are valued.
    """
    cells = truths.cells
    drawn = truths.worths.worth.reshape(truths.n, -1)
    worth = [drawn.mean(axis=0), *limits_of_draws(drawn)]
    names = log.arm_names()
    settled = cells.sums((cells.known == 1.0).astype(np.float64))
    made = []
    for cell in np.flatnonzero(np.diff(cells.starts)):
        context, arm = np.unravel_index(cell, (cells.n_contexts, cells.n_arms))
        is_known = settled[cell] > 0.0
        value, low, high = (float(one[cell]) if is_known else None for one in worth)
        made.append(
            CellValue(
                context=log.contexts[int(context)],
                arm=names[int(arm)],
                rows=int(cells.starts[cell + 1] - cells.starts[cell]),
                settled=int(settled[cell]),
                seen=float(cells.mean[cell]) if is_known else None,
                value=value,
                low=low,
                high=high,
            )
        )
    return tuple(made)


_CREDIBLE = 0.975


@dataclass(frozen=True, kw_only=True)
class ArmValue(Fact):
    """What one use of an arm brings by the deadline, over all who arrive, beyond doing nothing where that is known."""

    arm: str
    value: float
    low: float  # 95%
    high: float
    cost: float
    per_cost: float | None  # None where it is free
    best_probability: float  # that it is the best, per unit of cost, or by itself where some are free
    may_be_best: bool  # it is among the arms of which one is the best with 97.5%


def arm_values(arms: tuple[str, ...], draws: Draws) -> tuple[ArmValue, ...]:
    """The best first: by what a unit of cost brings, or by what a use brings where an arm is free.

    Which arms may be the best is one statement on all of them: the smallest set that holds the best one in 97.5% of the
    draws, so that of two equal arms one is called the best in 5% of logs.
    """
    values = np.einsum("bja,bj->ba", draws.values, draws.shares)
    costs = np.einsum("bja,bj->ba", draws.costs, draws.shares)
    is_by_cost = bool((costs.mean(axis=0) > 0.0).all())
    rated = values / np.maximum(costs, 1e-12) if is_by_cost else values
    n_arms = rated.shape[1]
    # Ties count in equal parts: arms that bring the same in every draw are equally likely to be the best.
    is_best = rated >= rated.max(axis=1, keepdims=True)
    chance = (is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0)
    by_chance = np.argsort(-chance, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(chance[by_chance])[:-1]])
    may_be_best = np.zeros(n_arms, dtype=bool)
    may_be_best[by_chance[before < _CREDIBLE]] = True
    order = np.argsort(-rated.mean(axis=0), kind="stable").tolist()
    return tuple(
        _value(arms[arm], values[:, arm], costs[:, arm], float(chance[arm]), bool(may_be_best[arm])) for arm in order
    )


def _value(arm: str, values: Floats, costs: Floats, chance: float, may_be_best: bool) -> ArmValue:
    worth = of_draws(values)
    cost = float(costs.mean())
    return ArmValue(
        arm=arm,
        value=worth.value,
        low=worth.low,
        high=worth.high,
        cost=cost,
        per_cost=worth.value / cost if cost > 0.0 else None,
        best_probability=chance,
        may_be_best=may_be_best,
        sentence=f"{arm} brings {number(worth.value)} {between(worth)} a use, at {number(cost)}.",
    )


def apart(found: tuple[ArmValue, ...]) -> str:
    """Which arm is best, or which cannot be told apart."""
    alike = tuple(one.arm for one in found if one.may_be_best)
    if len(found) == 1:
        return f"There is one arm, {found[0].arm}."
    most = "brings most for its cost" if all(one.per_cost is not None for one in found) else "brings most a use"
    if len(alike) == 1:
        chance = max(one.best_probability for one in found)
        certain = "nearly 100%" if chance > 0.995 else f"{100.0 * chance:.0f}%"
        by_use = max(found, key=lambda one: one.value)
        other = "" if by_use.arm == alike[0] else f"; a use of {by_use.arm} has the largest mean"
        return f"Over all who arrive, {alike[0]} {most} with a probability of {certain}{other}."
    return f"Over all who arrive, the log cannot tell which of {named(alike)} {most}."


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
