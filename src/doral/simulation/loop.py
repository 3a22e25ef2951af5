"""The compiled loop: one policy plays one chunk of a tape, and the book keeps what happened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from doral._arrays import Floats, Ints
from doral._jit import jit, jit_inner, position
from doral.policies.dropping import arms_in_play
from doral.policies.engine import decide, is_full, observe, tell_delay
from doral.policies.state import Rules, State
from doral.racing import INSTANT
from doral.simulation.outcome import COURSE, METRICS
from doral.simulation.tape import Tape, World, draw_delay, draw_reward

NEVER = -1

WITHIN_DEADLINE, BY_END, WITHIN_CUTOFF = 0, 1, 2  # positions in METRICS


class Book(NamedTuple):
    """Decisions in the order they were made, answers by the round in which they are due, and running totals."""

    first_due: Ints  # (T + 1,) first decision of the list of answers due in a round, or NEVER
    last_due: Ints  # (T + 1,)
    next_due: Ints  # (T,) by decision: the next one due in the same round
    round: Ints  # (T,) by decision
    context: Ints  # (T,)
    arm: Ints  # (T,)
    reward: Floats  # (T,)
    delay: Floats  # (T,)
    totals: Floats  # (metrics,) reward so far
    checkpoints: Ints  # (C,) rounds at which totals are copied into `curve`
    passed: Ints  # (1,) checkpoints passed
    curve: Floats  # (C, metrics)
    course: Floats  # (C, COURSE)


def new_book(horizon: int, checkpoints: Ints) -> Book:
    """An empty book."""
    return Book(
        first_due=np.full(horizon + 1, NEVER, dtype=np.int64),
        last_due=np.full(horizon + 1, NEVER, dtype=np.int64),
        next_due=np.empty(horizon, dtype=np.int64),
        round=np.empty(horizon, dtype=np.int64),
        context=np.empty(horizon, dtype=np.int64),
        arm=np.empty(horizon, dtype=np.int64),
        reward=np.empty(horizon),
        delay=np.empty(horizon),
        totals=np.zeros(len(METRICS)),
        checkpoints=checkpoints,
        passed=np.zeros(1, dtype=np.int64),
        curve=np.zeros((checkpoints.size, len(METRICS))),
        course=np.zeros((checkpoints.size, len(COURSE))),
    )


@jit_inner
def deliver(book: Book, state: State, rules: Rules, world: World, round_: int) -> None:
    """The answers due in this round, in the order of their decisions."""
    decision = book.first_due[round_]
    while decision != NEVER:
        decision = position(decision)
        reward = book.reward[decision]
        worth = reward * state.contexts[book.context[decision]].weight
        book.totals[BY_END] += worth
        if book.delay[decision] <= state.contexts[book.context[decision]].deadline:
            book.totals[WITHIN_DEADLINE] += worth
        if book.delay[decision] <= state.now[0].cutoff:
            book.totals[WITHIN_CUTOFF] += worth
        if reward != 0.0 or not world.silent:  # where feedback is silent, nobody hears of a zero
            observe(state, rules, decision, reward, float(round_))
        decision = book.next_due[decision]


@jit_inner
def enter(book: Book, decision: int, round_: int, context: int, arm: int, reward: float, delay: float) -> None:
    """Write a decision down and, if its answer comes before the end, when it is due."""
    book.round[decision] = round_
    book.context[decision] = context
    book.arm[decision] = arm
    book.reward[decision] = reward
    book.delay[decision] = delay
    due = round_ + delay
    if due < book.first_due.size:
        day = int(due)
        book.next_due[decision] = NEVER
        if book.first_due[day] == NEVER:
            book.first_due[day] = decision
        else:
            book.next_due[book.last_due[day]] = decision
        book.last_due[day] = decision


@jit_inner
def check_in(book: Book, state: State, round_: int) -> None:
    """At a checkpoint, remember the totals, the cut-off, and how many arms a context has to choose from."""
    passed = book.passed[0]
    if passed < book.checkpoints.size and book.checkpoints[passed] == round_:
        for metric in range(book.totals.size):
            book.curve[passed, metric] = book.totals[metric]
        book.course[passed, 0] = state.now[0].cutoff
        book.course[passed, 1] = arms_in_play(state)
        book.passed[0] = passed + 1


@jit
def play(state: State, rules: Rules, world: World, tape: Tape, book: Book, first_round: int, start: int) -> int:
    """Play the chunk from index `start` on; returns where it stopped: at its end, or earlier if the state is full."""
    for i in range(start, tape.context.size):
        if is_full(state):
            return i
        round_ = first_round + i
        deliver(book, state, rules, world, round_)
        context = position(tape.context[i])
        choice = decide(state, rules, context, tape.available[i], float(round_))
        if choice.arm >= 0:
            reward = draw_reward(world, round_, context, choice.arm, tape.noise[i])
            delay = draw_delay(world, context, choice.arm, reward, tape.delay[i])
            decision = state.now[0].next - 1
            enter(book, decision, round_, context, choice.arm, reward, delay)
            if rules.race.censoring == INSTANT:
                tell_delay(state, rules, decision, delay)
        check_in(book, state, round_)
    return tape.context.size
