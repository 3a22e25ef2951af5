"""The compiled loop: one policy plays one chunk of a tape, and the logbook keeps what happened."""

from __future__ import annotations

from doral._jit import jit, jit_inner, position
from doral.policies.dropping import arms_in_play
from doral.policies.engine import decide, is_full, observe, tell_delay
from doral.policies.state import Rules, State
from doral.racing import INSTANT
from doral.simulation.logbook import NO_DECISION, Logbook, check_in, count, enter, first_due, is_checkpoint, next_due
from doral.simulation.tape import Tape, World


@jit_inner
def _must_pause(state: State) -> bool:
    """Whether there is rare work before the next round, which is left to whoever drives the loop."""
    return is_full(state)


@jit_inner
def _hear(book: Logbook, state: State, rules: Rules, world: World, round_: int) -> None:
    """The answers due in this round, in the order of their decisions."""
    decision = first_due(book, round_)
    while decision != NO_DECISION:
        decision = position(decision)
        count(book, round_, decision, state.now[0].cutoff)
        reward = book.entries[decision].reward
        if reward != 0.0 or not world.silent:  # where feedback is silent, nobody hears of a zero
            observe(state, rules, decision, reward, float(round_))
        decision = next_due(book, round_, decision)


@jit
def play(state: State, rules: Rules, world: World, tape: Tape, book: Logbook, first_round: int, start: int) -> int:
    """Play the chunk from index `start` on; returns where it stopped: at its end, or earlier for the driver to help."""
    for i in range(start, tape.context.size):
        if _must_pause(state):
            return i
        round_ = first_round + i
        _hear(book, state, rules, world, round_)
        context = position(tape.context[i])
        choice = decide(state, rules, context, tape.available[i], float(round_))
        if choice.arm >= 0:
            decision = enter(book, world, tape, i, round_, context, choice.arm)
            if rules.race.censoring == INSTANT:
                tell_delay(state, rules, decision, book.entries[decision].delay)
        if is_checkpoint(book, round_):
            check_in(book, state.now[0].cutoff, arms_in_play(state))
    return tape.context.size
