"""Players: a policy and its logbook. The simulator hands them one chunk of tape after another."""

from __future__ import annotations

from typing import Protocol

from doral._arrays import Floats
from doral._kernel import Block
from doral.engine.blueprint import Blueprint
from doral.engine.compose import first_state, grown
from doral.engine.first_states import FirstStates
from doral.engine.options import PolicyOptions
from doral.engine.state import State
from doral.engine.view import accepted, certificates, view_explored, view_race
from doral.problem import Problem
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import arrival_log, decision_log, n_served, new_logbook, rewards_counted, spent
from doral.simulation.world.loop import simulation_program
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
        oracle: Floats | None,
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
            oracle=oracle,
            true_values=truth.values if options.sampling == "oracle" else None,
            day=None if scenario.arrivals is None else scenario.arrivals.day,
        )
        self.state = _first_block(scenario, blueprint)
        self._program = simulation_program(self.state.tree)
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
            clairvoyant=self._truth.clairvoyant,
            clairvoyant_error=self._truth.clairvoyant_error,
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
