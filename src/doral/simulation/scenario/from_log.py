"""Scenarios from a log: its arrivals, and draws from its observed outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue
from doral.inference.intervals import DRAWS
from doral.inference.log_problem import Asked, asked_of
from doral.inference.survival import settled_age
from doral.inference.truths import Truths, truths_of
from doral.logs.log import Log
from doral.logs.read import as_log
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.scenario import Scenario

_DAY_S = 86_400.0
_LEAST = 1e-15  # of weights: a row may be as good as impossible, but its cell has it


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedWorld:
    """All scenarios that a log leaves possible: they share rows and arrivals, and differ in how likely the rows are."""

    asked: Asked
    truths: Truths
    rows: Rows
    calendar: Calendar | None  # where the problem ends with a date
    name: str

    def scenario(self, weights: Floats, *, name: str | None = None) -> Scenario:
        """The one in which the rows have these weights."""
        return Scenario(
            name=name or self.name,
            problem=self.asked.problem,
            rows=self.rows.weighted(np.maximum(weights, _LEAST)),
            arrivals=self.calendar,
        )

    def usual(self) -> Scenario:
        """The one in the middle."""
        return self.scenario(self.truths.usual())

    def possible(self, number: int) -> Scenario:
        """One of those that are possible."""
        return self.scenario(self.truths.weights(number), name=f"{self.name}/{number}")


def world_of(log: Log, asked: Asked, truths: Truths) -> LoggedWorld:
    """`truths` were drawn for the same deadline."""
    ticks, problem = asked.ticks, asked.problem
    shape = (problem.n_contexts, problem.n_arms)
    cost = None
    if problem.paid == "on_answer":
        listed = np.broadcast_to(problem.costs_by_context, shape).ravel()
        cost = np.minimum(truths.paid, np.repeat(listed, np.diff(truths.starts)))
    rows = Rows.from_arrays(
        reward=truths.reward,
        delay=truths.delay * ticks,
        cost=cost,
        starts=truths.starts[:-1].reshape(shape),
    )
    calendar = None
    if problem.until is not None:
        day = _DAY_S * ticks if log.clock.unit == "seconds" else None
        calendar = Calendar((log.time - log.time[0]) * ticks, contexts=log.context, day=day)
    return LoggedWorld(asked=asked, truths=truths, rows=rows, calendar=calendar, name=log.name)


def scenario_from_log(
    log: Any,
    *,
    budget: float | None,
    horizon: float | None,
    deadline: object,
    name: str | None,
    seed: int,
    columns: dict[str, Any],
) -> Scenario:
    """`Scenario.from_log`: the one in the middle of all that the log leaves possible."""
    read = as_log(log, columns)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    limit = deadline_on_clock(read, deadline)
    asked = asked_of(read, deadline=limit, budget=budget, horizon=horizon)
    if not read.is_answered.any():
        raise InvalidValue("log", read.name, "has no answers: nothing is known of rewards")
    world = world_of(read, asked, truths_of(read, deadline=limit, n=DRAWS, seed=seed))
    return world.scenario(world.truths.usual(), name=name)


def deadline_on_clock(log: Log, given: object) -> float:
    """Return the given deadline, or as long as answers take; where that is not known, the span of the log."""
    if given is not None:
        return log.clock.duration("deadline", given)
    settled = settled_age(log)
    return log.span if settled is None else settled.age
