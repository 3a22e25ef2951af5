"""The problem that a log is about: its arms and what they cost, who comes, and for how long."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.inference.survival import weigh_answers
from doral.logs.log import SKIPPED, Log
from doral.problem import MAX_AMOUNT, MAX_HORIZON, MIN_AMOUNT, NOTHING, OBSERVED, Arm, Problem

_FINE = 1_000.0  # ticks in a typical delay, where times are numbers in some unit: simulated answers take whole ticks
_MOST_TICKS = 1e9  # in the whole log: a thousand times as much is as far as clocks go
_RESERVE = 0.999  # of what will be paid of open decisions, where that comes with the answer


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A problem on a clock of `ticks` per unit of the log's clock, and what it has from the log."""

    problem: Problem  # its times are in ticks, and its deadline a whole number of them: answers take whole ticks
    ticks: float
    deadline: float | None  # on the clock of the log
    arrivals: float
    budget_is_given: bool
    horizon_is_given: bool


def ticks_of(log: Log) -> float:
    """How finely the log's times are cut for a simulation: seconds and rounds as they are."""
    if log.clock.unit != "units":
        return 1.0
    some = log.delay[np.isfinite(log.delay) & (log.delay > 0.0)]
    typical = float(np.median(some)) if some.size else log.span / max(len(log), 1)
    if typical <= 0.0:
        return 1.0
    finest = math.floor(math.log10(_MOST_TICKS / log.span))
    return 10.0 ** max(0, min(math.ceil(math.log10(_FINE / typical)), finest))


def list_prices(log: Log) -> Floats:
    """(J, A) by context and arm: what a use costs by the list; where there was none, what it costs elsewhere.

    Where all is paid, the mean of what the log says; where only a part may be paid, the most.
    """
    n_contexts, n_arms = len(log.contexts), len(log.arms)
    is_served = log.arm != SKIPPED
    cell = log.context[is_served] * n_arms + log.arm[is_served]
    cost = log.cost[is_served]
    uses = np.bincount(cell, minlength=n_contexts * n_arms)
    if log.paid_when == "always":
        sums = np.bincount(cell, weights=cost, minlength=uses.size)
        prices = np.divide(sums, uses, out=np.full(uses.size, np.nan), where=uses > 0)
        flat = np.bincount(log.arm[is_served], weights=cost, minlength=n_arms) / np.maximum(
            np.bincount(log.arm[is_served], minlength=n_arms), 1
        )
    else:
        prices = np.full(uses.size, -np.inf)
        np.maximum.at(prices, cell, cost)
        prices = np.where(uses > 0, prices, np.nan)
        flat = np.zeros(n_arms)
        np.maximum.at(flat, log.arm[is_served], cost)
    table = prices.reshape(n_contexts, n_arms)
    return np.where(np.isnan(table), flat[None, :], table)


def spent(log: Log) -> float:
    """What is paid in the end for all that was done: of what is open, as much as of others that waited as long."""
    if log.paid_when == "always":
        return float(np.where(np.isnan(log.paid), log.cost, log.paid).sum())
    total = 0.0
    for arm in range(len(log.arms)):
        here = log.arm == arm
        paid = np.where(np.isnan(log.paid[here]), log.cost[here], log.paid[here])
        total += paid.size * float((weigh_answers(log.delay[here], log.watched[here]).weight * paid).sum())
    return total


def asked_of(log: Log, *, deadline: float | None, budget: float | None = None, horizon: float | None = None) -> Asked:
    """The problem of doing it again: with the same budget per arrival and as many arrivals, unless others are given.

    `deadline` is on the clock of the log; None: every answer counts.
    """
    arrivals = float(len(log))
    if horizon is not None:
        arrivals = float(_check.whole_number("horizon", horizon, at_least=1, at_most=MAX_HORIZON))
    if budget is None:
        amount = spent(log) * arrivals / len(log)
        budget = min(max(amount, MIN_AMOUNT), MAX_AMOUNT) if amount > 0.0 else 1.0
        is_given = False
    else:
        budget, is_given = _check.finite_number("budget", budget, at_least=MIN_AMOUNT, at_most=MAX_AMOUNT), True
    if not log.arms:
        raise InvalidValue("arms", log.arms, "nothing was ever done in this log: there is nothing to plan with")
    if NOTHING in log.arms and log.skips_are_answered:
        remedy = "is what we call doing nothing: read the log with nothing='nothing', or rename the arm"
        raise InvalidValue("arm", NOTHING, remedy)
    ticks = ticks_of(log)
    prices = list_prices(log)
    by_arm = zip(log.arms, prices.T, strict=True)
    shares = log.shares / log.shares.sum()
    limit = None if deadline is None or math.isinf(deadline) else deadline
    until = _until(log, arrivals, ticks)
    problem = Problem(
        arms=[Arm(name, cost=_cost(row, log.contexts)) for name, row in by_arm],
        contexts=dict(zip(log.contexts, shares.tolist(), strict=True)),
        budget=budget,
        deadline=None if limit is None else float(math.ceil(limit * ticks)),
        feedback=log.feedback,
        baseline=OBSERVED if log.skips_are_answered else None,
        paid=log.paid_when,
        reserve=_RESERVE if log.paid_when == "on_answer" else 1.0,
        horizon=arrivals if until is None else None,
        until=until,
        expected_arrivals=None if until is None else arrivals,
    )
    return Asked(
        problem=problem,
        ticks=ticks,
        deadline=limit,
        arrivals=arrivals,
        budget_is_given=is_given,
        horizon_is_given=horizon is not None,
    )


def _until(log: Log, arrivals: float, ticks: float) -> float | None:
    """When so many are expected to have come, where the log has times; otherwise the horizon counts them."""
    if log.clock.unit == "rounds" or len(log) < 2 or float(log.time[-1]) <= float(log.time[0]):
        return None
    return log.span * ticks * arrivals / len(log)


def _cost(by_context: Floats, contexts: tuple[str, ...]) -> float | dict[str, float]:
    # Sums of prices leave the last digits to rounding: a price is told with ten.
    told = [float(f"{one:.10g}") for one in by_context.tolist()]
    return told[0] if len(set(told)) == 1 else dict(zip(contexts, told, strict=True))


def by_arrivals(asked: Asked) -> Problem:
    """The same problem on the clock of the log, with an end that is a number of arrivals, not a date."""
    horizon = round(asked.arrivals)
    return dataclasses.replace(
        asked.problem, deadline=asked.deadline, horizon=horizon, until=None, expected_arrivals=None
    )
