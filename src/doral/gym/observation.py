"""What an agent observes: what has come of earlier decisions, who is here, and what is left, between -1 and 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats
from doral.problem import Problem

FEW_PLAYS = 10.0  # plays n are shown as n / (n + FEW_PLAYS)


@dataclass(frozen=True)
class Layout:
    """The parts of an observation by name, in their order: `observation[layout["worth"]]` are the worths of the arms.

    Everything is between -1 and 1. What has no bounds is shown as x / (1 + |x|), numbers of plays as n / (n + 10).
    """

    sizes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return sum(size for _, size in self.sizes)

    def __getitem__(self, part: str) -> slice:
        """Where a part lies."""
        start = 0
        for name, size in self.sizes:
            if name == part:
                return slice(start, start + size)
            start += size
        raise KeyError(part)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.sizes)


def layout_of(problem: Problem) -> Layout:
    """Return the layout of the observations of a problem."""
    n_contexts, n_arms = problem.n_contexts, problem.n_arms
    here = ("can", "cost", "plays", "heard", "mean", "worth")
    in_all = ("arm_plays", "arm_heard", "arm_mean", "arm_worth", "arm_delay")
    return Layout(
        (
            ("context", n_contexts),
            ("person", 2 * len(problem.person)),
            ("left", 3),
            ("rank", 2),
            *((name, n_arms) for name in (*here, *in_all)),
            ("context_share", n_contexts),
            ("context_best", n_contexts),
        )
    )


class Statistics:
    """Sums over decisions by context and arm; the last row is over all contexts."""

    def __init__(self, n_contexts: int, n_arms: int) -> None:
        shape = (n_contexts + 1, n_arms)
        self.plays = np.zeros(shape)
        self.heard = np.zeros(shape)  # answers
        self.reward = np.zeros(shape)  # of answers
        self.delay = np.zeros(shape)  # of answers
        self.settled = np.zeros(shape)  # plays older than the longest deadline
        self.worth = np.zeros(shape)  # of settled plays, by their deadline
        self.arrived = np.zeros(n_contexts)
        self.best = np.full(n_contexts, -math.inf)  # highest mean worth among the arms of a context

    def play(self, context: int, arm: int) -> None:
        """Count a decision."""
        for row in (context, -1):
            self.plays[row, arm] += 1.0

    def hear(self, context: int, arm: int, reward: float, delay: float) -> None:
        """Count an answer."""
        for row in (context, -1):
            self.heard[row, arm] += 1.0
            self.reward[row, arm] += reward
            self.delay[row, arm] += delay

    def settle(self, context: int, arm: int, worth: float) -> None:
        """Count the final worth of a decision."""
        for row in (context, -1):
            self.settled[row, arm] += 1.0
            self.worth[row, arm] += worth
        settled = self.settled[context]
        self.best[context] = (self.worth[context][settled > 0.0] / settled[settled > 0.0]).max()


class Observer:
    """Writes observations of one run."""

    def __init__(self, problem: Problem, layout: Layout) -> None:
        self._problem, self._layout = problem, layout
        self._at = {name: layout[name] for name in layout}
        costs = problem.costs_by_context
        self._costs = np.broadcast_to(costs, (problem.n_contexts, problem.n_arms))
        self._dearest, paid = float(costs.max()), costs[costs > 0.0]
        self._usual = float(paid.mean()) if paid.size else 0.0
        longest = float(problem.deadlines.max())
        self._longest = longest if longest < math.inf else float(problem.expected_rounds)

    def observe(
        self, known: Statistics, *, context: int, traits: Floats, mask: NDArray[np.uint8], left: tuple[float, ...]
    ) -> NDArray[np.float32]:
        """Return the observation of an arrival.

        Args:
            known: What has come of earlier decisions.
            context: Its number.
            traits: Features of the person, NaN where missing; empty where people have none.
            mask: (arms + 1,) what can be had.
            left: What `left_of` returned.
        """
        at, n_contexts = self._at, self._problem.n_contexts
        seen = np.zeros(self._layout.size)
        seen[at["context"].start + context] = 1.0
        is_known = ~np.isnan(traits)
        seen[at["person"]] = np.concatenate([np.where(is_known, _squashed(np.nan_to_num(traits)), 0.0), is_known])
        seen[at["left"]] = left
        total = known.arrived.sum()
        above = known.arrived[known.best > known.best[context]].sum()
        level = known.arrived[known.best >= known.best[context]].sum()
        seen[at["rank"]] = (above / total, level / total) if total > 0.0 else (0.0, 0.0)
        seen[at["can"]] = mask[:-1]
        seen[at["cost"]] = self._costs[context] / self._dearest if self._dearest > 0.0 else 0.0
        for prefix, row, few in (("", context, FEW_PLAYS), ("arm_", -1, FEW_PLAYS * n_contexts)):
            plays, heard = known.plays[row], known.heard[row]
            seen[at[f"{prefix}plays"]] = plays / (plays + few)
            seen[at[f"{prefix}heard"]] = _ratio(heard, plays)
            seen[at[f"{prefix}mean"]] = _squashed(_ratio(known.reward[row], heard))
            seen[at[f"{prefix}worth"]] = _squashed(_ratio(known.worth[row], known.settled[row]))
        seen[at["arm_delay"]] = _squashed(_ratio(known.delay[-1], known.heard[-1]) / self._longest)
        seen[at["context_share"]] = known.arrived / total if total > 0.0 else 0.0
        seen[at["context_best"]] = _squashed(np.where(known.best > -math.inf, known.best, 0.0))
        return seen.astype(np.float32)

    def observe_end(self, last: NDArray[np.float32], left: tuple[float, ...]) -> NDArray[np.float32]:
        """Return the observation after the last arrival: who is here and what can be had is blank."""
        seen, at = last.copy(), self._at
        seen[: at["left"].start] = 0.0
        seen[at["can"]] = 0.0
        seen[at["left"]] = left
        return seen

    def left_of(self, budget_left: float, *, round_: int, rounds: int, clock: float) -> tuple[float, float, float]:
        """Return the shares of budget and time that are left, and of the arrivals to come that the budget can serve."""
        problem = self._problem
        expected = float(problem.expected_rounds)
        if problem.until is None:
            time_left, pace = 1.0 - (round_ - 1.0) / rounds, expected
        else:  # arrivals until the end at the pace so far
            time_left = max(0.0, 1.0 - clock / problem.until)
            pace = round_ / max(clock, problem.until / expected) * problem.until
        needed = self._usual * max(1.0, pace * time_left)
        enough = max(0.0, budget_left) / needed if needed > 0.0 else math.inf
        share = 1.0 if enough == math.inf else enough / (1.0 + enough)
        return min(1.0, max(0.0, budget_left / problem.budget)), time_left, share


def _squashed(x: Floats) -> Floats:
    """Map numbers to between -1 and 1, in their order."""
    squashed: Floats = x / (1.0 + np.abs(x))
    return squashed


def _ratio(total: Floats, n: Floats) -> Floats:
    return np.divide(total, n, out=np.zeros_like(total), where=n > 0.0)
