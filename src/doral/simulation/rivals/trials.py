"""What has come back so far, by context and arm; an open decision is a fraction of a trial."""

from __future__ import annotations

import numpy as np

from doral._arrays import Floats, Ints
from doral.problem import Problem
from doral.simulation.rivals.return_curve import ReturnCurve
from doral.simulation.world.python_policy import Answer

_FIRST_ROOM = 1_024
_BELIEF = 10.0  # decisions for which what is known of an arm stands in each of its contexts, and of all in each arm


class Trials:
    """Sums by (context, arm), kept as answers come, and the ages of the decisions that are still young.

    Only what came within the deadline of its context is entered. With silent feedback that is positives alone.
    """

    def __init__(self, problem: Problem) -> None:
        shape = (problem.n_contexts, problem.n_arms)
        self.answers = np.zeros(shape)
        self.rewards = np.zeros(shape)
        self.squares = np.zeros(shape)
        self._paid = np.zeros(shape)
        self._list_costs: Floats = np.broadcast_to(problem.costs_by_context, shape)
        self._is_paid_on_answer = problem.paid == "on_answer"
        self._control = problem.control
        self.lowest, self.highest = 0.0, 0.0  # reward seen, and 0
        self._deadlines: list[float] = np.minimum(problem.deadlines, problem.until or problem.horizon).tolist()
        self._curve = ReturnCurve(deadlines=np.array(self._deadlines), n_arms=problem.n_arms)
        self._n_arms = problem.n_arms
        self._limit = max(self._deadlines)
        self._old = np.zeros(problem.n_contexts * problem.n_arms)  # decisions that no answer can count for any more
        self._times = np.zeros(_FIRST_ROOM)
        self._cells = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self._first = self._next = 0  # the young ones are first..next

    def decide(self, time: float, context: int, arm: int | None) -> None:
        """A decision has been made; where there is a control arm, who is skipped gets that."""
        arm = self._control if arm is None else arm
        if arm is None:
            return
        if self._next == self._times.size:
            self._make_room()
        self._times[self._next] = time
        self._cells[self._next] = context * self._n_arms + arm
        self._next += 1

    def _make_room(self) -> None:
        """The old ones go; what is left takes at most half of the room."""
        young = slice(self._first, self._next)
        kept = self._next - self._first
        room = max(_FIRST_ROOM, 2 * kept)
        for name in ("_times", "_cells"):
            fresh = np.zeros(room, dtype=getattr(self, name).dtype)
            fresh[:kept] = getattr(self, name)[young]
            setattr(self, name, fresh)
        self._first, self._next = 0, kept

    def observe(self, answer: Answer) -> None:
        """An answer has come."""
        context, arm, reward = answer.context, answer.arm, answer.reward
        if answer.delay > self._deadlines[context]:
            return
        self.answers[context, arm] += 1.0
        self.rewards[context, arm] += reward
        self.squares[context, arm] += reward * reward
        self._paid[context, arm] += answer.paid
        self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
        self._curve.enter(arm, answer.decided if answer.decided_at is None else answer.decided_at, answer.delay)

    def exposure(self, now: float) -> Floats:
        """(J, A) decisions, each by the share of the answers to its like that have come by its age."""
        times, stop = self._times, self._next
        grown_old = self._first + int(np.searchsorted(times[self._first : stop], now - self._limit, side="right"))
        if grown_old > self._first:
            self._old += np.bincount(self._cells[self._first : grown_old], minlength=self._old.size)
            self._first = grown_old
        cells: Ints = self._cells[self._first : stop]
        weights = self._curve.shares(now, cells // self._n_arms, cells % self._n_arms, now - times[self._first : stop])
        exposed: Floats = self._old + np.bincount(cells, weights=weights, minlength=self._old.size)
        # what has been answered has been tried, however young the curve thinks it is
        return np.maximum(exposed.reshape(self.answers.shape), self.answers)

    def costs(self, now: float) -> Floats:
        """(J, A) list prices; where costs are paid on answer, what a decision costs on average as far as is known."""
        listed = self._list_costs
        if not self._is_paid_on_answer:
            return listed
        tried = np.where(listed > 0.0, self.exposure(now), 0.0)  # what is free tells nothing of what is paid
        paid = np.divide(self._paid, listed, out=np.zeros(listed.shape), where=listed > 0.0)
        of_all = (paid.sum() + 1.0) / (tried.sum() + 1.0)
        of_arm = (paid.sum(axis=0) + of_all * _BELIEF) / (tried.sum(axis=0) + _BELIEF)
        expected: Floats = listed * np.minimum(1.0, (paid + of_arm * _BELIEF) / (tried + _BELIEF))
        return expected
