"""Players: one policy and its logbook; the simulator passes them one chunk of tape after another."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from doral._arrays import Floats, Ints
from doral.compiled import Block
from doral.engine.certificates import certificates
from doral.engine.explain import accepted, view_explored, view_race
from doral.engine.options import PolicyOptions
from doral.engine.people import ASK_AT, KNOWN
from doral.engine.setup import Blueprint, FirstStates, first_state, grown, longest
from doral.engine.state import State
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.prediction.external import External
from doral.prediction.models import Known
from doral.prediction.python_policy import Answer, Arrival, PolicyMaker, PythonPolicy
from doral.problem import Arm, Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.driver import Driver
from doral.simulation.world.logbook import (
    Logbook,
    arrival_log,
    decision_log,
    n_served,
    new_logbook,
    rewards_counted,
    spent,
)
from doral.simulation.world.loop import PROGRAM
from doral.simulation.world.tape import Tape
from doral.simulation.world.truth import Truth


class Player(Protocol):
    """One policy in one run."""

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk of the tape."""

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        """Return what happened, after the last chunk."""


def _outcome(
    book: Logbook,
    scenario: Scenario,
    truth: Truth,
    *,
    policy: str,
    run: int,
    cutoff: float,
    spend: float,
    keep: bool,
    **own: Any,
) -> Outcome:
    """Return the outcome of a run from its logbook; `own` is what only the policy itself knows."""
    problem = scenario.problem
    return Outcome(
        scenario=scenario.name,
        policy=policy,
        run=run,
        oracle=truth.oracle,
        oracle_error=truth.oracle_error,
        rewards=rewards_counted(book, problem, cutoff),
        expected=float(book.counts["expected"][0]),
        rounds=book.checkpoints,
        curve=book.curve,
        course=book.course,
        decisions=n_served(book),
        spend=spend,
        cutoff=cutoff,
        log=truth.described(decision_log(book)) if keep else None,
        arrivals=truth.described(arrival_log(book, problem)),
        **own,
    )


class CompiledPlayer:
    """A policy of the engine, played by the compiled loop."""

    def __init__(
        self,
        options: PolicyOptions,
        scenario: Scenario,
        truth: Truth,
        *,
        seed: int,
        run: int,
        true_returns: Floats | None,
        keep_decisions: bool = False,
        problem: Problem | None = None,
    ) -> None:
        """`problem`: as the policy sees it, if not as it is."""
        self._options, self._scenario, self._truth, self._run = options, scenario, truth, run
        blueprint = Blueprint(
            options=options,
            problem=scenario.problem if problem is None else problem,
            seed=seed,
            run=run,
            given_features=truth.features,
            oracle=true_returns,
            true_values=truth.values if options.sampling == "oracle" else None,
            day=None if scenario.arrivals is None else scenario.arrivals.day,
        )
        self.state = _first_block(scenario, blueprint)
        self._program = PROGRAM
        self._program["prepare"](self.state)
        self._book = Block(new_logbook(scenario, truth.times, truth.classes, keep_arrivals=keep_decisions))

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk; where the state is full, give it more room and go on."""
        play, chunk, n_rounds, played = self._program["play"], Block(tape), tape.context.size, 0
        while (played := play(self.state, self._truth.block, chunk, self._book, first_round, played)) < n_rounds:
            self.state.tree = grown(self.state.tree)

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        state, book, problem = self.state.tree, self._book.tree, self._scenario.problem
        now, race, explored = state.now[0], view_race(state), view_explored(state)
        return _outcome(
            book,
            self._scenario,
            self._truth,
            policy=self._options.name,
            run=self._run,
            cutoff=float(now["cutoff"]),
            spend=spent(book, self._scenario, float(now["budget_left"])),
            keep=keep_decisions,
            race_rounds=race.rounds,
            race_spend=race.spend,
            race_ended=race.ended,
            race_capped=race.is_capped,
            accepted=accepted(state, problem),
            # The error of an external model is not known.
            certificates=() if self._options.values == "given" else certificates(state, problem),
            explored=explored.arrivals,
            explored_loss=explored.loss,
        )


def _first_block(scenario: Scenario, blueprint: Blueprint) -> Block[State]:
    if scenario.problem.person and scenario.features == "drawn":  # lines hold what they share by features of arms
        return Block(first_state(blueprint))
    return scenario.once(_first_states).block(blueprint)


def _first_states(scenario: Scenario) -> FirstStates:
    return FirstStates()


BATCH = 512  # arrivals who are asked about at a time: a model is quicker with many


class ExternalPlayer(CompiledPlayer):
    """Passes predictions in with every arrival, in the place where the world keeps features."""

    def __init__(
        self,
        external: External,
        scenario: Scenario,
        truth: Truth,
        *,
        seed: int,
        run: int,
        keep_decisions: bool = False,
    ) -> None:
        problem = scenario.problem
        self._external, self._n_arms = external, problem.n_arms
        self._own, self._contexts = _who_may_come(scenario, truth)
        n, m = self._own.shape
        self._people = np.full((n, m + self._n_arms + 1), np.nan)
        self._people[:, :m], self._people[:, -1] = self._own, np.arange(n)
        self._asked_with = np.full(n, 0)  # number of fits when each was predicted
        self._longest = longest(problem.deadlines)
        super().__init__(
            external.options,
            scenario,
            dataclasses.replace(truth, block=truth.block.with_fields(people=self._people)),
            seed=seed,
            run=run,
            true_returns=None,
            keep_decisions=keep_decisions,
            problem=external.problem_of(problem),
        )
        levels = None if truth.people is None else truth.people.crowd.levels(problem.person)
        self.models = external.models(problem, seed=(seed, run), features=truth.features, levels=levels)
        self._counts[ASK_AT] = external.schedule.first

    @property
    def _counts(self) -> Ints:
        counts: Ints = self.state.tree.predictions.counts
        return counts

    def play(self, tape: Tape, first_round: int) -> None:
        play, n_rounds, played = self._program["play"], tape.context.size, 0
        while played < n_rounds:
            end = min(n_rounds, played + BATCH)
            self._predict(tape.context[played:end])
            part = Block(Tape._make(column[:end] for column in tape))
            while (played := play(self.state, self._truth.block, part, self._book, first_round, played)) < end:
                if self._counts[KNOWN] >= self._counts[ASK_AT]:
                    self._refit(first_round + played - 1)
                    self._predict(tape.context[played:end])
                else:
                    self.state.tree = grown(self.state.tree)

    def _refit(self, round_: int) -> None:
        """On what is known after this round."""
        self.models.refit(self._known(round_))
        self._counts[ASK_AT] = self._external.schedule.after(int(self._counts[KNOWN]))

    def _known(self, round_: int) -> Known:
        """Answers that came in time; with silent feedback, decisions older than the longest deadline."""
        book = self._book.tree
        entries = book.entries[: book.counts["decisions"][0]]
        rounds, delay = entries["round"], entries["delay"]
        made = book.times[rounds - 1] if book.times.size else rounds.astype(np.float64)
        now = float(book.times[round_ - 1]) if book.times.size else float(round_)
        is_in_time, rewards = delay <= self._longest, entries["reward"]
        if self._truth.world.silent:
            is_known, rewards = now - made > self._longest, np.where(is_in_time, rewards, 0.0)
        else:
            is_known = is_in_time & (made + delay <= now)
        who = entries["context"][is_known].astype(np.int64)
        arms = entries["arm"][is_known].astype(np.int64)
        return Known(self._contexts[who], self._own[who], arms, rewards[is_known])

    def _predict(self, who: Ints) -> None:
        """For those who come next, if the model has changed since they were asked about."""
        fits = self.models.n_fits
        new = np.unique(who[self._asked_with[who] != fits])
        m = self._own.shape[1]
        self._people[new, m : m + self._n_arms] = self.models.predict(self._contexts[new], self._own[new])
        self._asked_with[new] = fits


def _who_may_come(scenario: Scenario, truth: Truth) -> tuple[Floats, Ints]:
    """Features (people, features) and contexts; where there are contexts alone, each stands for all who are in it."""
    m = scenario.problem.n_traits
    if m == 0 and not truth.classes.size:
        return np.zeros((scenario.problem.n_contexts, 0)), np.arange(scenario.problem.n_contexts)
    if m == 0:  # strata: a policy sees contexts alone
        return np.zeros((truth.classes.size, 0)), truth.classes
    return np.ascontiguousarray(truth.world.people[:, :m]), truth.classes


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
        self._policy = _made(maker, name, problem, int(np.random.SeedSequence((seed, run)).generate_state(1)[0]))
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
        names = self._scenario.problem.arm_names
        if isinstance(arm, str):
            if arm not in names:
                message = f"policy {self._name!r}, round {round_}: {UnknownName('arm', arm, names)}"
                raise BadDecision(message)
            arm = names.index(arm)
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
        problem = self._scenario.problem
        return _outcome(
            self._driver.book,
            self._scenario,
            self._truth,
            policy=self._name,
            run=self._run,
            cutoff=self._cutoff,
            spend=self._driver.spend,
            keep=keep_decisions,
            race_rounds=0,
            race_spend=0.0,
            race_ended=0,
            race_capped=False,
            accepted=tuple(name for arm, name in enumerate(problem.arm_names) if arm != problem.control),
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
