"""All that is emitted as machine code for live use: one call runs events of one kind, one or many."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Ints, Record
from doral._kernel import Entry, Program, TreeLayout, kernel, layout_of, position, rare, shared
from doral.engine import amend
from doral.engine.events import (
    AFTER_CUTOFF,
    LEARNED,
    choose,
    commit,
    hear,
    is_full,
    is_stock_due,
    learn,
    open_round,
    take_stock,
    tick,
    what_is_done,
)
from doral.engine.hooks import admit, on_guest
from doral.engine.purse import list_cost
from doral.engine.state import State
from doral.estimators.ridge import refactor_rows

# What is decided for an arrival, with the number of its decision.
VERDICT = np.dtype(
    [
        ("arm", np.int64),
        ("reason", np.int64),
        ("round", np.int64),
        ("number", np.int64),
        ("probability", np.float64),
        ("value", np.float64),
        ("price", np.float64),
    ],
    align=True,
)


# An answer, and what became of it.
ANSWER = np.dtype(
    [
        ("number", np.int64),  # of the decision
        ("reward", np.float64),
        ("clock", np.float64),  # when it came
        ("recorded", np.int64),  # what became of it according to the log, or ASK
        ("is_recalled", np.int64),  # 1: it came before what the clock shows, and is told only now
        ("context", np.int64),  # of the decision, which may be gone by then; and so on
        ("arm", np.int64),
        ("trains", np.int64),
        ("age", np.float64),  # of the decision when it came
        ("outcome", np.int64),  # to be filled in
    ],
    align=True,
)

ASK = -2  # in the place of an arm or an outcome: not a fact of the log, but for the engine to say


class Arrivals(NamedTuple):
    """In their order."""

    contexts: Ints  # (n,)
    traits: Floats  # (n, features of a person)
    weights: Floats  # (n,) what a unit of reward is worth; NaN: what it is in the context
    deadlines: Floats  # (n,) likewise
    available: Bits  # (n, A), or (n, 0) where all arms are
    clocks: Floats  # (n,)
    times: Floats  # (n,) when the decision counts as made: what the clock shows, or earlier
    arms: Ints  # (n,) that were played according to the log, below 0 for a skip; or ASK
    costs: Floats  # (n,) of those
    decided: Record  # (n,) of VERDICT, to be filled in


class Answers(NamedTuple):
    """In their order."""

    rows: Record  # (n,) of ANSWER
    traits: Floats  # (n, features of a person) of those who are answered: their decision may be gone by then


def new_arrivals(n: int, n_arms: int, n_traits: int = 0) -> Arrivals:
    """Room for n arrivals that the engine decides; `n_arms` is 0 where all arms are available."""
    return Arrivals(
        np.zeros(n, dtype=np.int64),
        np.zeros((n, n_traits)),
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.zeros((n, n_arms), dtype=np.uint8),
        np.zeros(n),
        np.zeros(n),
        np.full(n, ASK, dtype=np.int64),
        np.zeros(n),
        np.zeros(n, dtype=VERDICT),
    )


def new_answers(n: int, n_traits: int = 0) -> Answers:
    """Room for n answers."""
    return Answers(np.zeros(n, dtype=ANSWER), np.zeros((n, n_traits)))


@rare
def prepare(state: State) -> None:
    """Fill in what a first state has to be computed for."""
    refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])
    if state.now[0].racing == 0:
        take_stock(state)


@kernel
def welcome(state: State, context: int, traits: Floats, weight: float, deadline: float, clock: float) -> int:
    """Somebody of this context arrives: all that is done before it is decided; the row of what they are worth."""
    open_round(state, clock)
    if is_stock_due(state):
        take_stock(state)
    return position(admit(state, context, traits, weight, deadline))


@shared
def arrive(state: State, arrivals: Arrivals, start: int) -> int:
    """Decide for arrivals from `start` on; returns where it stopped: at the end, or earlier if the state is full.

    Where the log says what was decided, that is what happens; the engine only says what it would have chosen.
    """
    for i in range(start, arrivals.contexts.size):
        if is_full(state):
            return i
        context, clock = position(arrivals.contexts[i]), arrivals.clocks[i]
        context = welcome(state, context, arrivals.traits[i], arrivals.weights[i], arrivals.deadlines[i], clock)
        choice = choose(state, context, arrivals.available[i])
        arm = what_is_done(state, choice) if arrivals.arms[i] == ASK else arrivals.arms[i]
        if arm >= 0:
            arm = position(arm)
            cost = list_cost(state, context, arm) if arrivals.arms[i] == ASK else arrivals.costs[i]
            commit(state, context, arm, cost, arrivals.times[i])
        decided = arrivals.decided[i]
        decided.arm, decided.reason = choice.arm, choice.reason
        decided.round, decided.number = state.now[0].round, state.now[0].next - 1
        decided.probability, decided.value, decided.price = choice.probability, choice.value, choice.price
    return arrivals.contexts.size


@shared
def answer(state: State, answers: Answers, start: int) -> int:
    """Take in answers from `start` on; returns where it stopped."""
    for i in range(start, answers.rows.size):
        if is_full(state):
            return i
        row = answers.rows[i]
        context, arm = position(row.context), position(row.arm)
        if row.is_recalled != 0:
            on_guest(state, row.number, context, answers.traits[i])
            row.outcome = amend.recall(state, row.number, context, arm, row.reward, row.age)
        else:
            row.outcome = hear(state, row.number, row.reward, row.clock)
        if row.recorded != ASK and row.outcome <= AFTER_CUTOFF and row.recorded <= AFTER_CUTOFF:
            row.outcome = row.recorded
        if row.outcome == LEARNED:
            if row.is_recalled != 0:
                amend.learn_late(state, row.number, context, arm, row.trains != 0, row.reward)
            else:
                learn(state, row.number, row.reward)
    return answers.rows.size


@rare
def record(state: State, arrivals: Arrivals, is_arrival: bool) -> int:
    """A decision that was made elsewhere, the first of these; 0 if the state is full, and nothing has happened."""
    if is_full(state):
        return 0
    amend.record(
        state,
        arrivals.contexts[0],
        arrivals.traits[0],
        arrivals.weights[0],
        arrivals.deadlines[0],
        arrivals.arms[0],
        arrivals.costs[0],
        arrivals.times[0],
        arrivals.clocks[0],
        is_arrival,
    )
    return 1


@rare
def greet(state: State, number: int, context: int, answers: Answers) -> None:
    """Who was decided for, the first of these, before what follows: the decision may be gone."""
    on_guest(state, number, context, answers.traits[0])


@rare
def pass_time(state: State, clock: float) -> None:
    """Time has passed and nobody has arrived."""
    tick(state, clock)
    if is_stock_due(state):
        take_stock(state)


def live_entries(state: TreeLayout) -> dict[str, Entry]:
    """What a live campaign calls, for states of this layout."""
    return {
        **engine_entries(state),
        "arrive": Entry(arrive, (state, new_arrivals(1, 1), int), int),
        "answer": Entry(answer, (state, new_answers(1), int), int),
        "pass_time": Entry(pass_time, (state, float)),
        "record": Entry(record, (state, new_arrivals(1, 1), bool), int),
        "greet": Entry(greet, (state, int, int, new_answers(1))),
        "cancel": Entry(amend.cancel, (state, int, int, int, float, bool, float)),
        "pay": Entry(amend.pay, (state, int, int, int, float, float)),
        "correct": Entry(amend.correct, (state, int, int, int, float, float)),
        "recompute": Entry(amend.recompute, (state,)),
    }


def engine_entries(state: TreeLayout) -> dict[str, Entry]:
    """What every program of a policy needs."""
    return {"prepare": Entry(prepare, (state,))}


_PROGRAMS: dict[tuple[str, type], Program] = {}


def program_of(kind: str, state: State, entries: Callable[[TreeLayout], dict[str, Entry]]) -> Program:
    """The program of a composition, one of each kind ("live", "simulation") in a process."""
    state_class: Any = type(state)
    if (kind, state_class) not in _PROGRAMS:
        digest = hashlib.sha256(state_class.composition.name.encode()).hexdigest()[:8]
        program = Program(
            name=f"{kind}-{digest}",
            entries=entries(layout_of(state)),
            seconds=state_class.compile_seconds,
            label=state_class.label,
        )
        _PROGRAMS.setdefault((kind, state_class), program)  # of threads that ask at the same time, the first
    return _PROGRAMS[kind, state_class]
