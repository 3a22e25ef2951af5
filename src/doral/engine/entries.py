"""All that is emitted as machine code for live use: one call runs events of one kind, one or many."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Ints, Record
from doral._kernel import Entry, Program, TreeLayout, kernel, layout_of, rare, shared
from doral.engine import amend
from doral.engine.choice import Choice
from doral.engine.events import decide, is_full, is_stock_due, observe, open_round, take_stock, tick
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


class Arrivals(NamedTuple):
    """In their order."""

    contexts: Ints  # (n,)
    available: Bits  # (n, A), or (n, 0) where all arms are
    clocks: Floats  # (n,)
    decided: Record  # (n,) of VERDICT, to be filled in


class Answers(NamedTuple):
    """In their order."""

    numbers: Ints  # (n,) of the decisions
    rewards: Floats  # (n,)
    clocks: Floats  # (n,)
    outcomes: Ints  # (n,) to be filled in: what became of each


def new_arrivals(n: int, n_arms: int) -> Arrivals:
    """Room for n arrivals; `n_arms` is 0 where all arms are available."""
    return Arrivals(
        np.zeros(n, dtype=np.int64), np.zeros((n, n_arms), dtype=np.uint8), np.zeros(n), np.zeros(n, dtype=VERDICT)
    )


def new_answers(n: int) -> Answers:
    """Room for n answers."""
    return Answers(np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64))


@rare
def prepare(state: State) -> None:
    """Fill in what a first state has to be computed for."""
    refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])
    if state.now[0].racing == 0:
        take_stock(state)


@kernel
def step(state: State, context: int, available: Bits, clock: float) -> Choice:
    """One arrival, whole."""
    open_round(state, clock)
    if is_stock_due(state):
        take_stock(state)
    return decide(state, context, available)


@shared
def arrive(state: State, arrivals: Arrivals, start: int) -> int:
    """Decide for arrivals from `start` on; returns where it stopped: at the end, or earlier if the state is full."""
    for i in range(start, arrivals.contexts.size):
        if is_full(state):
            return i
        choice = step(state, arrivals.contexts[i], arrivals.available[i], arrivals.clocks[i])
        decided = arrivals.decided[i]
        decided.arm, decided.reason = choice.arm, choice.reason
        decided.round, decided.number = state.now[0].round, state.now[0].next - 1
        decided.probability, decided.value, decided.price = choice.probability, choice.value, choice.price
    return arrivals.contexts.size


@shared
def answer(state: State, answers: Answers, start: int) -> int:
    """Take in answers from `start` on; returns where it stopped."""
    for i in range(start, answers.numbers.size):
        if is_full(state):
            return i
        answers.outcomes[i] = observe(state, answers.numbers[i], answers.rewards[i], answers.clocks[i])
    return answers.numbers.size


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
        "cancel": Entry(amend.cancel, (state, int, int, int, bool, float)),
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
        _PROGRAMS[kind, state_class] = Program(
            name=f"{kind}-{digest}",
            entries=entries(layout_of(state)),
            seconds=state_class.compile_seconds,
            label=state_class.label,
        )
    return _PROGRAMS[kind, state_class]
