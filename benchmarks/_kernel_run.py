"""One run of a policy on kernel level: what `engine_vs_c` needs of the package, in one place."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from doral.policies.build import build_rules, build_state
from doral.policies.state import Rules, State, grown

from doral._arrays import Ints
from doral.engine.options import PolicyOptions
from doral.simulation.logbook import Logbook, new_logbook
from doral.simulation.loop import play
from doral.simulation.outcome import WITHIN_DEADLINE
from doral.simulation.scenario import Scenario
from doral.simulation.tape import Tape, new_tape, record
from doral.simulation.world import Truth, make_truth


@dataclass(frozen=True)
class Task:
    """What is to be played: a policy in a scenario, on a tape that holds the whole horizon."""

    options: PolicyOptions
    scenario: Scenario
    rules: Rules
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
        return int(self.state.now[0]["race_rounds"])

    @property
    def cutoff(self) -> float:
        return float(self.state.now[0]["cutoff"])


def new_task(options: PolicyOptions, scenario: Scenario, *, seed: int, run: int) -> Task:
    """The tape is recorded here."""
    rules = build_rules(options=options, problem=scenario.problem, seed=seed, run=run)
    truth = make_truth(scenario, seed=seed, run=run)
    tape = new_tape(truth.world, scenario.problem.horizon)
    record(tape, truth.world, np.uint64(seed), np.uint64(run), 1)
    return Task(options, scenario, rules, truth, tape)


def checkpoints(task: Task) -> Ints:
    """The rounds at which the book copies its totals."""
    return new_logbook(task.scenario).checkpoints


def first_state(task: Task) -> State:
    """The state before the first round."""
    problem, features = task.scenario.problem, task.truth.features
    return build_state(options=task.options, rules=task.rules, problem=problem, features=features)


def play_once(task: Task) -> Played:
    """Play the whole tape; only the loop is timed, in processor time, so that a busy machine does not enter."""
    state = first_state(task)
    book = new_logbook(task.scenario)
    for array in (book.entries, book.last_due):
        array.fill(0)  # the C program's memory is touched before its clock starts too
    start = time.thread_time()
    played = 0
    while played < task.horizon:
        played = play(state, task.rules, task.truth.world, task.tape, book, 1, played)
        if played < task.horizon:
            state = grown(state)
    return Played(time.thread_time() - start, state, book)
