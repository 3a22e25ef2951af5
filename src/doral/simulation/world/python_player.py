"""A policy written in Python, on the same tapes and with the same logbook as the compiled ones."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral._kernel import Block
from doral.errors import DoralError, InvalidValue
from doral.problem import Arm, Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import (
    LOGBOOK,
    NO_DECISION,
    arrival_log,
    decision_log,
    n_served,
    new_logbook,
    rewards_counted,
    spent,
)
from doral.simulation.world.python_policy import Answer, Arrival, PolicyMaker, PythonPolicy
from doral.simulation.world.tape import Tape
from doral.simulation.world.truth import Truth


class BadDecision(DoralError):
    """A policy written in Python chose an arm that it could not have."""


def _made(maker: PolicyMaker, name: str, problem: Problem, seed: int) -> PythonPolicy:
    """The policy, if it can be asked; whoever has forgotten half of it is told before the first arrival."""
    try:
        inspect.signature(maker).bind(problem, seed)
    except ValueError:  # nobody knows its arguments
        pass
    except TypeError as error:
        raise InvalidValue("policy", name, f"is made with (problem, seed), and cannot be: {error}") from None
    policy = maker(problem, seed)
    missing = [method for method in ("decide", "observe") if not callable(getattr(policy, method, None))]
    if missing:
        remedy = f"needs a method {' and a method '.join(missing)}: decide(arrival) and observe(answer) are asked for"
        raise InvalidValue("policy", name, remedy)
    return policy


class PythonPlayer:
    """Asks the policy, and enters what it says."""

    def __init__(
        self,
        maker: PolicyMaker,
        name: str,
        scenario: Scenario,
        truth: Truth,
        *,
        seed: int,
        run: int,
        keep_decisions: bool = False,
    ) -> None:
        self._name, self._scenario, self._truth, self._run = name, scenario, truth, run
        problem = scenario.problem
        if scenario.features == "drawn":
            problem = _with_features(problem, truth.features)
        self._policy = _made(maker, name, problem, _seed_of(seed, run))
        self._n_arms = scenario.problem.n_arms
        self._budget_left = scenario.problem.budget  # for the policy; who can be paid goes by decimals
        rows = [[Decimal(repr(cost)) for cost in row] for row in scenario.problem.costs_by_context.tolist()]
        self._exact_costs = rows if len(rows) > 1 else rows * scenario.problem.n_contexts
        self._exact_left = Decimal(repr(scenario.problem.budget))
        self._are_bills_due, self._deadlines = scenario.paid != "always", scenario.problem.deadlines.tolist()
        self._book = new_logbook(scenario, truth.times, truth.classes, keep_arrivals=keep_decisions)
        self._book_block = Block(self._book)
        self._classes: list[int] = truth.classes.tolist()
        self._is_due = memoryview(self._book.last_due)  # type: ignore[arg-type]
        # What can be had where everything is there and can be paid, by context, and what that takes.
        control = scenario.problem.control
        self._all_arms = tuple(arm for arm in range(self._n_arms) if arm != control)
        self._dearest = [max(row) for row in self._exact_costs]
        self._pauses = frozenset(self._book.checkpoints.tolist())

    def play(self, tape: Tape, first_round: int) -> None:
        enter, chunk = LOGBOOK["enter"], Block(tape)
        for i, who in enumerate(tape.context.tolist()):
            round_, context = first_round + i, self._class_of(who)
            self._hear(round_)
            if self._are_bills_due:
                self._lapse(round_)
            arm = self._decide(tape, i, round_, context, who)
            if self._book.arrivals.size:  # with which probability, a policy in Python does not say
                self._book.arrivals[round_ - 1] = (math.nan, who, -1 if arm is None else arm)
            if arm is None:
                arm = self._scenario.problem.control  # what is done with those who are skipped
            if arm is not None:
                self._exact_left -= self._exact_costs[context][arm]
                self._budget_left = float(self._exact_left)
                enter(self._book_block, self._truth.block, chunk, i, round_, who, arm)
            if round_ in self._pauses:
                LOGBOOK["check_in"](self._book_block, self._cutoff, float(self._n_arms))

    def _hear(self, round_: int) -> None:
        """The answers due in this round, in the order of their decisions."""
        if not self._is_due[round_]:  # in most rounds; a call into compiled code takes longer than this
            return
        decision = LOGBOOK["first_due"](self._book_block, round_)
        while decision != NO_DECISION:
            LOGBOOK["count"](self._book_block, round_, decision, self._cutoff)
            reward, delay, decided, who, arm, _ = self._book.entries[decision].item()
            context = self._class_of(who)
            if reward != 0.0 or not self._truth.world.silent:  # where feedback is silent, nobody hears of a zero
                paid = self._pay(decision, context, arm, is_in_time=delay <= self._deadlines[context])
                time = self._clock(decided)
                self._policy.observe(Answer(round_, decided, context, arm, reward, paid, time + delay, time))
            decision = LOGBOOK["next_due"](self._book_block, round_, decision)

    def _pay(self, decision: int, context: int, arm: int, *, is_in_time: bool) -> float:
        """What a decision costs, now that its answer is heard; the rest comes back, unless it did when it lapsed."""
        cost = self._exact_costs[context][arm]
        if not self._are_bills_due:
            return float(cost)
        paid = float(cost) * float(self._book.bills.share[decision])
        if is_in_time:
            self._give_back(cost - Decimal(repr(paid)))
        return paid

    def _lapse(self, round_: int) -> None:
        """Decisions that were not heard of by their deadline cost nothing."""
        decision = LOGBOOK["first_lapsed"](self._book_block, round_)
        while decision != NO_DECISION:
            _, _, _, who, arm, _ = self._book.entries[decision].item()
            self._give_back(self._exact_costs[self._class_of(who)][arm])
            decision = LOGBOOK["next_lapsed"](self._book_block, round_, decision)

    def _give_back(self, amount: Decimal) -> None:
        self._exact_left += amount
        self._budget_left = float(self._exact_left)

    def _class_of(self, who: int) -> int:
        """The context of one who arrives: all there is to say of them, or one of the things."""
        return self._classes[who] if self._classes else who

    def _features_of(self, who: int) -> Mapping[str, Any]:
        if self._truth.people is None or not self._scenario.problem.person:
            return {}
        return self._truth.people.crowd.row(who)

    def _decide(self, tape: Tape, i: int, round_: int, context: int, who: int) -> int | None:
        available = self._available(tape, i, context)
        time, until = self._clock(round_), self._scenario.problem.until
        told = (round_, context, available, self._budget_left, self._rounds_left(round_, time), time)
        ends = math.inf if until is None else until
        arm = self._policy.decide(Arrival(*told, ends, self._features_of(who)))
        if arm is None:
            return None
        if arm not in available:
            message = f"policy {self._name!r}, round {round_}: chose arm {arm!r}, which is not among {available}"
            raise BadDecision(message)
        return int(arm)  # NumPy's integers become plain ones

    def _available(self, tape: Tape, i: int, context: int) -> tuple[int, ...]:
        """The arms that are there and can be paid."""
        left = self._exact_left
        if tape.available.shape[1] == 0 and self._dearest[context] <= left:
            return self._all_arms
        there = tape.available[i].tolist() or [1] * self._n_arms
        costs = self._exact_costs[context]
        return tuple(arm for arm in self._all_arms if there[arm] and costs[arm] <= left)

    def _clock(self, round_: int) -> float:
        times = self._truth.times
        return float(times[round_ - 1]) if times.size else float(round_)

    def _rounds_left(self, round_: int, time: float) -> int:
        """This one included. Where the end is a date: at the pace so far, with one arrival at the expected pace."""
        problem = self._scenario.problem
        if problem.until is None:
            return problem.horizon - round_ + 1
        pace = (round_ + 1) / (time + problem.until / problem.expected_rounds)
        return 1 + round(pace * max(0.0, problem.until - time))

    @property
    def _cutoff(self) -> float:
        return float(getattr(self._policy, "cutoff", math.inf))

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        problem = self._scenario.problem
        return Outcome(
            scenario=self._scenario.name,
            policy=self._name,
            run=self._run,
            oracle=self._truth.oracle,
            oracle_error=self._truth.oracle_error,
            rewards=rewards_counted(self._book, problem, self._cutoff),
            expected=float(self._book.counts["expected"][0]),
            rounds=self._book.checkpoints,
            curve=self._book.curve,
            course=self._book.course,
            decisions=n_served(self._book),
            spend=spent(self._book, self._scenario, self._budget_left),
            race_rounds=0,
            race_spend=0.0,
            race_ended=0,
            race_capped=False,
            accepted=tuple(name for arm, name in enumerate(problem.arm_names) if arm != problem.control),
            cutoff=self._cutoff,
            log=self._truth.described(decision_log(self._book)) if keep_decisions else None,
            arrivals=self._truth.described(arrival_log(self._book, problem)),
        )


def _with_features(problem: Problem, features: Floats) -> Problem:
    """The problem as it is in this run: a policy must see the features that were drawn."""
    arms = tuple(
        Arm(arm.name, features=row, cost=arm.cost) for arm, row in zip(problem.arms, features.tolist(), strict=True)
    )
    return dataclasses.replace(problem, arms=arms)


def _seed_of(seed: int, run: int) -> int:
    """A seed of its own for every pair."""
    return int(np.random.SeedSequence((seed, run)).generate_state(1)[0])
