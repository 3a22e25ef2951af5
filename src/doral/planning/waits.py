"""What it means to wait so long for an answer and no longer, for one wait after another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.log.answers import weigh_answers
from doral.log.log import Log
from doral.planning.fact import Fact, percent

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
