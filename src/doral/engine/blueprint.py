"""What a policy's first state is made from: its options, the problem, and what follows from both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats
from doral._cached import cached_property
from doral.engine.options import PolicyOptions
from doral.engine.pieces.learn import word as learner_of
from doral.engine.pieces.people import n_columns
from doral.engine.state import longest
from doral.errors import InvalidValue
from doral.estimators.survival import age_grid
from doral.problem import Problem

_WAIT_FOR_SILENCE = ("scaled", "early")  # learners that a decision teaches when it settles
MAX_SEED = 2**53  # what a float holds exactly: seeds travel through JSON


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """A policy for a problem."""

    options: PolicyOptions
    problem: Problem
    seed: int
    run: int = 0
    given_features: Floats | None = None
    """Those of the problem, unless a simulation draws them."""
    oracle: Floats | None = None
    """(1 or J, A, ages) the return probability, where it is given."""
    true_values: Floats | None = None
    """(phases, J, A) the expected worth of what returns within the deadline, where it is given."""

    day: float | None = None
    """How long a day is on the clock, where arrivals may follow the hour and the weekday."""
    time_of_week: float = 0.0
    """How long ago the week began (on a Monday at midnight) when the clock showed 0."""

    @cached_property
    def features(self) -> Floats:
        """(A, k) of the arms."""
        if self.options.features == "none":
            return np.zeros((self.problem.n_arms, 0))
        features = self.problem.features if self.given_features is None else self.given_features
        if self.options.prior == "cells":
            return _with_level(features)
        return features if features.shape[1] > 0 else np.eye(self.problem.n_arms)  # one for each arm

    @property
    def n_rows(self) -> int:
        """How many rows of values there are: one for each context, and one for each of those who came lately."""
        return self.problem.n_contexts + (self.options.reservoir if self.problem.person else 0)

    @cached_property
    def context_of_row(self) -> NDArray[np.int64]:
        """Rows of contexts come first; those of people, of whom nobody came yet, begin like the first of them."""
        return np.concatenate([np.arange(self.problem.n_contexts), np.zeros(self.n_rows, dtype=np.int64)])[
            : self.n_rows
        ]

    @cached_property
    def costs_by_row(self) -> Floats:
        """(rows, A), or (1, A) where no cost differs by context."""
        costs = self.problem.costs_by_context
        return costs if len(costs) == 1 else costs[self.context_of_row]

    @cached_property
    def n_columns(self) -> int:
        """Of the line by which people are valued: a constant, and what `people` makes of their numbers; 0: classes."""
        return n_columns(self.options, self.problem) if self.problem.person else 0

    @cached_property
    def longest_deadline(self) -> float:
        return longest(self.problem.deadlines)

    @cached_property
    def ages(self) -> Floats:
        """The grid of the return curves: it holds every deadline, so that tau is read where it is known exactly."""
        problem, cutoff = self.problem, self.options.cutoff
        deadlines = problem.deadlines[np.isfinite(problem.deadlines)]
        length = problem.horizon if problem.until is None else problem.until
        last = float(deadlines.max()) if deadlines.size == problem.n_contexts else max(4.0, length / 4)
        if deadlines.size < problem.n_contexts and isinstance(cutoff, float):
            last = cutoff
        return np.unique(np.concatenate([age_grid(last, self.options.curve_points), deadlines]))

    @cached_property
    def cutoff(self) -> float:
        """m to start with; NaN: the race finds it."""
        options = self.options
        if options.cutoff == "none":
            return math.inf
        if options.cutoff == "adaptive":
            silent = self.problem.feedback == "silent"  # nothing tells how much is still to come: wait for the deadline
            return self.longest_deadline if silent else float(self.ages[-1])
        if isinstance(options.cutoff, float):
            return options.cutoff
        if options.screening == "race":
            return math.nan
        # Where no deadline says how long to wait, every answer counts, whenever it comes.
        if math.isinf(self.longest_deadline) and learner_of(options, self.problem) in _WAIT_FOR_SILENCE:
            remedy = (
                f"policy {options.name!r} takes silence for a no, and without a deadline nothing says after how long; "
                "give the problem a deadline or the policy a cutoff, or take doral-otf, which finds one itself"
            )
            raise InvalidValue("cutoff", None, remedy)
        return self.longest_deadline


def _with_level(features: Floats) -> Floats:
    """With one that is the same for all arms, unless there is such a one: what is not known of an arm is then thought
    to be as elsewhere, and not nothing. It is as large as all others together, so that it is learned as easily.
    """
    size = math.sqrt(float((features**2).sum(axis=1).mean())) if features.shape[1] > 0 else 1.0
    if size == 0.0 or (features.shape[1] > 0 and ((features == features[0]).all(axis=0) & (features[0] != 0.0)).any()):
        return features
    return np.column_stack([np.full(len(features), size), features])
