"""Budget leases on kernel level: the loop of the simulator, cut where workers meet. The policy is the engine's own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Ints
from doral.compiled import Entry, Program, kernel, position, shared
from doral.engine.budget import list_cost
from doral.engine.engine import ASK, state_layout
from doral.engine.events import action_of, choose, commit, is_full, prepare, welcome
from doral.engine.state import State
from doral.simulation.world.logbook import Logbook, clock_of, enter, example_logbook
from doral.simulation.world.loop import _hear, _lapse
from doral.simulation.world.tape import ALWAYS, Tape, World, class_of_arrival, example

HAIR = 1e-9  # of what is left: sums of costs are rounded here, and are exact in a campaign


class Tour(NamedTuple):
    """What all workers together have done, and what they hold."""

    arms: Ints  # (T,) what was decided for each arrival, below 0 for a skip; ASK: nothing yet
    owner: Ints  # (T,) the worker that it came to
    held: Floats  # (W,) what is left of the lease of each, as the log tells
    mine: Ints  # (n,) the arrivals of the worker that decides
    lease: Floats  # (2,) what it may spend before it has to ask again, and the dearest that one decision can be
    affordable: Bits  # (A,) what an ordinary decision may take; empty: everything
    heard: Ints  # (1,) the last round whose answers were heard


@kernel
def _arrive(state: State, world: World, tape: Tape, book: Logbook, round_: int) -> int:
    """Somebody is there; the context, or the row of values of the person."""
    who = position(tape.context[position(round_ - 1)])
    traits = world.people[min(who, world.people.shape[0] - 1)]
    context, clock = position(class_of_arrival(world, who)), clock_of(book, round_)
    return welcome(state, context, traits, math.nan, math.nan, clock)


@shared
def listen(state: State, world: World, tape: Tape, book: Logbook, tour: Tour, start: int, stop: int) -> int:
    """The answers that are due when the arrival `start` comes, once; `stop`, or `start` if the state is full."""
    round_ = start + 1
    if is_full(state):
        return start
    if tour.heard[0] < round_ <= tape.context.size:
        tour.heard[0] = round_
        _hear(book, state, world, round_)
        if world.payments.kind != ALWAYS:
            _lapse(book, state, world, round_)
    return stop


@shared
def follow(state: State, world: World, tape: Tape, book: Logbook, tour: Tour, start: int, stop: int) -> int:
    """The log from one arrival up to another: answers as they come, decisions as they were made.

    One that nobody has made is made here, by a state that knows everything. Returns where it stopped.
    """
    for i in range(start, stop):
        if listen(state, world, tape, book, tour, i, i + 1) == i:
            return i
        round_ = i + 1
        context = position(_arrive(state, world, tape, book, round_))
        asked = tour.arms[i] == ASK
        choice = choose(state, context, tour.affordable if asked else tape.available[i])
        if asked:
            tour.arms[i] = action_of(state, choice)
        arm = tour.arms[i]
        if arm >= 0:
            arm = position(arm)
            cost = list_cost(state, context, arm)
            commit(state, context, arm, cost, clock_of(book, round_))
            if not asked:
                tour.held[position(tour.owner[i])] -= cost
            enter(book, world, tape, i, round_, tape.context[i], arm)
    return stop


@shared
def lead(state: State, world: World, tape: Tape, book: Logbook, tour: Tour, start: int, stop: int) -> int:
    """One worker decides for arrivals of its own, from one up to another, and hears of nobody else meanwhile.

    Returns where it stopped: also where its lease would not pay for whatever comes next.
    """
    for k in range(start, stop):
        if is_full(state) or tour.lease[0] < tour.lease[1] * (1.0 - HAIR):
            return k
        i = position(tour.mine[k])
        context = position(_arrive(state, world, tape, book, i + 1))
        choice = choose(state, context, tape.available[i])
        arm = action_of(state, choice)
        tour.arms[i] = arm
        if arm >= 0:
            arm = position(arm)
            cost = list_cost(state, context, arm)
            commit(state, context, arm, cost, clock_of(book, i + 1))
            tour.lease[0] -= cost
    return stop


def example_tour() -> Tour:
    """One that stands for all."""
    whole = np.zeros(1, dtype=np.int64)
    return Tour(whole, whole, np.zeros(1), whole, np.zeros(2), np.zeros(0, dtype=np.uint8), whole)


def _entries() -> dict[str, Entry]:
    world, tape = example()
    state = state_layout()
    taken = (state, world, tape, example_logbook(), example_tour(), int, int)
    return {
        "prepare": Entry(prepare, (state,)),
        "listen": Entry(listen, taken, int),
        "follow": Entry(follow, taken, int),
        "lead": Entry(lead, taken, int),
    }


LEASES = Program(name="leases", entries=_entries, label="the study of leases")
