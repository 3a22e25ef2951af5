"""What arms bring and cost: posterior draws, by cell, and over all who arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.inference.intervals import limits_of_draws, of_draws
from doral.inference.truths import Truths
from doral.logs.log import Log
from doral.planning.facts import Fact, between, named, number
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
