"""A scenario from a log: who comes and when, and what becomes of what is done, as far as the log tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral.log.asked import Asked
from doral.log.log import Log
from doral.log.truths import Truths
from doral.simulation.calendar import Calendar
from doral.simulation.rows import Rows
from doral.simulation.scenario import Scenario

_DAY_S = 86_400.0
_LEAST = 1e-15  # of weights: a row may be as good as impossible, but its cell has it


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedWorld:
    """All scenarios that a log leaves possible: they share rows and arrivals, and differ in how likely the rows are."""

    asked: Asked
    truths: Truths
    rows: Rows
    calendar: Calendar | None
    name: str

    def scenario(self, weights: Floats, *, name: str | None = None) -> Scenario:
        """The one in which the rows have these weights."""
        problem = self.asked.problem
        return Scenario(
            name=name or self.name,
            problem=problem,
            rows=self.rows.weighted(np.maximum(weights, _LEAST)),
            arrivals=self.calendar if problem.until is not None else None,
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
