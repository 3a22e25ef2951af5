"""The logbook of a run: its decisions in order, their answers by the round in which they are due, and what they earned.

Every player keeps it by the kernels below, for policies of every kind.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats, Ints, Record
from doral.compiled import Entry, Program, kernel, position
from doral.errors import InvalidValue
from doral.problem import Problem
from doral.simulation.results.outcome import (
    ARMS_IN_PLAY,
    BY_END,
    COURSE_COLUMNS,
    CUTOFF,
    METRICS,
    WITHIN_CUTOFF,
    WITHIN_DEADLINE,
    ArrivalLog,
    DecisionLog,
    checkpoints,
)
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import (
    ALWAYS,
    BY_ROW,
    Tape,
    World,
    class_of_arrival,
    cost_in,
    draw_answer,
    example,
    is_taken_up,
    phase_of,
    row_of,
)

NO_DECISION, NO_CONTROL = -1, -1
MAX_ROUNDS = 2**31 - 2  # what a round and the decision made in it can be numbered with

NO_TIMES: Floats = np.zeros(0)
NO_CLASSES: Ints = np.zeros(0, dtype=np.int64)

# One decision: 32 bytes, so that two share a line of the cache and none lies across two.
ENTRY = np.dtype(
    [
        ("reward", np.float64),
        ("delay", np.float64),  # rounds, or units of the clock; infinite for never
        ("round", np.int32),
        ("context", np.int32),  # or the number of the person
        ("arm", np.int32),
        ("next_due", np.int32),  # decisions due in the same round are a ring: the one after the last is the first
    ],
    align=True,
)
# What is asked of the answers of a context.
TERMS = np.dtype([("weight", np.float64), ("deadline", np.float64)], align=True)
# One arrival, for those who keep them.
ARRIVAL = np.dtype([("probability", np.float64), ("context", np.int32), ("arm", np.int32)], align=True)
# `control` is the arm that those get who are skipped, NO_CONTROL where there is none.
COUNTS = np.dtype(
    [("decisions", np.int64), ("passed", np.int64), ("expected", np.float64), ("control", np.int64)], align=True
)


class Bills(NamedTuple):
    """What the decisions of a run cost; empty where each costs its list price."""

    share: Floats  # (T,) of its list price, that is paid, by decision
    last_lapse: NDArray[np.int32]  # (T + 1,) 1 + the last decision that lapses in a round; 0: none does
    next_lapse: NDArray[np.int32]  # (T,) those that lapse in the same round are a ring
    spent: Floats  # (1,) by all decisions, as they turn out


class Logbook(NamedTuple):
    """A run so far."""

    counts: Record  # (1,) of COUNTS: decisions made, checkpoints passed, what the choices were expected to be worth
    entries: Record  # (T,) of ENTRY, by decision; written as decisions are made
    last_due: NDArray[np.int32]  # (T + 1,) 1 + the last decision whose answer is due in a round; 0: none is
    terms: Record  # (J,) of TERMS, or (N,) where people arrive
    totals: Floats  # (metrics,) reward so far
    checkpoints: Ints  # (C,) rounds at which totals are copied into `curve`
    curve: Floats  # (C, metrics)
    course: Floats  # (C, COURSE_COLUMNS)
    arrivals: Record  # (T,) of ARRIVAL, by round; empty where they are not kept
    bills: Bills
    times: Floats  # (T,) what the clock shows in each round; empty: the number of the round


def new_logbook(
    scenario: Scenario, times: Floats = NO_TIMES, classes: Ints = NO_CLASSES, *, keep_arrivals: bool = False
) -> Logbook:
    """An empty one; `times` are those of the arrivals, or none where the clock counts rounds.

    Where people arrive, `classes` are the contexts of all who may.
    """
    horizon = times.size or scenario.problem.horizon
    if horizon > MAX_ROUNDS:
        raise InvalidValue("horizon", horizon, f"must be at most {MAX_ROUNDS:,} to be simulated")
    rounds = checkpoints(horizon) if times.size else scenario.once(_checkpoints).copy()  # results hand it out
    control = scenario.problem.control
    kept = horizon if keep_arrivals else 0
    return _empty(
        horizon,
        scenario.once(_terms)[classes] if classes.size else scenario.once(_terms),
        rounds,
        NO_CONTROL if control is None else control,
        times,
        n_arrivals=kept,
        bills_are_due=scenario.paid != "always",
    )


def example_logbook() -> Logbook:
    """One that stands for all."""
    return _empty(1, np.zeros(1, dtype=TERMS), np.zeros(1, dtype=np.int64), NO_CONTROL, NO_TIMES)


def _empty(
    horizon: int,
    terms: Record,
    rounds: Ints,
    control: int,
    times: Floats,
    *,
    n_arrivals: int = 0,
    bills_are_due: bool = False,
) -> Logbook:
    return Logbook(
        counts=np.array([(0, 0, 0.0, control)], dtype=COUNTS),
        entries=np.empty(horizon, dtype=ENTRY),
        last_due=np.zeros(horizon + 1, dtype=np.int32),
        terms=terms,
        totals=np.zeros(len(METRICS)),
        checkpoints=rounds,
        curve=np.zeros((rounds.size, len(METRICS))),
        course=np.zeros((rounds.size, len(COURSE_COLUMNS))),
        arrivals=np.zeros(n_arrivals, dtype=ARRIVAL),
        bills=_new_bills(horizon, are_due=bills_are_due),
        times=times,
    )


def _new_bills(horizon: int, *, are_due: bool) -> Bills:
    n = horizon if are_due else 0
    return Bills(
        share=np.zeros(n),
        last_lapse=np.zeros(n + 1, dtype=np.int32),
        next_lapse=np.zeros(n, dtype=np.int32),
        spent=np.zeros(1),
    )


def _checkpoints(scenario: Scenario) -> Ints:
    return checkpoints(scenario.problem.horizon)


def _terms(scenario: Scenario) -> Record:
    terms = np.zeros(scenario.problem.n_contexts, dtype=TERMS)
    terms["weight"], terms["deadline"] = scenario.problem.weights, scenario.problem.deadlines
    return terms


def n_served(book: Logbook) -> int:
    """Decisions for an arm: those who are skipped are none, though they may be answered."""
    n_decisions, control = int(book.counts["decisions"][0]), int(book.counts["control"][0])
    if control == NO_CONTROL:
        return n_decisions
    return n_decisions - int((book.entries["arm"][:n_decisions] == control).sum())


def decision_log(book: Logbook) -> DecisionLog:
    """Every decision so far, for those who keep them."""
    entries = book.entries[: book.counts["decisions"][0]]
    return DecisionLog(
        round=entries["round"].astype(np.int64),
        context=entries["context"].astype(np.int64),
        arm=entries["arm"].astype(np.int64),
        reward=entries["reward"].copy(),
        delay=entries["delay"].copy(),
        time=_clocks(book, entries),
        paid=book.bills.share[: entries.size].copy(),
    )


def _clocks(book: Logbook, entries: Record) -> Floats:
    """When these decisions were made."""
    rounds = entries["round"]
    return book.times[rounds - 1] if book.times.size else rounds.astype(np.float64)


def rewards_counted(book: Logbook, problem: Problem, cutoff: float) -> tuple[float, ...]:
    """What a run earned, by metric: what has come by the last arrival, and what is still to come where it counts."""
    totals: list[float] = book.totals.tolist()
    if problem.counted == "within_deadline":
        coming = _still_to_come(book, max(float(problem.deadlines.max()), cutoff))
        terms, delay = book.terms[coming["context"]], coming["delay"]
        worth = coming["reward"] * terms["weight"]
        for metric, limit in ((WITHIN_DEADLINE, terms["deadline"]), (WITHIN_CUTOFF, cutoff)):
            totals[metric] = math.fsum([totals[metric], *worth[delay <= limit].tolist()])
    return tuple(totals)


def _still_to_come(book: Logbook, longest_limit: float) -> Record:
    """Decisions whose answers come after the last arrival: only the last few can be young enough to count.

    Those who were skipped are none: what they bring is what rewards count from.
    """
    entries, horizon = book.entries[: book.counts["decisions"][0]], book.last_due.size - 1
    last = float(book.times[-1]) if book.times.size else horizon
    clock = (lambda round_: book.times[round_ - 1]) if book.times.size else None
    recent = entries[bisect_left(entries["round"], last - longest_limit, key=clock) :]
    is_served = recent["arm"] != book.counts["control"][0]
    return recent[(_clocks(book, recent) + recent["delay"] > last) & np.isfinite(recent["delay"]) & is_served]


def arrival_log(book: Logbook, problem: Problem) -> ArrivalLog | None:
    """Return all arrivals, where they are kept."""
    if book.arrivals.size == 0:
        return None
    return ArrivalLog(
        context=book.arrivals["context"].astype(np.int64),
        arm=book.arrivals["arm"].astype(np.int64),
        probability=book.arrivals["probability"].copy(),
        time=book.times.copy() if book.times.size else np.arange(1.0, book.arrivals.size + 1.0),
        costs=problem.costs_by_context.copy(),
        contexts=problem.context_names,
        arms=problem.arm_names,
    )


@kernel
def sign_in(book: Logbook, round_: int, context: int, arm: int, probability: float) -> None:
    """Write an arrival down, with what was done (below 0: nothing) and the probability of that."""
    arrival = book.arrivals[round_ - 1]
    arrival.context, arrival.arm, arrival.probability = context, arm, probability


def spent(book: Logbook, scenario: Scenario, budget_left: float) -> float:
    """What is paid for all decisions: where that is not their list price, as they turn out, whenever that is known."""
    if scenario.paid == "always":
        return min(scenario.problem.budget, scenario.problem.budget - budget_left)
    return float(book.bills.spent[0])


@kernel
def enter(book: Logbook, world: World, tape: Tape, i: int, round_: int, context: int, arm: int) -> int:
    """Write a decision down, with the answer that the tape has for it at index `i`; returns its number."""
    reward, delay = draw_answer(world, tape, i, round_, context, arm)
    return enter_drawn(book, world, tape, i, round_, context, arm, reward, delay)


@kernel
def enter_drawn(
    book: Logbook, world: World, tape: Tape, i: int, round_: int, context: int, arm: int, reward: float, delay: float
) -> int:
    """The same with an answer that was drawn before.

    It is due at the end of the ring of its round, if it comes before the horizon. Rewards count from what doing
    nothing is worth: that is subtracted here, for every served arrival.
    """
    decision = position(book.counts[0].decisions)
    book.counts[0].decisions = decision + 1
    book.counts[0].expected += world.counted[phase_of(world, round_), context, arm]
    entry = book.entries[decision]
    entry.reward, entry.delay = reward, delay
    entry.round, entry.context, entry.arm = round_, context, arm
    if world.nothing.shape[1] > 0 and arm != book.counts[0].control:
        for metric in range(book.totals.size):
            book.totals[metric] -= world.nothing[phase_of(world, round_), context]
    due = round_of(book, round_, delay)
    if due < book.last_due.size:
        day = position(int(due))
        entry.next_due = decision
        last = book.last_due[day]
        before = position(last - 1 if last > 0 else decision)  # no branch: whether there is one is hard to guess
        entry.next_due = book.entries[before].next_due
        book.entries[before].next_due = decision
        book.last_due[day] = decision + 1
    if world.payments.kind != ALWAYS:
        _bill(book, world, tape, i, decision)
    return decision


@kernel
def _bill(book: Logbook, world: World, tape: Tape, i: int, decision: int) -> None:
    """Which share of the list price will be paid for the decision, and when that is known."""
    entry, payments = book.entries[decision], world.payments
    context, arm = position(entry.context), position(entry.arm)
    deadline = book.terms[context].deadline
    uniform = tape.payment[i] if tape.payment.size > 0 else 0.0
    is_heard = entry.delay <= deadline and (entry.reward != 0.0 or not world.silent)
    share = 0.0
    if is_heard and payments.kind == BY_ROW:
        share = payments.shares[row_of(world, context, arm, tape.noise[i])]
    elif is_heard and is_taken_up(payments, context, arm, entry.reward, uniform):
        share = 1.0
    cost = cost_in(payments, class_of_arrival(world, context), arm)
    _note_bill(book.bills, decision, _lapse_of(book, entry.round, deadline), is_heard, share, cost)


@kernel
def _note_bill(bills: Bills, decision: int, lapse: float, is_heard: bool, share: float, cost: float) -> None:
    """Write down what becomes of a decision: its answer is heard in time, or it lapses in a round."""
    bills.share[decision] = share
    if share > 0.0:
        bills.spent[0] += cost * share
    if not is_heard and lapse < bills.last_lapse.size:
        day = position(int(lapse))
        last = bills.last_lapse[day] - 1
        if last < 0:
            bills.next_lapse[decision] = decision
        else:
            bills.next_lapse[decision] = bills.next_lapse[last]
            bills.next_lapse[last] = decision
        bills.last_lapse[day] = decision + 1


@kernel
def _lapse_of(book: Logbook, round_: int, deadline: float) -> float:
    """The first round whose clock is beyond the deadline of a decision that was made in this one."""
    if book.times.size == 0:
        return float(round_) + float(int(min(deadline, 2.0**31))) + 1.0
    limit = book.times[position(round_ - 1)] + deadline
    low, high = round_, book.times.size  # positions, as in `round_of`
    while low < high:
        middle = (low + high) >> 1
        if book.times[position(middle)] > limit:
            high = middle
        else:
            low = middle + 1
    return float(low + 1)


@kernel
def first_lapsed(book: Logbook, round_: int) -> int:
    """The oldest decision that lapses in this round, or `NO_DECISION`."""
    last = book.bills.last_lapse[round_] if book.bills.last_lapse.size > 1 else 0
    return NO_DECISION if last == 0 else book.bills.next_lapse[last - 1]


@kernel
def next_lapsed(book: Logbook, round_: int, decision: int) -> int:
    """The decision after this one that lapses in the same round, or `NO_DECISION`."""
    return NO_DECISION if book.bills.last_lapse[round_] == decision + 1 else book.bills.next_lapse[decision]


@kernel
def clock_of(book: Logbook, round_: int) -> float:
    """Return the clock of an arrival."""
    return float(round_) if book.times.size == 0 else book.times[position(round_ - 1)]


@kernel
def due_at(book: Logbook, round_: int, decision: int) -> float:
    """When the answer came that is heard in this round."""
    if book.times.size == 0:
        return float(round_)
    entry = book.entries[decision]
    return book.times[position(entry.round - 1)] + entry.delay


@kernel
def age_of(book: Logbook, round_: int, decision: int) -> float:
    """How old the decision was when its answer came that is heard in this round."""
    entry = book.entries[decision]
    return entry.delay if book.times.size > 0 else float(round_ - entry.round)


@kernel
def round_of(book: Logbook, round_: int, delay: float) -> float:
    """The round in which an answer to this one is heard: that of the first who arrives when it is there."""
    if book.times.size == 0:
        return round_ + delay
    due = book.times[position(round_ - 1)] + delay
    low, high = round_, book.times.size  # positions: the next to arrive, and beyond the last
    while low < high:
        middle = (low + high) >> 1
        if book.times[position(middle)] >= due:
            high = middle
        else:
            low = middle + 1
    return float(low + 1)


@kernel
def first_due(book: Logbook, round_: int) -> int:
    """The oldest decision whose answer is due in this round, or `NO_DECISION`."""
    last = book.last_due[round_]
    return NO_DECISION if last == 0 else book.entries[last - 1].next_due


@kernel
def next_due(book: Logbook, round_: int, decision: int) -> int:
    """The decision after this one whose answer is due in the same round, or `NO_DECISION`."""
    return NO_DECISION if book.last_due[round_] == decision + 1 else book.entries[decision].next_due


@kernel
def count(book: Logbook, round_: int, decision: int, cutoff: float) -> None:
    """The answer to a decision has come: its reward counts from now on, unless it tells what doing nothing brings."""
    entry = book.entries[decision]
    if entry.arm == book.counts[0].control:
        return
    terms = book.terms[entry.context]
    age = age_of(book, round_, decision)
    worth = entry.reward * terms.weight
    book.totals[BY_END] += worth
    book.totals[WITHIN_DEADLINE] += worth if age <= terms.deadline else 0.0  # no branch: it is hard to guess
    book.totals[WITHIN_CUTOFF] += worth if age <= cutoff else 0.0


@kernel
def is_checkpoint(book: Logbook, round_: int) -> bool:
    """Whether `check_in` is due after this round."""
    passed = book.counts[0].passed
    return passed < book.checkpoints.size and book.checkpoints[passed] == round_


@kernel
def check_in(book: Logbook, cutoff: float, arms_in_play: float) -> None:
    """At a checkpoint, remember the totals, the cut-off, and how many arms a context has to choose from."""
    passed = position(book.counts[0].passed)
    for metric in range(book.totals.size):
        book.curve[passed, metric] = book.totals[metric]
    book.course[passed, CUTOFF] = cutoff
    book.course[passed, ARMS_IN_PLAY] = arms_in_play
    book.counts[0].passed = passed + 1


def _entries() -> dict[str, Entry]:
    world, tape = example()
    book = example_logbook()
    return {
        "enter": Entry(enter, (book, world, tape, int, int, int, int), int),
        "first_due": Entry(first_due, (book, int), int),
        "next_due": Entry(next_due, (book, int, int), int),
        "first_lapsed": Entry(first_lapsed, (book, int), int),
        "next_lapsed": Entry(next_lapsed, (book, int, int), int),
        "count": Entry(count, (book, int, int, float)),
        "check_in": Entry(check_in, (book, float, float)),
    }


LOGBOOK = Program(name="logbook", entries=_entries)
"""What a player in Python calls; the compiled loop has these kernels inside."""
