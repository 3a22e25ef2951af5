"""Shared parts of rivals: settings, uniform exploration, LP_m with the remaining budget, sums of answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats, Ints
from doral.numerics.elementary import geometric_steps
from doral.pacing import Pacer
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Problem, reserve_depths
from doral.simulation.world.oracle import reserve_caps


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What can be set about a rival; each has its own. `explore`, where it has one, is a share."""

    def __post_init__(self) -> None:
        if hasattr(self, "explore"):
            _check.finite_number("explore", self.explore, at_least=0, at_most=1)


_MOST_ROUNDS = 50  # between two plans
_STEPS_TO_THE_END = 20
_TIE = 1e-9


class Plan:
    """Who is served with what, until the next plan."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._bought = [arm for arm in range(problem.n_arms) if arm != problem.control]
        self._costs: list[list[float]] = []
        self._depths = reserve_depths(problem)
        self._arrived = np.ones(problem.n_contexts)
        self._price = 0.0
        self._values: list[list[float]] = []
        self._until: list[list[float]] = []  # by context: cumulative chances of the arms
        self._next = 1

    def is_due(self, arrival: Arrival) -> bool:
        """Whether values are asked for: when 2% more rounds have passed, at most 50, and more often at the end."""
        if self._problem.shares is None:
            self._arrived[arrival.context] += 1.0
        return arrival.round >= self._next

    def make(self, values: Floats, costs: Floats, arrival: Arrival) -> None:
        """A new plan, from the worth (J, A) of a decision and from what it is thought to cost."""
        values = values - nothing_of(self._problem, values)
        rate = arrival.budget_left / arrival.rounds_left
        shares = self._problem.shares if self._problem.shares is not None else self._arrived / self._arrived.sum()
        bought, floor = costs[:, self._bought], self._problem.return_at_least
        caps = reserve_caps(self._problem, bought, shares, self._depths, rate)
        pacer = Pacer(costs=bought, shares=shares, rate=rate, caps=caps, depths=self._depths, floor=floor)
        solved = pacer.solve(np.ascontiguousarray(values[:, self._bought]))
        self._price = max(solved.price, floor)
        self._values, self._costs = values.tolist(), costs.tolist()
        self._until = np.cumsum(solved.play, axis=1).tolist()
        self._next = arrival.round + max(
            1, min(_MOST_ROUNDS, arrival.round // 50, arrival.rounds_left // _STEPS_TO_THE_END)
        )

    def choose(self, arrival: Arrival, coin: float) -> int | None:
        """Return the planned arm for an arrival; where arms are missing, the best of the others at its price."""
        chances = self._until[arrival.context]
        if len(arrival.available) == len(self._bought):
            return next((self._bought[i] for i, chance in enumerate(chances) if coin < chance), None)
        if not arrival.available:
            return None
        values = self._values[arrival.context]
        costs = self._costs[arrival.context]
        gains = {arm: values[arm] - self._price * costs[arm] for arm in arrival.available}
        best = max(gains, key=lambda arm: gains[arm])
        slack = _TIE * abs(values[best])
        if values[best] <= 0.0 or gains[best] < -slack or (gains[best] <= slack and coin >= chances[-1]):
            return None
        return best


def nothing_of(problem: Problem, values: Floats) -> Floats:
    """(J, 1) what skipping is worth: known, or what the control arm is thought to bring."""
    if problem.control is not None:
        return values[:, [problem.control]]
    known = 0.0 if problem.baseline is None else np.array(problem.baseline)
    return np.asarray(problem.weights * known)[:, None]


def spread_evenly(arrival: Arrival, cost: float) -> float:
    """The chance with which a decision of this cost can be made in every round until the end."""
    return min(1.0, arrival.budget_left / (arrival.rounds_left * cost)) if cost > 0.0 else 1.0


def list_costs(problem: Problem) -> list[list[float]]:
    """By context and arm."""
    costs: list[list[float]] = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms)).tolist()
    return costs


class Uniform:
    """Draws an arm; plays it by a coin that spreads the budget over the rounds that are left."""

    def __init__(self, problem: Problem, draws: np.random.Generator) -> None:
        self._costs = list_costs(problem)
        self._draws = draws

    def choose(self, arrival: Arrival, share: float = 1.0) -> int | None:
        """An arm, with `share` of the chance that the budget allows."""
        arms = arrival.available
        if not arms:
            return None
        mean_cost = sum(self._costs[arrival.context][arm] for arm in arms) / len(arms)
        coin = self._draws.random()
        chance = share * spread_evenly(arrival, mean_cost)
        return arms[int(len(arms) * coin / chance)] if coin < chance else None


_POINTS = 48  # ages on each of the two grids, the even and the geometric one
_MORE = 1.02  # the curve is read again when 2% more has come
_POOLED = 10.0  # answers for which the curve of all arms stands in that of each


class ReturnCurve:
    """The share of the answers that come within the deadline which have come by an age, by arm.

    A young decision can only have had a quick answer. So of the answers with delay u or less, to decisions of age u or
    more, the share with a delay of u tells how much F(u) exceeds F(u-); multiplied from the deadline backwards
    (Lagakos, Barraj and De Gruttola 1988) they give F(age) / F(deadline).
    """

    def __init__(self, *, deadlines: Floats, n_arms: int) -> None:
        limit = float(deadlines.max())
        even = np.linspace(0.0, limit, _POINTS)
        geometric = geometric_steps(1.0, max(limit, 1.0), _POINTS)
        self._ages = np.unique(np.floor(np.concatenate([[0.0], even, geometric, deadlines])))
        self._at_deadline: Ints = np.searchsorted(self._ages, deadlines, side="right") - 1  # (J,) indices into ages
        self._arms: list[int] = []
        self._decided: list[float] = []
        self._delays: list[float] = []
        self._read_at = 0  # number of answers
        self._come = np.ones((n_arms, self._ages.size))

    def enter(self, arm: int, decided: float, delay: float) -> None:
        """An answer has come."""
        self._arms.append(arm)
        self._decided.append(decided)
        self._delays.append(delay)

    def shares(self, now: float, contexts: Ints, arms: Ints, ages: Floats) -> Floats:
        """One per decision: how much of what will come in time has come by its age."""
        if len(self._arms) > _MORE * self._read_at:
            self._read(now)
        end = self._at_deadline[contexts]
        place = np.minimum(np.searchsorted(self._ages, ages, side="right") - 1, end)
        whole = self._come[arms, end]
        share: Floats = np.divide(self._come[arms, place], whole, out=np.ones(arms.size), where=whole > 0.0)
        return share

    def _read(self, now: float) -> None:
        n_arms, n_ages = self._come.shape
        self._read_at = len(self._arms)
        arms, delays = np.array(self._arms), np.array(self._delays)
        first = np.searchsorted(self._ages, delays)  # the age by which it had come
        last = np.searchsorted(self._ages, now - np.array(self._decided), side="right") - 1  # the age reached by now
        seen = first <= last
        arms, first, last = arms[seen], first[seen], last[seen]
        came = np.bincount(arms * n_ages + first, minlength=n_arms * n_ages).reshape(n_arms, n_ages).astype(np.float64)
        left = np.bincount(arms * n_ages + last, minlength=n_arms * n_ages).reshape(n_arms, n_ages)
        at_risk = np.cumsum(came, axis=1) - np.cumsum(left, axis=1) + left
        pooled = came.sum(axis=0) / (at_risk.sum(axis=0) + 1.0)
        hazard = (came + _POOLED * pooled) / (at_risk + _POOLED)
        self._come[:, -1] = 1.0
        self._come[:, :-1] = np.cumprod(1.0 - hazard[:, :0:-1], axis=1)[:, ::-1]


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
