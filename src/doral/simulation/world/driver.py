"""One run in plain Python, arrival by arrival: answers, payments and lapses on the logbook of the compiled loop.

Policies in Python and environments of Gymnasium decide outside of compiled code; both go through here. Money is kept
in decimals: a budget of 0.3 buys three uses of 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from doral._money import exact, minus, plus
from doral.compiled import Block
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import LOGBOOK, NO_DECISION, new_logbook, spent
from doral.simulation.world.tape import Tape
from doral.simulation.world.truth import Truth, make_truth


class HeardAnswer(NamedTuple):
    """An answer that arrived in a round."""

    decided: int  # round of the decision
    person: int  # number of the person; of the context where people have no features
    context: int
    arm: int
    reward: float
    delay: float  # rounds, or units of the clock
    paid: float  # what the decision costs in the end


class Driver:
    """The logbook and the budget of one run."""

    def __init__(self, scenario: Scenario, *, seed: int, run: int, truth: Truth, keep_arrivals: bool = False) -> None:
        problem = scenario.problem
        self.scenario, self.truth, self._seed, self._run = scenario, truth, seed, run
        self.book = new_logbook(scenario, truth.times, truth.classes, keep_arrivals=keep_arrivals)
        self._left = exact(problem.budget)
        rows = [[exact(cost) for cost in row] for row in problem.costs_by_context.tolist()]
        self._costs = rows if len(rows) > 1 else rows * problem.n_contexts
        self._dearest = [max(row) for row in self._costs]
        self._arms = tuple(arm for arm in range(problem.n_arms) if arm != problem.control)
        self._is_paid_later = scenario.paid != "always"
        self._deadlines: list[float] = problem.deadlines.tolist()
        self._classes: list[int] = truth.classes.tolist()
        self._bind()

    def _bind(self) -> None:
        """Take the addresses that compiled code works on."""
        self._block = Block(self.book)
        self._is_due = memoryview(self.book.last_due)  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        """Leave addresses out, and the truth, which follows from the seed and the run."""
        return {name: value for name, value in vars(self).items() if name not in ("_block", "_is_due", "truth")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.truth = make_truth(self.scenario, seed=self._seed, run=self._run)
        self._bind()

    @property
    def budget_left(self) -> float:
        """What is left to be spent, in budget units."""
        return float(self._left)

    @property
    def spend(self) -> float:
        """What is paid for all decisions, in budget units."""
        return spent(self.book, self.scenario, self.budget_left)

    def context_of(self, person: int) -> int:
        """Return the context of an arrival."""
        return self._classes[person] if self._classes else person

    def clock(self, round_: int) -> float:
        """Return what the clock shows in a round: its number where arrivals have no times."""
        times = self.truth.times
        return float(times[round_ - 1]) if times.size else float(round_)

    def hear(self, round_: int, cutoff: float) -> Iterator[HeardAnswer]:
        """Count the answers due in this round, settle what they cost, and yield those that are heard."""
        if not self._is_due[round_]:  # in most rounds; a call into compiled code takes longer than this
            return
        decision = LOGBOOK["first_due"](self._block, round_)
        while decision != NO_DECISION:
            LOGBOOK["count"](self._block, round_, decision, cutoff)
            reward, delay, decided, person, arm, _ = self.book.entries[decision].item()
            context = self.context_of(person)
            if reward != 0.0 or not self.truth.world.silent:  # where feedback is silent, a zero is not heard
                paid = self._settle(decision, context, arm, is_in_time=delay <= self._deadlines[context])
                yield HeardAnswer(decided, person, context, arm, reward, delay, paid)
            decision = LOGBOOK["next_due"](self._block, round_, decision)

    def _settle(self, decision: int, context: int, arm: int, *, is_in_time: bool) -> float:
        """Refund what an answered decision does not cost, unless it has lapsed; return what it costs."""
        cost = self._costs[context][arm]
        if not self._is_paid_later:
            return float(cost)
        paid = float(cost) * float(self.book.bills.share[decision])
        if is_in_time:
            self._left = plus(self._left, minus(cost, exact(paid)))
        return paid

    def lapse(self, round_: int) -> None:
        """Refund the decisions that were not answered by their deadline."""
        if not self._is_paid_later:
            return
        decision = LOGBOOK["first_lapsed"](self._block, round_)
        while decision != NO_DECISION:
            _, _, _, person, arm, _ = self.book.entries[decision].item()
            self._left = plus(self._left, self._costs[self.context_of(person)][arm])
            decision = LOGBOOK["next_lapsed"](self._block, round_, decision)

    def available(self, tape: Tape, index: int, context: int) -> tuple[int, ...]:
        """Return the arms that can be had in this round of the tape and that the budget can pay."""
        if tape.available.shape[1] == 0 and self._dearest[context] <= self._left:
            return self._arms
        there = tape.available[index].tolist() or [1] * (1 + max(self._arms, default=0))
        costs = self._costs[context]
        return tuple(arm for arm in self._arms if there[arm] and costs[arm] <= self._left)

    def commit(self, chunk: Block[Tape], index: int, round_: int, person: int, arm: int) -> int:
        """Pay for a decision and enter it with its answer from the tape; return its number."""
        self._left = minus(self._left, self._costs[self.context_of(person)][arm])
        decision: int = LOGBOOK["enter"](self._block, self.truth.block, chunk, index, round_, person, arm)
        return decision

    def note_arrival(self, round_: int, person: int, arm: int, probability: float) -> None:
        """Keep an arrival and what was done (-1: skipped), where arrivals are kept."""
        if self.book.arrivals.size:
            self.book.arrivals[round_ - 1] = (probability, person, arm)

    def note_checkpoint(self, cutoff: float) -> None:
        """Keep the totals at a checkpoint."""
        LOGBOOK["check_in"](self._block, cutoff, float(self.scenario.problem.n_arms))
