"""One run of a policy on kernel level: what the other benchmarks need of the package, in one place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from doral._arrays import Ints
from doral.compiled import Block
from doral.engine.explain import view_race
from doral.engine.options import PolicyOptions
from doral.engine.setup import Blueprint, first_state, grown
from doral.engine.state import State
from doral.simulation.results import outcome
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.logbook import Logbook, new_logbook
from doral.simulation.world.loop import PROGRAM
from doral.simulation.world.tape import WORLD, Tape, new_tape
from doral.simulation.world.truth import Truth, make_truth


@dataclass(frozen=True)
class Task:
    """What is to be played: a policy in a scenario, on a tape that holds the whole horizon."""

    blueprint: Blueprint
    scenario: Scenario
    truth: Truth
    tape: Tape

    @property
    def horizon(self) -> int:
        return self.scenario.problem.horizon


class Played(NamedTuple):
    """A finished run, and how long its loop took."""

    seconds: float
    state: State
    book: Logbook

    @property
    def decisions(self) -> int:
        return int(self.state.now[0]["next"])

    @property
    def spend(self) -> float:
        return float(self.state.now[0]["budget"] - self.state.now[0]["budget_left"])

    @property
    def reward(self) -> float:
        return float(self.book.totals[WITHIN_DEADLINE])

    @property
    def race_rounds(self) -> int:
        return view_race(self.state).rounds

    @property
    def cutoff(self) -> float:
        return float(self.state.now[0]["cutoff"])


def new_task(options: PolicyOptions, scenario: Scenario, *, seed: int, run: int) -> Task:
    """The tape is recorded here."""
    truth = make_truth(scenario, seed=seed, run=run)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, seed, run, 1)
    blueprint = Blueprint(options=options, problem=scenario.problem, seed=seed, run=run, given_features=truth.features)
    return Task(blueprint, scenario, truth, tape)


def checkpoints(task: Task) -> Ints:
    """The rounds at which the book copies its totals."""
    return outcome.checkpoints(task.horizon)


def play_once(task: Task) -> Played:
    """Play the whole tape; only the loop is timed, in processor time, so that a busy machine does not enter."""
    state = Block(first_state(task.blueprint))
    PROGRAM["prepare"](state)
    book = Block(new_logbook(task.scenario, task.truth.times, task.truth.classes))
    book.tree.entries.view("u1").fill(0)  # the C program's memory is touched before its clock starts too
    play, world, tape = PROGRAM["play"], task.truth.block, Block(task.tape)
    start, played = time.thread_time(), 0
    while (played := play(state, world, tape, book, 1, played)) < task.horizon:
        state.tree = grown(state.tree)
    return Played(time.thread_time() - start, state.tree, book.tree)
