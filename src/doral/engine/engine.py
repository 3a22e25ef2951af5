"""A policy at work: its state at a fixed address, and the compiled program of its composition.

The engine is deterministic: the same calls in the same order lead to the same state, to the bit. A call that changes
the state may put another one in its place, so nobody keeps a state but the `Engine` here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Bits, Floats, Record
from doral._kernel import Block
from doral.engine import amend
from doral.engine.blueprint import Blueprint
from doral.engine.choice import PLAYED_RACING
from doral.engine.compose import first_state, grown
from doral.engine.entries import (
    ANSWER,
    ASK,
    VERDICT,
    Answers,
    Arrivals,
    live_entries,
    new_arrivals,
    program_of,
)
from doral.engine.leaves import leaves, replace_leaves
from doral.engine.pieces.costs import BACK
from doral.engine.state import State, has, is_racing
from doral.problem import Problem


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
    """An answer, as `entries.ANSWER` has it but for what becomes of it."""

    number: int  # of the decision
    reward: float
    clock: float  # when it came
    recorded: int = ASK
    is_recalled: bool = False  # it came before what the clock shows, and is told only now
    context: int = 0  # of the decision, which may be gone by then; and so on
    arm: int = 0
    trains: bool = True
    age: float = 0.0


class Who(NamedTuple):
    """What is known of the one who arrives, beyond the context: where it is NaN, that of the context holds."""

    traits: Sequence[float] = ()
    weight: float = math.nan
    deadline: float = math.nan


NOBODY = Who()


class Engine:
    """The engine of one campaign: its blueprint, its state, and what can be asked of it."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._n_traits = blueprint.problem.n_traits
        self._one = self._room(0)  # room for one arrival, so that a single decision makes no arrays
        self.start(blueprint)

    def start(self, blueprint: Blueprint) -> None:
        """A state that knows nothing."""
        self.blueprint = blueprint
        self._block = Block(first_state(blueprint))
        self._program = program_of("live", self.state, live_entries)
        self._program["prepare"](self._block)

    # --- events -----------------------------------------------------------------------------------------------------

    def _room(self, n_arms: int) -> Block[Arrivals]:
        return Block(new_arrivals(1, n_arms, self._n_traits))

    def decide(
        self, context: int, offered: Bits, clock: float, *, time: float | None = None, who: Who = NOBODY
    ) -> Decided:
        """One arrival. `offered` is (1, arms), or (1, 0) where all arms are; `time`, if it is not what the clock shows,
        is when the decision counts as made.
        """
        if offered.shape[1] != self._one.tree.available.shape[1]:
            self._one = self._room(offered.shape[1])
        one = self._one.tree
        one.traits[0], one.weights[0], one.deadlines[0] = who
        one.contexts[0], one.clocks[0], one.times[0] = context, clock, clock if time is None else time
        one.available[0] = offered[0]
        self._arrive(self._one)
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
        """Arrivals in their order, in one call.

        `recorded` says what was decided for them once, an arm (below 0: a skip) and its cost: that is what happens, and
        what the engine would choose is only told.
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
        """The same with one array of what was decided, for those who look at some columns of it only."""
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
        self._arrive(Block(arrivals))
        return arrivals.decided

    def _arrive(self, arrivals: Block[Arrivals]) -> None:
        arrive, done, n = self._program["arrive"], 0, arrivals.tree.contexts.size
        while (done := arrive(self._block, arrivals, done)) < n:
            self._block.tree = grown(self.state)

    def answer(self, heard: Sequence[Heard], *, who: Sequence[Who] | None = None) -> list[int]:
        """Answers in their order, and what the engine made of each; `who` they are from, where people have features."""
        traits, _, _ = _columns(who, len(heard), self._n_traits)
        answers = Answers(np.array([(*one, 0) for one in heard], dtype=ANSWER), traits)
        answer, block, done, n = self._program["answer"], Block(answers), 0, len(heard)
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
        who: Who = NOBODY,
    ) -> int:
        """A decision that was made elsewhere; its number. The arm is below 0 for a skip, which has none."""
        room = self._room(0)
        one = room.tree
        one.contexts[0], one.arms[0], one.costs[0], one.times[0], one.clocks[0] = context, arm, cost, time, clock
        one.traits[0], one.weights[0], one.deadlines[0] = who
        while not self._program["record"](self._block, room, is_arrival):
            self._block.tree = grown(self.state)
        return self.played - 1

    def greet(self, number: int, context: int, who: Who) -> None:
        """Say who a decision was for, before it is corrected or cancelled: it may be gone."""
        if self._n_traits:
            traits, _, _ = _columns([who], 1, self._n_traits)
            self._program["greet"](self._block, number, context, Block(Answers(np.zeros(1, dtype=ANSWER), traits)))

    def set_clock(self, clock: float) -> None:
        """The clock was wrong, and shows this."""
        amend.set_clock(self.state, clock)

    def pass_time(self, clock: float) -> None:
        """Time has passed and nobody has arrived."""
        self._program["pass_time"](self._block, clock)

    # --- amendments -------------------------------------------------------------------------------------------------

    def correct(self, *, number: int, context: int, arm: int, reason: int, previous: float, reward: float) -> None:
        """A reward that came in time is another one. What was not learned, such as answers to a race, stays so."""
        if self.is_training(reason):
            self._program["correct"](self._block, number, context, arm, previous, reward)

    def cancel(self, *, number: int, context: int, arm: int, cost: float, reason: int, clock: float) -> None:
        """A decision that has no answer is taken back; its cost comes back with it."""
        self._program["cancel"](self._block, number, context, arm, cost, reason == PLAYED_RACING, clock)

    def is_training(self, reason: int) -> bool:
        """Whether answers to decisions that were made for this reason train the rewards."""
        return self.blueprint.options.race_trains or reason != PLAYED_RACING

    def give_back(self, context: int, amount: float) -> None:
        """A decision in this context cost less than was reserved for it (below 0: a corrected cost adds to it)."""
        amend.give_back(self.state, context, amount)

    def pay(self, *, number: int, context: int, arm: int, age: float | None, change: float) -> None:
        """Which share of what was reserved a decision costs in the end; without an age, a correction of that."""
        self._program["pay"](self._block, number, context, arm, -1.0 if age is None else age, change)

    @property
    def coming_back(self) -> float:
        """What is thought to come back of what is reserved; 0 where that is not learned."""
        return max(0.0, float(self.state.costs.totals[BACK])) if has(self.state, "costs") else 0.0

    @property
    def keeps_reserve(self) -> bool:
        """Whether the budget holds whatever is paid."""
        return not has(self.state, "costs") or self.state.costs.certainty == 0.0

    def top_up(self, amount: float) -> None:
        amend.top_up(self.state, amount)

    def extend(self, rounds: int) -> None:
        amend.extend(self.state, rounds)

    def extend_until(self, clock: float) -> None:
        """To a later date."""
        amend.extend_until(self.state, clock)

    def retire(self, arm: int) -> None:
        """Keep an arm out of stage 2, and out of the price of the budget."""
        amend.retire(self.state, arm)

    def add_arm(self, problem: Problem) -> None:
        """Go on with a problem that has one more arm, the last, about which nothing is known."""
        wider = dataclasses.replace(self.blueprint, problem=problem)
        self._block.tree = amend.widened(self.state, first_state(self.blueprint), first_state(wider))
        self.blueprint = wider
        self._program["recompute"](self._block)

    # --- looking ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        state: State = self._block.tree
        return state

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
        """The whole state: arrays with their names."""
        return list(leaves(self.state))

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Put these in the place of the state's arrays."""
        self._block.tree = replace_leaves(self.state, arrays)


def _columns(who: Sequence[Who] | None, n: int, n_traits: int) -> tuple[Floats, Floats, Floats]:
    """Traits, weights and deadlines of n people."""
    if who is None:
        return np.full((n, n_traits), np.nan), np.full(n, np.nan), np.full(n, np.nan)
    traits = np.array([one.traits for one in who], dtype=np.float64).reshape(n, n_traits)
    return traits, np.array([one.weight for one in who]), np.array([one.deadline for one in who])
