"""A policy at work: its state at a fixed address, and the compiled program that all policies share.

`PROGRAM` holds all that a live campaign calls: one call runs events of one kind, one or many. The engine is
deterministic: the same calls in the same order lead to the same state, to the bit. A call that changes the state may
put another one in its place, so only the `Engine` keeps it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Ints, Record, leaves, replace_leaves
from doral.compiled import Block, Entry, Program, TreeLayout, layout_of, position, rare, shared
from doral.compiled.interpret import Interpreter
from doral.engine import events
from doral.engine.budget import BACK, added, decimal_rest, list_cost
from doral.engine.decide import PLAYED_RACING
from doral.engine.events import (
    AFTER_CUTOFF,
    LEARNED,
    action_of,
    choose,
    commit,
    hear,
    is_full,
    learn,
    learn_late,
    recall,
    welcome,
)
from doral.engine.options import PolicyOptions
from doral.engine.people import recall_arrival
from doral.engine.setup import Blueprint, check_state, first_state, grown, mark_every_row_stale, widened
from doral.engine.state import RESERVED, SPENT, State, is_racing
from doral.problem import Arm, Problem

COMPILE_SECONDS = 8.0  # of one program, roughly: who waits is told

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
# An answer, and its outcome.
ANSWER = np.dtype(
    [
        ("number", np.int64),  # of the decision
        ("reward", np.float64),
        ("clock", np.float64),  # when it came
        ("recorded", np.int64),  # its outcome according to the log, or ASK
        ("is_recalled", np.int64),  # 1: it came before what the clock shows, and is recorded only now
        ("context", np.int64),  # of the decision, which may have left the ring; and so on
        ("arm", np.int64),
        ("age", np.float64),  # of the decision when it came
        ("outcome", np.int64),  # to be filled in
    ],
    align=True,
)
ASK = -2  # in the place of an arm or an outcome: not a fact of the log, but for the engine to say


class Arrivals(NamedTuple):
    """Arrivals in their order."""

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
    """Answers in their order."""

    rows: Record  # (n,) of ANSWER
    traits: Floats  # (n, features of a person): their decisions may have left the ring


def new_arrivals(n: int, n_arms: int, n_traits: int = 0) -> Arrivals:
    """Return room for n arrivals that the engine decides; `n_arms` is 0 where all arms are available."""
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


# --- the program -----------------------------------------------------------------------------------------------------


@shared
def arrive(state: State, arrivals: Arrivals, start: int) -> int:
    """Decide for arrivals from `start` on; return where it stopped: at the end, or earlier if the state is full.

    Where the log says what was decided, that is what happens; the engine only says what it would have chosen.
    """
    for i in range(start, arrivals.contexts.size):
        if is_full(state):
            return i
        context, clock = position(arrivals.contexts[i]), arrivals.clocks[i]
        row = welcome(state, context, arrivals.traits[i], arrivals.weights[i], arrivals.deadlines[i], clock)
        choice = choose(state, row, arrivals.available[i])
        arm = action_of(state, choice) if arrivals.arms[i] == ASK else arrivals.arms[i]
        if arm >= 0:
            arm = position(arm)
            cost = list_cost(state, row, arm) if arrivals.arms[i] == ASK else arrivals.costs[i]
            commit(state, row, arm, cost, arrivals.times[i])
        decided = arrivals.decided[i]
        decided.arm, decided.reason = choice.arm, choice.reason
        decided.round, decided.number = state.now[0].round, state.now[0].next - 1
        decided.probability, decided.value, decided.price = choice.probability, choice.value, choice.price
    return arrivals.contexts.size


@shared
def answer(state: State, answers: Answers, start: int) -> int:
    """Take in answers from `start` on; return where it stopped."""
    for i in range(start, answers.rows.size):
        if is_full(state):
            return i
        row = answers.rows[i]
        context, arm = position(row.context), position(row.arm)
        if row.is_recalled != 0:
            row.outcome = recall(state, row.number, context, arm, row.reward, row.age, answers.traits[i])
        else:
            row.outcome = hear(state, row.number, row.reward, row.clock)
        if row.recorded != ASK and row.outcome <= AFTER_CUTOFF and row.recorded <= AFTER_CUTOFF:
            row.outcome = row.recorded
        if row.outcome == LEARNED:
            if row.is_recalled != 0:
                learn_late(state, row.number, context, arm, row.reward)
            else:
                learn(state, row.number, row.reward)
    return answers.rows.size


@rare
def record(state: State, arrivals: Arrivals, is_arrival: bool) -> int:
    """Take in a decision that was made elsewhere, the first of these; 0 if the state is full: nothing has happened."""
    if is_full(state):
        return 0
    events.record(
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
def recall_features(state: State, number: int, context: int, answers: Answers) -> None:
    """Set the features of a decision, the first of these, before it is corrected: it may have left the ring."""
    if state.rules.has_people:
        recall_arrival(state, number, context, answers.traits[0])


@cache
def state_layout() -> TreeLayout:
    """Return the layout of states: the same for every policy and problem."""
    problem = Problem(arms=[Arm("arm")], contexts=["context"], budget=1.0, horizon=1, deadline=1.0)
    return layout_of(first_state(Blueprint(options=PolicyOptions(), problem=problem, seed=0)))


def _entries() -> dict[str, Entry]:
    state = state_layout()
    answers = Answers(np.zeros(1, dtype=ANSWER), np.zeros((1, 0)))
    return {
        "prepare": Entry(events.prepare, (state,)),
        "arrive": Entry(arrive, (state, new_arrivals(1, 1), int), int),
        "answer": Entry(answer, (state, answers, int), int),
        "pass_time": Entry(events.pass_time, (state, float)),
        "record": Entry(record, (state, new_arrivals(1, 1), bool), int),
        "recall_features": Entry(recall_features, (state, int, int, answers)),
        "cancel": Entry(events.cancel, (state, int, int, int, float, bool, float)),
        "pay": Entry(events.pay, (state, int, int, int, float, float)),
        "correct": Entry(events.correct, (state, int, int, int, float, float)),
        "recompute": Entry(events.recompute, (state,)),
    }


PROGRAM = Program(name="policy", entries=_entries, seconds=COMPILE_SECONDS, label="the policy engine")

# Until the program is compiled, small states are interpreted, and what is no long log.
MOST_CELLS, MOST_COLUMNS = 20_000, 50  # rows of values times arms: beyond, a refresh in Python takes too long
MOST_EVENTS = 200
_KEPT_ROOM = 16  # answers: for so many at once the room is used again
INTERPRETER = Interpreter(PROGRAM, f"from {__name__} import PROGRAM; PROGRAM.load()")

# --- the engine ------------------------------------------------------------------------------------------------------


class Decided(NamedTuple):
    """What the engine decided for one arrival."""

    arm: int  # below 0 for a skip
    reason: int
    round: int
    number: int  # counts decisions that were played
    probability: float
    value: float
    price: float


class Heard(NamedTuple):
    """An answer, as `ANSWER` has it but for its outcome."""

    number: int  # of the decision
    reward: float
    clock: float  # when it came
    recorded: int = ASK
    is_recalled: bool = False  # it came before what the clock shows, and is recorded only now
    context: int = 0  # of the decision, which may have left the ring; and so on
    arm: int = 0
    age: float = 0.0


class Who(NamedTuple):
    """What is known of an arrival beyond its context: where it is NaN, that of the context holds."""

    traits: Sequence[float] = ()
    weight: float = math.nan
    deadline: float = math.nan


NO_FEATURES = Who()


class Engine:
    """The engine of one campaign: its blueprint, its state, and what can be asked of it."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._n_traits = blueprint.problem.n_traits
        self._one = self._room(0)  # room for one arrival, so that a single decision makes no arrays
        self._arrival = self._one.tree
        self._elsewhere = self._room(0)  # the same for one that was decided elsewhere
        self._answers: dict[int, Block[Answers]] = {}  # the same for so many answers
        self.start(blueprint)

    def start(self, blueprint: Blueprint) -> None:
        """Start with a state that knows nothing."""
        self.blueprint = blueprint
        self._block = Block(first_state(blueprint))
        is_small = blueprint.n_rows * blueprint.problem.n_arms <= MOST_CELLS and blueprint.n_columns <= MOST_COLUMNS
        self.is_interpreted = is_small and INTERPRETER.start()
        self._program: Program | Interpreter = INTERPRETER if self.is_interpreted else PROGRAM
        self._program["prepare"](self._block)

    @property
    def is_outdated(self) -> bool:
        """Whether decisions were interpreted and the compiled program is there: the log is to be read with that."""
        return self.is_interpreted and INTERPRETER.is_over

    def wait_for_program(self) -> None:
        """Go on with the compiled program, for what takes long."""
        if self.is_interpreted:
            PROGRAM.load()
            self._program = PROGRAM
            if self.state.now["round"][0] == 0 and self.played == 0:
                self.start(self.blueprint)

    # --- events -----------------------------------------------------------------------------------------------------

    def _room(self, n_arms: int) -> Block[Arrivals]:
        return Block(new_arrivals(1, n_arms, self._n_traits))

    def decide(
        self, context: int, offered: Bits, clock: float, *, time: float | None = None, who: Who = NO_FEATURES
    ) -> Decided:
        """Decide for one arrival. `offered` is (1, arms), or (1, 0) where all arms are; `time`, if it is not what the
        clock shows, is when the decision counts as made.
        """
        if offered.shape[1] != self._arrival.available.shape[1]:
            self._one = self._room(offered.shape[1])
            self._arrival = self._one.tree
        one = self._arrival
        one.traits[0], one.weights[0], one.deadlines[0] = who
        one.contexts[0], one.clocks[0], one.times[0] = context, clock, clock if time is None else time
        one.available[0] = offered[0]
        self._arrive(self._one, 1)
        return Decided(*one.decided[0].item())

    def decide_many(
        self,
        contexts: Sequence[int],
        offered: Bits,
        clocks: Sequence[float],
        *,
        times: Sequence[float] | None = None,
        recorded: Sequence[tuple[int, float]] | None = None,
        who: Sequence[Who] | None = None,
    ) -> Iterator[Decided]:
        """Decide for arrivals in their order, in one call.

        `recorded` says what was decided for them once, an arm (below 0: a skip) and its cost: that is what happens, and
        what the engine would choose is only returned.
        """
        arms, costs = zip(*recorded, strict=True) if recorded else (None, None)
        decided = self.adopt_many(contexts, offered, clocks, times=times, arms=arms, costs=costs, who=who)
        return map(Decided._make, decided.tolist())

    def adopt_many(
        self,
        contexts: Sequence[int],
        offered: Bits,
        clocks: Sequence[float],
        *,
        times: Sequence[float] | None = None,
        arms: Sequence[int] | None = None,
        costs: Sequence[float] | None = None,
        who: Sequence[Who] | None = None,
    ) -> Record:
        """Do the same, and return one array of what was decided."""
        n = len(contexts)
        arrivals = Arrivals(
            np.array(contexts, dtype=np.int64),
            *_columns(who, n, self._n_traits),
            np.ascontiguousarray(offered),
            np.array(clocks, dtype=np.float64),
            np.array(clocks if times is None else times, dtype=np.float64),
            np.full(n, ASK, dtype=np.int64) if arms is None else np.array(arms, dtype=np.int64),
            np.zeros(n, dtype=np.float64) if costs is None else np.array(costs, dtype=np.float64),
            np.zeros(n, dtype=VERDICT),
        )
        self._arrive(Block(arrivals), n)
        return arrivals.decided

    def _arrive(self, arrivals: Block[Arrivals], n: int) -> None:
        if n > MOST_EVENTS:
            self.wait_for_program()
        arrive, done = self._program["arrive"], 0
        while (done := arrive(self._block, arrivals, done)) < n:
            self._block.tree = grown(self.state)

    def answer(self, heard: Sequence[Heard], *, who: Sequence[Who] | None = None) -> list[int]:
        """Take in answers in their order, and return their outcomes; `who` they are from, with features."""
        n = len(heard)
        block = self._answers.get(n) if who is None else None
        if block is None:
            traits, _, _ = _columns(who, n, self._n_traits)
            block = Block(Answers(np.zeros(n, dtype=ANSWER), traits))
            if who is None and n <= _KEPT_ROOM:
                self._answers[n] = block
        answers = block.tree
        answers.rows[:] = [(*one, 0) for one in heard]
        answer, done = self._program["answer"], 0
        while (done := answer(self._block, block, done)) < n:
            self._block.tree = grown(self.state)
        found: list[int] = answers.rows["outcome"].tolist()
        return found

    def record(
        self,
        *,
        context: int,
        arm: int,
        cost: float,
        time: float,
        clock: float,
        is_arrival: bool,
        who: Who = NO_FEATURES,
    ) -> int:
        """Take in a decision that was made elsewhere; return its number. The arm is below 0 for a skip."""
        one = self._elsewhere.tree
        one.contexts[0], one.arms[0], one.costs[0], one.times[0], one.clocks[0] = context, arm, cost, time, clock
        one.traits[0], one.weights[0], one.deadlines[0] = who
        while not self._program["record"](self._block, self._elsewhere, is_arrival):
            self._block.tree = grown(self.state)
        return self.played - 1

    def recall_features(self, number: int, context: int, who: Who) -> None:
        """Set the features of a decision before it is corrected or cancelled: it may have left the ring."""
        if self._n_traits:
            traits, _, _ = _columns([who], 1, self._n_traits)
            answers = Block(Answers(np.zeros(1, dtype=ANSWER), traits))
            self._program["recall_features"](self._block, number, context, answers)

    def pass_time(self, clock: float) -> None:
        """Let time pass without an arrival."""
        self._program["pass_time"](self._block, clock)

    # --- amendments -------------------------------------------------------------------------------------------------

    def correct(self, *, number: int, context: int, arm: int, previous: float, reward: float) -> None:
        """Replace a reward that came in time by another one."""
        self._program["correct"](self._block, number, context, arm, previous, reward)

    def cancel(self, *, number: int, context: int, arm: int, cost: float, reason: int, clock: float) -> None:
        """Take back a decision that has no answer; its cost is released."""
        self._program["cancel"](self._block, number, context, arm, cost, reason == PLAYED_RACING, clock)

    def pay(self, *, number: int, context: int, arm: int, age: float | None, change: float) -> None:
        """Enter the share of what was reserved that a decision costs in the end; without an age, a correction of it."""
        self._program["pay"](self._block, number, context, arm, -1.0 if age is None else age, change)

    def set_clock(self, clock: float) -> None:
        """Set a clock that was wrong: whatever seems to have been decided later was decided now at the latest."""
        state, now = self.state, self.state.now
        now["clock"] = clock
        now["opened"] = np.minimum(now["opened"], clock)
        watched = np.arange(now["first"][0], now["next"][0]) & (state.ring.size - 1)
        state.ring["time"][watched] = np.minimum(state.ring["time"][watched], clock)

    def give_back(self, context: int, amount: float) -> None:
        """Release what a decision in this context did not cost (below 0: a corrected cost adds to it)."""
        self._add_budget(amount)
        self.state.tiers[SPENT, self.state.demand.depth[context]] -= amount

    def top_up(self, amount: float) -> None:
        """Add budget. The race's share of it grows too, and so does what is reserved."""
        self.state.tiers[RESERVED] *= 1.0 + amount / self.state.now["budget"][0]
        self.state.now["budget"] += amount
        self._add_budget(amount)

    def _add_budget(self, amount: float) -> None:
        now = self.state.now[0]
        left, rest, dust = (float(now[name]) for name in ("budget_left", "budget_rest", "budget_dust"))
        now["budget_left"], now["budget_rest"], now["budget_dust"] = added(
            left, rest, dust, amount, decimal_rest(amount)
        )

    def extend(self, rounds: int) -> None:
        """Expect more arrivals; the end, as far as it was in view, is not any more."""
        self.state.now["horizon"] += rounds
        self.state.now["must_read"] = 1

    def extend_until(self, clock: float) -> None:
        """Move the date of the end; how many come until then is forecast with the next arrival."""
        self.state.now["until"] = clock
        self.state.now["must_read"] = 1

    def retire(self, arm: int) -> None:
        """Keep an arm out of stage 2, and out of the price of the budget, for good."""
        state = self.state
        if state.barrier[-1, arm] != -np.inf:
            state.barrier[:, arm] = -np.inf
            state.now["must_read"] = 1
            mark_every_row_stale(state)

    def add_arm(self, problem: Problem) -> None:
        """Go on with a problem that has one more arm, the last, about which nothing is known."""
        wider = dataclasses.replace(self.blueprint, problem=problem)
        self._block.tree = widened(self.state, first_state(self.blueprint), first_state(wider))
        self.blueprint = wider
        self._program["recompute"](self._block)

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        state: State = self._block.tree
        return state

    @property
    def coming_back(self) -> float:
        """What is expected to be released of what is reserved; 0 where that is not learned."""
        return max(0.0, float(self.state.costs.totals[BACK])) if self.state.rules.has_learned_costs else 0.0

    @property
    def keeps_reserve(self) -> bool:
        """Whether the budget holds whatever is paid."""
        return self.state.rules.certainty_of_credit == 0.0

    @property
    def is_racing(self) -> bool:
        return is_racing(self.state)

    @property
    def clock(self) -> float:
        """What it showed last."""
        return float(self.state.now["clock"][0])

    @property
    def budget_left(self) -> float:
        """As the engine counts it, in floats."""
        return float(self.state.now["budget_left"][0])

    @property
    def cutoff(self) -> float:
        return float(self.state.now["cutoff"][0])

    @property
    def horizon(self) -> int:
        return int(self.state.now["horizon"][0])

    @property
    def until(self) -> float | None:
        """What the clock shows at the end; None where that is a number of arrivals."""
        until = float(self.state.now["until"][0])
        return until if until < math.inf else None

    @property
    def played(self) -> int:
        """How many decisions were no skips."""
        return int(self.state.now["next"][0])

    @property
    def shares(self) -> list[float]:
        """Of the contexts, among arrivals."""
        found: list[float] = (self.state.demand.weight / self.state.demand.total).tolist()
        return found

    # --- snapshots --------------------------------------------------------------------------------------------------

    def arrays(self) -> list[tuple[str, Any]]:
        """Return the whole state: arrays with their names."""
        return list(leaves(self.state))

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Put these in the place of the state's arrays. Misfit, a ValueError, if they do not fit."""
        check_state(self.blueprint, arrays)
        self._block.tree = replace_leaves(self.state, arrays)


def _columns(who: Sequence[Who] | None, n: int, n_traits: int) -> tuple[Floats, Floats, Floats]:
    """Return traits, weights and deadlines of n arrivals."""
    if who is None:
        return np.full((n, n_traits), np.nan), np.full(n, np.nan), np.full(n, np.nan)
    traits = np.array([one.traits for one in who], dtype=np.float64).reshape(n, n_traits)
    return traits, np.array([one.weight for one in who]), np.array([one.deadline for one in who])
