"""Players: one policy and its logbook; the simulator passes them one chunk of tape after another."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from doral._arrays import Floats, Ints
from doral.compiled import Block
from doral.engine.certificates import certificates
from doral.engine.explain import accepted, view_explored, view_race
from doral.engine.options import PolicyOptions
from doral.engine.people import ASK_AT, KNOWN
from doral.engine.setup import Blueprint, FirstStates, first_state, grown, longest
from doral.engine.state import State
from doral.prediction.external import External
from doral.prediction.models import Known
from doral.problem import Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import arrival_log, decision_log, n_served, new_logbook, rewards_counted, spent
from doral.simulation.world.loop import PROGRAM
from doral.simulation.world.tape import Tape
from doral.simulation.world.truth import Truth


class Player(Protocol):
    """One policy in one run."""

    def play(self, tape: Tape, first_round: int) -> None:
        """Play a chunk."""

    def outcome(self, *, keep_decisions: bool) -> Outcome:
        """What happened, after the last chunk."""


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
        return Outcome(
            scenario=self._scenario.name,
            policy=self._options.name,
            run=self._run,
            oracle=self._truth.oracle,
            oracle_error=self._truth.oracle_error,
            rewards=rewards_counted(book, problem, float(now["cutoff"])),
            expected=float(book.counts["expected"][0]),
            rounds=book.checkpoints,
            curve=book.curve,
            course=book.course,
            decisions=n_served(book),
            spend=spent(book, self._scenario, float(now["budget_left"])),
            race_rounds=race.rounds,
            race_spend=race.spend,
            race_ended=race.ended,
            race_capped=race.is_capped,
            accepted=accepted(state, problem),
            cutoff=float(now["cutoff"]),
            certificates=certificates(state, problem),
            log=self._truth.described(decision_log(book)) if keep_decisions else None,
            explored=explored.arrivals,
            explored_loss=explored.loss,
            arrivals=self._truth.described(arrival_log(book, problem)),
        )


def _first_block(scenario: Scenario, blueprint: Blueprint) -> Block[State]:
    if scenario.problem.person and scenario.features == "drawn":  # lines hold what they share by features of arms
        return Block(first_state(blueprint))
    return scenario.once(_first_states).block(blueprint)


def _first_states(scenario: Scenario) -> FirstStates:
    return FirstStates()


BATCH = 512  # arrivals who are asked about at a time: a model is quicker with many


class ExternalPlayer(CompiledPlayer):
    """Hands the predictions in with everybody who arrives, in the place where the world keeps features."""

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
        self._asked_with = np.full(n, 0)  # after how many fits everybody was predicted
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
        self.models = external.models(problem, seed=(seed, run), features=truth.features)
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
        """Answers that came in time; where nobody says no, decisions that are older than the longest deadline."""
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
