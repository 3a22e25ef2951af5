"""One run, arrival by arrival, in compiled code: what an action does, what has returned since, and what is observed.

World, tape and logbook are those of the simulator, and so are the kernels that enter decisions, count answers, and keep
the purse. Here are only the turns: somebody arrives, an action is taken, the next one arrives.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Bits, Floats, Ints, Record
from doral._kernel import Composition, Entry, Program, kernel, position, shared
from doral.engine.pieces.defaults import credit
from doral.engine.purse import add_budget, can_pay, list_cost, rest_of
from doral.simulation.results.outcome import WITHIN_DEADLINE
from doral.simulation.world.logbook import (
    NO_CONTROL,
    NO_DECISION,
    Logbook,
    age_of,
    clock_of,
    count,
    enter,
    example_logbook,
    first_due,
    first_lapsed,
    next_due,
    next_lapsed,
    round_of,
)
from doral.simulation.world.tape import ALWAYS, Tape, World, class_of_arrival, example, phase_of, record

CHUNK_ROUNDS = 256  # of tape in each run: many runs at once shall stay in the cache
FEW_PLAYS = 10.0  # this many are half of "many", where a number of plays is shown
RETURNED, AT_DECISION = 0, 1
PLAIN, REFUSED, ENDED = 0, 1, 2  # what a step says; the last two may come together

NOW = np.dtype(
    [
        ("budget", np.float64),
        ("budget_left", np.float64),
        ("budget_rest", np.float64),
        ("budget_dust", np.float64),
        ("longest", np.float64),  # deadline of all contexts
        ("until", np.float64),  # infinite where rounds are counted
        ("dearest", np.float64),  # cost
        ("usual", np.float64),  # cost: the mean of all that are above 0; 0 where none is
        ("reward", np.float64),  # of the last step
        ("seed", np.uint64),
        ("run", np.uint64),
        ("round", np.int64),  # of the one who has arrived, from 1
        ("rounds", np.int64),  # in all
        ("expected", np.int64),  # rounds, as far as anybody knows before
        ("index", np.int64),  # of the round in the tape
        ("settled", np.int64),  # decisions that are older than the longest deadline
        ("credited", np.int64),  # RETURNED, AT_DECISION
        ("counts_late", np.int64),  # 1: what comes after the last arrival counts, too
    ],
    align=True,
)
# What has become of the decisions for an arm, in one context or in all.
CELL = np.dtype(
    [
        ("plays", np.float64),
        ("heard", np.float64),  # answers
        ("reward", np.float64),  # of these, in all
        ("delay", np.float64),  # of these, in all
        ("settled", np.float64),  # plays that are older than the longest deadline
        ("worth", np.float64),  # of these, by their deadline
    ],
    align=True,
)


class Run(NamedTuple):
    """A run so far, as far as a policy may know; the purse is kept as that of the engine's states."""

    now: Record  # (1,) of NOW
    list_costs: Floats  # (R, A), as in the engine's states
    cost_rest: Floats  # (R, A)
    cells: Record  # (J, A) of CELL
    arms: Record  # (A,) of CELL
    came: Floats  # (J,) arrivals
    best: Floats  # (J,) the highest worth of a decision among the arms
    starts: Ints  # (parts of an observation,) where each begins
    mask: Bits  # (A + 1,) what can be had; the last one is to skip
    seen: NDArray[np.float32]  # (size,) the observation


class PlayedRun(Run):
    """What the purse asks of a composition: nothing that is reserved may be spent."""

    __slots__ = ()
    composition = Composition(name="gym", hooks={"credit": (credit,)})


class Whole(NamedTuple):
    """All of a run in one block: a call with one pointer takes half as long as one with four."""

    run: Run
    world: World
    tape: Tape
    book: Logbook


# Parts of an observation, in order.
(
    CONTEXT,
    PERSON,
    LEFT,
    RANK,
    CAN,
    COST,
    PLAYS,
    HEARD,
    MEAN,
    WORTH,
    ARM_PLAYS,
    ARM_HEARD,
    ARM_MEAN,
    ARM_WORTH,
    ARM_DELAY,
    SHARES,
    BEST,
) = range(17)


@kernel
def _squashed(x: float) -> float:
    """Between -1 and 1, in the order of x."""
    return x / (1.0 + abs(x))


@kernel
def _ratio(total: float, n: float) -> float:
    return total / n if n > 0.0 else 0.0


@kernel
def _settle_one(run: Run, context: int, arm: int, worth: float) -> None:
    """The worth of a decision is known for good."""
    cell, total = run.cells[context, arm], run.arms[arm]
    cell.settled += 1.0
    cell.worth += worth
    total.settled += 1.0
    total.worth += worth
    best = -math.inf
    for a in range(run.arms.size):
        other = run.cells[context, a]
        if other.settled > 0.0:
            best = max(best, other.worth / other.settled)
    run.best[context] = best


@kernel
def _hear(run: Run, world: World, book: Logbook, round_: int) -> None:
    """The answers due in this round, in the order of their decisions."""
    decision = first_due(book, round_)
    while decision != NO_DECISION:
        decision = position(decision)
        count(book, round_, decision, math.inf)
        entry = book.entries[decision]
        if entry.reward != 0.0 or not world.silent:  # where feedback is silent, nobody hears of a zero
            who, arm = position(entry.context), position(entry.arm)
            context = position(class_of_arrival(world, who))
            age, terms = age_of(book, round_, decision), book.terms[who]
            cell, total = run.cells[context, arm], run.arms[arm]
            cell.heard += 1.0
            cell.reward += entry.reward
            cell.delay += age
            total.heard += 1.0
            total.reward += entry.reward
            total.delay += age
            if run.now[0].longest == math.inf:
                _settle_one(run, context, arm, entry.reward * terms.weight)
            if world.payments.kind != ALWAYS and age <= terms.deadline:
                amount = list_cost(run, context, arm) * (1.0 - book.bills.share[decision])  # type: ignore[arg-type]
                _refund(run, context, arm, amount)
        decision = next_due(book, round_, decision)


@kernel
def _refund(run: Run, context: int, arm: int, amount: float) -> None:
    add_budget(run, amount, rest_of(run, context, arm, amount))  # type: ignore[arg-type]


@kernel
def _lapse(run: Run, world: World, book: Logbook, round_: int) -> None:
    """Decisions that were not heard of by their deadline cost nothing."""
    decision = first_lapsed(book, round_)
    while decision != NO_DECISION:
        decision = position(decision)
        arm = position(book.entries[decision].arm)
        context = position(class_of_arrival(world, position(book.entries[decision].context)))
        _refund(run, context, arm, list_cost(run, context, arm))  # type: ignore[arg-type]
        decision = next_lapsed(book, round_, decision)


@kernel
def _settle(run: Run, world: World, book: Logbook, round_: int) -> None:
    """Decisions that are older than the longest deadline: what came of them in time is what they were worth."""
    now, clock = run.now[0], clock_of(book, round_)
    while now.settled < book.counts[0].decisions:
        entry = book.entries[position(now.settled)]
        if clock - clock_of(book, entry.round) <= now.longest:
            return
        who, arm = position(entry.context), position(entry.arm)
        terms = book.terms[who]
        worth = entry.reward * terms.weight if entry.delay <= terms.deadline else 0.0
        _settle_one(run, position(class_of_arrival(world, who)), arm, worth)
        now.settled += 1


@kernel
def _write_mask(run: Run, tape: Tape, book: Logbook, context: int) -> None:
    """The arms that are there and can be paid, and to skip."""
    n_arms = run.arms.size
    for a in range(n_arms):
        is_there = tape.available.shape[1] == 0 or tape.available[position(run.now[0].index), a] != 0
        is_for_all = a != book.counts[0].control
        run.mask[a] = is_there and is_for_all and can_pay(run, context, a)  # type: ignore[arg-type]
    run.mask[n_arms] = 1


@kernel
def _write_left(run: Run, book: Logbook) -> None:
    """What is left of the budget, of the time, and how many of those to come it can serve."""
    now, start = run.now[0], position(run.starts[LEFT])
    clock = clock_of(book, min(now.round, now.rounds))
    time_left = max(0.0, 1.0 - clock / now.until) if now.until < math.inf else 1.0 - (now.round - 1.0) / now.rounds
    # Where the end is a date, more come than is thought, or fewer: as many as at the pace so far.
    pace = now.expected if now.until == math.inf else now.round / max(clock, now.until / now.expected) * now.until
    run.seen[start] = min(1.0, max(0.0, now.budget_left / now.budget))
    run.seen[start + 1] = time_left
    needed = now.usual * max(1.0, pace * time_left)
    run.seen[start + 2] = _squashed(max(0.0, now.budget_left) / needed) if needed > 0.0 else 1.0


@kernel
def _write_rank(run: Run, context: int) -> None:
    """The share of those who came so far whose contexts seem to be worth more than this one, and at least as much."""
    start, n_came = position(run.starts[RANK]), 0.0
    above, level = 0.0, 0.0
    for j in range(run.came.size):
        n_came += run.came[j]
        above += run.came[j] if run.best[j] > run.best[context] else 0.0
        level += run.came[j] if run.best[j] >= run.best[context] else 0.0
    run.seen[start] = _ratio(above, n_came)
    run.seen[start + 1] = _ratio(level, n_came)


@kernel
def _write_person(run: Run, world: World, who: int) -> None:
    """A number and whether it is known, for every feature."""
    start = position(run.starts[PERSON])
    n_traits = (run.starts[PERSON + 1] - start) // 2
    for i in range(n_traits):
        value = world.people[who, i]
        is_known = value == value
        run.seen[start + i] = _squashed(value) if is_known else 0.0
        run.seen[start + n_traits + i] = 1.0 if is_known else 0.0


@kernel
def _write_arms(run: Run, context: int) -> None:
    """What has come of each arm, for those in the context of the one who is here, and for all."""
    starts, seen, now = run.starts, run.seen, run.now[0]
    longest = now.longest if now.longest < math.inf else float(now.expected)
    for a in range(run.arms.size):
        cell, total = run.cells[context, a], run.arms[a]
        seen[starts[CAN] + a] = float(run.mask[a])
        seen[starts[COST] + a] = _ratio(list_cost(run, context, a), now.dearest)  # type: ignore[arg-type]
        seen[starts[PLAYS] + a] = cell.plays / (cell.plays + FEW_PLAYS)
        seen[starts[HEARD] + a] = _ratio(cell.heard, cell.plays)
        seen[starts[MEAN] + a] = _squashed(_ratio(cell.reward, cell.heard))
        seen[starts[WORTH] + a] = _squashed(_ratio(cell.worth, cell.settled))
        seen[starts[ARM_PLAYS] + a] = total.plays / (total.plays + FEW_PLAYS * run.came.size)
        seen[starts[ARM_HEARD] + a] = _ratio(total.heard, total.plays)
        seen[starts[ARM_MEAN] + a] = _squashed(_ratio(total.reward, total.heard))
        seen[starts[ARM_WORTH] + a] = _squashed(_ratio(total.worth, total.settled))
        seen[starts[ARM_DELAY] + a] = _squashed(_ratio(total.delay, total.heard) / longest)


@kernel
def _write_contexts(run: Run) -> None:
    n_came = 0.0
    for j in range(run.came.size):
        n_came += run.came[j]
    for j in range(run.came.size):
        run.seen[run.starts[SHARES] + j] = _ratio(run.came[j], n_came)
        run.seen[run.starts[BEST] + j] = _squashed(run.best[j]) if run.best[j] > -math.inf else 0.0


@shared
def arrive(whole: Whole) -> None:
    """Somebody has arrived: what has returned by now is heard, and what can be known is observed."""
    run, world, tape, book = whole.run, whole.world, whole.tape, whole.book
    now = run.now[0]
    round_ = position(now.round)
    _hear(run, world, book, round_)
    if world.payments.kind != ALWAYS:
        _lapse(run, world, book, round_)
    if now.longest < math.inf:
        _settle(run, world, book, round_)
    who = position(tape.context[position(now.index)])
    context = position(class_of_arrival(world, who))
    run.came[context] += 1.0
    _write_mask(run, tape, book, context)
    for j in range(run.came.size):
        run.seen[run.starts[CONTEXT] + j] = 1.0 if j == context else 0.0
    _write_person(run, world, who)
    _write_left(run, book)
    _write_rank(run, context)
    _write_arms(run, context)
    _write_contexts(run)


@kernel
def _close(run: Run, book: Logbook) -> None:
    """Nobody is there any more: who it was and what they could have had is blank."""
    for i in range(run.starts[LEFT]):
        run.seen[i] = 0.0
    for a in range(run.arms.size):
        run.mask[a] = 0
        run.seen[run.starts[CAN] + a] = 0.0
    run.now[0].round += 1
    _write_left(run, book)


@kernel
def _worth_of(run: Run, world: World, book: Logbook, decision: int) -> float:
    """What a decision will have brought, beyond doing nothing, as the logbook counts it."""
    entry, now = book.entries[decision], run.now[0]
    if entry.arm == book.counts[0].control:
        return 0.0
    terms, worth = book.terms[entry.context], 0.0
    comes = now.counts_late != 0 or round_of(book, entry.round, entry.delay) <= now.rounds
    if comes and entry.delay <= terms.deadline:
        worth = entry.reward * terms.weight
    if world.nothing.shape[1] > 0:
        worth -= world.nothing[phase_of(world, entry.round), entry.context]
    return worth


@shared
def act(whole: Whole, action: int) -> int:
    """Take an action for the one who is here, and let the next one arrive.

    What cannot be had is a skip, and the step says so. Answers that come after the last arrival are left to the caller.
    """
    run, world, tape, book = whole.run, whole.world, whole.tape, whole.book
    now, n_arms, said = run.now[0], run.arms.size, PLAIN
    index, round_ = position(now.index), position(now.round)
    who = position(tape.context[index])
    context = position(class_of_arrival(world, who))
    before, at_decision = book.totals[WITHIN_DEADLINE], 0.0
    arm = int(action)
    if arm >= n_arms or arm < 0:
        arm = book.counts[0].control
    elif run.mask[arm] == 0:
        arm, said = book.counts[0].control, REFUSED
    if arm != NO_CONTROL:
        arm = position(arm)
        cost = list_cost(run, context, arm)  # type: ignore[arg-type]
        add_budget(run, -cost, -rest_of(run, context, arm, cost))  # type: ignore[arg-type]
        decision = position(enter(book, world, tape, index, round_, who, arm))
        run.cells[context, arm].plays += 1.0
        run.arms[arm].plays += 1.0
        at_decision = _worth_of(run, world, book, decision)
    if round_ < now.rounds:
        now.round, now.index = round_ + 1, index + 1
        if now.index == tape.context.size:
            record(tape, world, now.seed, now.run, round_ + 1)
            now.index = 0
        arrive(whole)
    else:
        _close(run, book)
        said += ENDED
    returned = book.totals[WITHIN_DEADLINE] - before
    now.reward = returned if now.credited == RETURNED else at_decision
    return said


def example_run() -> Run:
    """One that stands for all."""
    return PlayedRun(
        now=np.zeros(1, dtype=NOW),
        list_costs=np.zeros((1, 1)),
        cost_rest=np.zeros((1, 1)),
        cells=np.zeros((1, 1), dtype=CELL),
        arms=np.zeros(1, dtype=CELL),
        came=np.zeros(1),
        best=np.zeros(1),
        starts=np.zeros(1, dtype=np.int64),
        mask=np.zeros(1, dtype=np.uint8),
        seen=np.zeros(1, dtype=np.float32),
    )


def _entries() -> dict[str, Entry]:
    world, tape = example()
    whole = Whole(example_run(), world, tape, example_logbook())
    return {"arrive": Entry(arrive, (whole,)), "act": Entry(act, (whole, int), int)}


STEPS = Program(name="gym", entries=_entries)
"""What environments call."""
