"""Draws of what cells are worth and cost, and of who comes: what a budget buys is worked out in each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.log.log import Log
from doral.log.truths import Truths
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
