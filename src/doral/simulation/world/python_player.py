"""A policy written in Python, on the same tapes and with the same logbook as compiled policies."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral.compiled import Block
from doral.errors import DoralError, InvalidValue
from doral.problem import Arm, Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.driver import Driver
from doral.simulation.world.logbook import arrival_log, decision_log, n_served, rewards_counted
from doral.simulation.world.python_policy import Answer, Arrival, PolicyMaker, PythonPolicy
from doral.simulation.world.tape import Tape
from doral.simulation.world.truth import Truth


class BadDecision(DoralError):
    """A policy written in Python chose an arm that is not available."""


class PythonPlayer:
    """Asks the policy for decisions, and passes answers on to it."""

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
        self._driver = Driver(scenario, seed=seed, run=run, truth=truth, keep_arrivals=keep_decisions)
        self._checkpoints = frozenset(self._driver.book.checkpoints.tolist())

    def play(self, tape: Tape, first_round: int) -> None:
        driver, chunk, control = self._driver, Block(tape), self._scenario.problem.control
        for i, person in enumerate(tape.context.tolist()):
            round_ = first_round + i
            for answer in driver.hear(round_, self._cutoff):
                decided, _, context, arm, reward, delay, paid = answer
                time = driver.clock(decided)
                self._policy.observe(Answer(round_, decided, context, arm, reward, paid, time + delay, time))
            driver.lapse(round_)
            choice = self._decide(tape, i, round_, person)
            driver.note_arrival(round_, person, -1 if choice is None else choice, math.nan)
            done = control if choice is None else choice  # a skip is the control where there is one
            if done is not None:
                driver.commit(chunk, i, round_, person, done)
            if round_ in self._checkpoints:
                driver.note_checkpoint(self._cutoff)

    def _decide(self, tape: Tape, i: int, round_: int, person: int) -> int | None:
        context, time, until = self._driver.context_of(person), self._driver.clock(round_), self._scenario.problem.until
        available = self._driver.available(tape, i, context)
        arrival = Arrival(
            round_,
            context,
            available,
            self._driver.budget_left,
            self._rounds_left(round_, time),
            time,
            math.inf if until is None else until,
            self._features_of(person),
        )
        arm = self._policy.decide(arrival)
        if arm is None:
            return None
        if arm not in available:
            message = f"policy {self._name!r}, round {round_}: chose arm {arm!r}, which is not among {available}"
            raise BadDecision(message)
        return int(arm)  # NumPy's integers become plain ones

    def _features_of(self, person: int) -> Mapping[str, Any]:
        if self._truth.people is None or not self._scenario.problem.person:
            return {}
        return self._truth.people.crowd.row(person)

    def _rounds_left(self, round_: int, time: float) -> int:
        """Return the arrivals to come, this one included; where the end is a date, at the pace so far."""
        problem = self._scenario.problem
        if problem.until is None:
            return problem.horizon - round_ + 1
        pace = (round_ + 1) / (time + problem.until / problem.expected_rounds)
        return 1 + round(pace * max(0.0, problem.until - time))

    @property
    def _cutoff(self) -> float:
        return float(getattr(self._policy, "cutoff", math.inf))

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        problem, book = self._scenario.problem, self._driver.book
        return Outcome(
            scenario=self._scenario.name,
            policy=self._name,
            run=self._run,
            oracle=self._truth.oracle,
            oracle_error=self._truth.oracle_error,
            rewards=rewards_counted(book, problem, self._cutoff),
            expected=float(book.counts["expected"][0]),
            rounds=book.checkpoints,
            curve=book.curve,
            course=book.course,
            decisions=n_served(book),
            spend=self._driver.spend,
            race_rounds=0,
            race_spend=0.0,
            race_ended=0,
            race_capped=False,
            accepted=tuple(name for arm, name in enumerate(problem.arm_names) if arm != problem.control),
            cutoff=self._cutoff,
            log=self._truth.described(decision_log(book)) if keep_decisions else None,
            arrivals=self._truth.described(arrival_log(book, problem)),
        )


def _made(maker: PolicyMaker, name: str, problem: Problem, seed: int) -> PythonPolicy:
    """Make the policy, and check before the first arrival that it has both methods."""
    try:
        inspect.signature(maker).bind(problem, seed)
    except ValueError:  # it has no signature, as some C functions
        pass
    except TypeError as error:
        raise InvalidValue("policy", name, f"is made with (problem, seed), and cannot be: {error}") from None
    policy = maker(problem, seed)
    missing = [method for method in ("decide", "observe") if not callable(getattr(policy, method, None))]
    if missing:
        remedy = f"needs a method {' and a method '.join(missing)}: decide(arrival) and observe(answer) are asked for"
        raise InvalidValue("policy", name, remedy)
    return policy


def _with_features(problem: Problem, features: Floats) -> Problem:
    """Return the problem with the arm features that were drawn for this run."""
    arms = tuple(
        Arm(arm.name, features=row, cost=arm.cost) for arm, row in zip(problem.arms, features.tolist(), strict=True)
    )
    return dataclasses.replace(problem, arms=arms)


def _seed_of(seed: int, run: int) -> int:
    """Return a seed of its own for every pair of seed and run."""
    return int(np.random.SeedSequence((seed, run)).generate_state(1)[0])
