"""The compiled loop: one policy plays one chunk of a tape, and the logbook keeps what happened."""

from __future__ import annotations

import math

from doral.compiled import Entry, Program, kernel, position, shared
from doral.engine.budget import list_cost, refund, settle_payment
from doral.engine.engine import COMPILE_SECONDS, state_layout
from doral.engine.events import action_of, choose, commit, is_full, observe, pass_time, prepare, welcome
from doral.engine.race import arms_in_play, learn_instant_delay
from doral.engine.state import State
from doral.simulation.world.logbook import (
    NO_DECISION,
    Logbook,
    age_of,
    check_in,
    clock_of,
    count,
    due_at,
    enter_drawn,
    example_logbook,
    first_due,
    first_lapsed,
    is_checkpoint,
    next_due,
    next_lapsed,
    sign_in,
)
from doral.simulation.world.tape import ALWAYS, Tape, World, class_of_arrival, cost_in, draw_answer, example


@kernel
def _hear(book: Logbook, state: State, world: World, round_: int) -> None:
    """The answers due in this round, in the order of their decisions."""
    decision = first_due(book, round_)
    while decision != NO_DECISION:
        decision = position(decision)
        count(book, round_, decision, state.now[0].cutoff)
        reward = book.entries[decision].reward
        if reward != 0.0 or not world.silent:  # where feedback is silent, a zero is not observed
            observe(state, decision, reward, due_at(book, round_, decision))
            if world.payments.kind != ALWAYS:
                _pay(book, state, world, round_, decision)
        decision = next_due(book, round_, decision)


@kernel
def _pay(book: Logbook, state: State, world: World, round_: int, decision: int) -> None:
    """What the decision costs is known with its answer; after its deadline it has lapsed, and cost nothing."""
    entry = book.entries[decision]
    who, arm, age = position(entry.context), position(entry.arm), age_of(book, round_, decision)
    if age <= book.terms[who].deadline:
        context = position(class_of_arrival(world, who))
        share = book.bills.share[decision]
        if share < 1.0:
            refund(state, context, arm, cost_in(world.payments, context, arm) * (1.0 - share))
        if state.rules.has_learned_costs:
            settle_payment(state, decision, context, arm, age, share)


@kernel
def _lapse(book: Logbook, state: State, world: World, round_: int) -> None:
    """Decisions that were not heard of by their deadline cost nothing."""
    decision = first_lapsed(book, round_)
    has_lapsed = decision != NO_DECISION
    while decision != NO_DECISION:
        decision = position(decision)
        arm = position(book.entries[decision].arm)
        context = position(class_of_arrival(world, position(book.entries[decision].context)))
        refund(state, context, arm, cost_in(world.payments, context, arm))
        decision = next_lapsed(book, round_, decision)
    if has_lapsed:
        pass_time(state, clock_of(book, round_))


@shared
def play(state: State, world: World, tape: Tape, book: Logbook, first_round: int, start: int) -> int:
    """Play the chunk from index `start` on; returns where it stopped: at its end, or earlier if the state is full."""
    for i in range(start, tape.context.size):
        if is_full(state):
            return i
        round_ = first_round + i
        _hear(book, state, world, round_)
        if world.payments.kind != ALWAYS:
            _lapse(book, state, world, round_)
        who = position(tape.context[i])
        context = position(class_of_arrival(world, who))
        traits = world.people[min(who, world.people.shape[0] - 1)]
        row = welcome(state, context, traits, math.nan, math.nan, clock_of(book, round_))
        choice = choose(state, row, tape.available[i])
        if book.arrivals.size > 0:
            sign_in(book, round_, who, choice.arm, choice.probability)
        arm = action_of(state, choice)
        if arm >= 0:
            arm = position(arm)
            reward, delay = draw_answer(world, tape, i, round_, who, arm)  # now: what follows does not wait for it
            commit(state, row, arm, list_cost(state, row, arm), state.now[0].clock)
            decision = enter_drawn(book, world, tape, i, round_, who, arm, reward, delay)
            if choice.arm >= 0 and state.rules.has_race:
                learn_instant_delay(state, choice.arm, book.entries[decision].delay)
        if is_checkpoint(book, round_):
            check_in(book, state.now[0].cutoff, arms_in_play(state))
    return tape.context.size


def _entries() -> dict[str, Entry]:
    state = state_layout()
    world, tape = example()
    return {
        "prepare": Entry(prepare, (state,)),
        "play": Entry(play, (state, world, tape, example_logbook(), int, int), int),
    }


PROGRAM = Program(name="simulation", entries=_entries, seconds=COMPILE_SECONDS, label="the simulator")
