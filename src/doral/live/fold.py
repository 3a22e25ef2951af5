"""The state of a campaign: a fold over its log.

Live and replay take the same path. Live, the engine's answer is written into the event; on replay it is compared with
what the event says: a log that this engine would not have written is refused, not guessed at.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from doral._arrays import Bits
from doral.live.decision import Names
from doral.live.definition import Definition
from doral.live.errors import BrokenLog
from doral.live.events import (
    ANSWERED,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CLOSED,
    CORRECTED,
    CREATED,
    DECIDED,
    EXPIRED,
    EXTENDED,
    LATE,
    PENDING,
    RETURNED,
    SKIPPED,
    STATE_EXPIRED,
    STATE_NAMES,
    TOPPED_UP,
    Event,
)
from doral.live.ledger import Book, exact, minus, times
from doral.policies import operations
from doral.policies.build import build_rules, build_state
from doral.policies.choice import PLAYED_RACING
from doral.policies.engine import LEARNED
from doral.policies.operations import ARM, NUMBER, REASON, ROUND
from doral.policies.state import Rules, State
from doral.problem import Arm, Problem

UNHEARD = -1  # what became of an answer that the engine was not told
UNHEARD_BEFORE = '{"unheard": true}'  # data of a correction of such an answer
_ONE_WITH_ALL: Bits = np.zeros((1, 0), dtype=np.uint8)
ARM_ON, ARM_IS_PAUSED, ARM_IS_RETIRED = 0, 1, 2
ARM_STATUS_NAMES = ("active", "paused", "retired")


@dataclasses.dataclass(slots=True)
class Tally:
    """Counts that a report shows; kept while folding, so that no report has to read the whole log."""

    states: list[int] = dataclasses.field(default_factory=lambda: [0] * len(STATE_NAMES))
    reasons: dict[int, int] = dataclasses.field(default_factory=dict)
    reward: float = 0.0  # that counts
    late_reward: float = 0.0  # that came too late to count
    arm_plays: list[int] = dataclasses.field(default_factory=list)
    arm_answers: list[int] = dataclasses.field(default_factory=list)
    arm_rewards: list[float] = dataclasses.field(default_factory=list)
    clock_went_back: int = 0  # events for which the clock stood still instead
    corrections: int = 0

    def add_arm(self) -> None:
        self.arm_plays.append(0)
        self.arm_answers.append(0)
        self.arm_rewards.append(0.0)


class Fold:
    """Everything that a campaign knows, after the event `sequence`."""

    def __init__(self, definition: Definition, tag: str) -> None:
        self.definition = definition
        self.problem: Problem = definition.problem
        self.rules: Rules = build_rules(options=definition.policy, problem=self.problem, seed=definition.seed, run=0)
        self.state = self.first_state()
        self.book = Book(exact(self.problem.budget))
        self.tally = Tally()
        self.sequence = 1
        self.clock = 0.0
        self.round = 0
        # Per context: decisions up to this sequence number have expired, unless something became of them.
        self.expired_upto = [0] * self.problem.n_contexts
        self.closed = False
        self.dirty = False  # changed by events that are not committed yet
        self.arm_status: list[int] = []
        # Room for one arrival, so that a single decision makes no arrays.
        self._one = (np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((1, 4), dtype=np.int64), np.zeros((1, 3)))
        self.names = Names(tag=tag, epoch=definition.epoch, contexts=self.problem.context_names, arms=())
        for _ in self.problem.arms:
            self.arm_status.append(ARM_ON)
            self.tally.add_arm()
        self._read_arms()

    def first_state(self) -> State:
        """The engine's state before the first arrival, for the arms as they are now."""
        return build_state(options=self.definition.policy, rules=self.rules, problem=self.problem)

    def _read_arms(self) -> None:
        """Whatever depends on the list of arms and on their status."""
        self.names.arms = self.problem.arm_names
        self.exact_costs = [exact(arm.cost) for arm in self.problem.arms]
        self.dearest = max(self.exact_costs)
        self._off = [arm for arm, status in enumerate(self.arm_status) if status != ARM_ON]
        self._retired = [arm for arm, status in enumerate(self.arm_status) if status == ARM_IS_RETIRED]

    @property
    def state(self) -> State:
        """The engine's."""
        return self._calls.state

    @state.setter
    def state(self, state: State) -> None:
        self._calls = operations.Calls(state, self.rules)

    # --- time -------------------------------------------------------------------------------------------------------

    def reading(self, given: float | None, wall: float, rounds_ahead: int = 0) -> float:
        """What the campaign's clock shows: what was given, or now. A clock that goes back stands still."""
        if given is None:
            given = wall - self.definition.created_at if self.is_in_seconds else float(self.round + 1 + rounds_ahead)
        return given if given > self.clock else self.clock

    @property
    def is_in_seconds(self) -> bool:
        return self.definition.clock == "seconds"

    def age_limit(self, context: int) -> float:
        """The age after which an answer is late: the deadline, or where there is none the engine's cut-off."""
        deadline = float(self.problem.deadlines[context])
        return deadline if deadline < math.inf else float(self.state.now["cutoff"][0])

    def _advance(self, event: Event) -> None:
        if event.sequence != self.sequence + 1:
            raise BrokenLog(f"event {event.sequence} follows event {self.sequence}: the log has a gap")
        if event.clock < self.clock:
            raise BrokenLog(f"event {event.sequence}: its clock {event.clock} is before {self.clock}")
        if self.is_in_seconds and event.at - self.definition.created_at < event.clock:
            self.tally.clock_went_back += 1
        self.sequence = event.sequence
        self.clock = event.clock

    # --- decisions --------------------------------------------------------------------------------------------------

    def arrive(
        self, contexts: Sequence[int], masks: Sequence[bytes | None], clocks: Sequence[float]
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Let the engine decide; the budget is reserved. Rows of `Calls.arrive`."""
        n = len(contexts)
        if n == 1 or self.book.left < times(self.dearest, n) or (self._retired and self.is_racing):
            rows = [self.arrive_one(*one) for one in zip(contexts, masks, clocks, strict=True)]
            return [whole for whole, _ in rows], [real for _, real in rows]
        self.dirty = True
        self._keep_retired()
        whole_rows, real_rows = np.empty((n, 4), dtype=np.int64), np.empty((n, 3))
        self._calls.arrive(
            np.array(contexts, dtype=np.int64),
            self._available(masks, self._off),
            np.array(clocks, dtype=np.float64),
            whole_rows,
            real_rows,
        )
        whole: list[list[int]] = whole_rows.tolist()
        for row in whole:
            self._enter(row)
        return whole, real_rows.tolist()

    def arrive_one(self, context: int, mask: bytes | None, clock: float) -> tuple[list[int], list[float]]:
        """The same for one arrival, without making arrays."""
        self.dirty = True
        if self._retired:
            self._keep_retired()
        contexts, clocks, whole, real = self._one
        contexts[0], clocks[0] = context, clock
        off = self._off
        if self.book.left < self.dearest:
            off = off + self._beyond_budget()
        available = _ONE_WITH_ALL if mask is None and not off else self._available((mask,), off)
        self._calls.arrive(contexts, available, clocks, whole, real)
        row: list[int] = whole[0].tolist()
        self._enter(row)
        return row, real[0].tolist()

    def _keep_retired(self) -> None:
        """The end of a race lets all accepted arms into stage 2: keep those out that were retired meanwhile."""
        if self._retired and not self.is_racing:
            for arm in self._retired:
                operations.retire(self.state, arm)

    def _beyond_budget(self) -> list[int]:
        """The engine counts in floats: where their rounding would overdraw the exact ledger, the arm is not offered."""
        left = float(self.state.now["budget_left"][0])
        arms = enumerate(self.problem.arms)
        return [i for i, arm in arms if arm.cost <= left and self.exact_costs[i] > self.book.left]

    @property
    def is_racing(self) -> bool:
        return bool(self.state.now["racing"][0])

    def _available(self, masks: Sequence[bytes | None], off: list[int]) -> Bits:
        if not off and all(mask is None for mask in masks):
            return np.zeros((len(masks), 0), dtype=np.uint8)
        n_arms = self.problem.n_arms
        rows = np.ones((len(masks), n_arms), dtype=np.uint8)
        for i, mask in enumerate(masks):
            if mask is not None:
                bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8))[:n_arms]
                rows[i, : bits.size] = bits
                rows[i, bits.size :] = 0
        if off:
            rows[:, off] = 0
        return rows

    def _enter(self, row: list[int]) -> None:
        tally, arm, reason = self.tally, row[ARM], row[REASON]
        tally.reasons[reason] = tally.reasons.get(reason, 0) + 1
        if arm >= 0:
            tally.states[PENDING] += 1
            tally.arm_plays[arm] += 1
            self.book.reserve(self.exact_costs[arm])
        else:
            tally.states[SKIPPED] += 1
        self.round = row[ROUND]

    # --- replay -----------------------------------------------------------------------------------------------------

    def replay(self, events: Sequence[Event]) -> None:
        """Apply events that are in the log."""
        for kind, group in groupby(events, key=attrgetter("kind")):
            batch = list(group)
            if kind == DECIDED:
                self._replay_decided(batch)
            elif kind == ANSWERED:
                for event, outcome in zip(batch, self.answer(batch), strict=True):
                    if outcome != event.outcome:
                        raise BrokenLog(
                            f"event {event.sequence}: the engine makes {outcome} of it, not {event.outcome}"
                        )
            else:
                for event in batch:
                    if self.apply(event) != event:
                        raise BrokenLog(f"event {event.sequence}: the engine makes something else of it")
        self.dirty = False

    def _replay_decided(self, events: list[Event]) -> None:
        whole, _ = self.arrive(
            [_known(event.context) for event in events],
            [event.available for event in events],
            [event.clock for event in events],
        )
        for event, row in zip(events, whole, strict=True):
            self._advance(event)
            arm = -1 if event.arm is None else event.arm
            if row[ARM] != arm or row[ROUND] != event.round or (arm >= 0 and row[NUMBER] != event.number):
                told = f"arm {arm} in round {event.round}"
                raise BrokenLog(
                    f"event {event.sequence}: the log says {told}, this engine decides arm {row[ARM]} in round "
                    f"{row[ROUND]}; open the campaign with the version of doral that wrote it"
                )

    def decided(self, events: Sequence[Event]) -> None:
        """Take note of decided events that `arrive` has just decided."""
        for event in events:
            self._advance(event)

    # --- answers ----------------------------------------------------------------------------------------------------

    def answer(self, events: Sequence[Event]) -> list[int]:
        """Answers, in order: what the engine made of each."""
        self.dirty = True
        outcomes = self._tell(events)
        for event in events:
            self._advance(event)
            arm, reward = _known(event.arm), _known(event.reward)
            self._move(event)
            self._settle(event)
            self._count_reward(event, reward)
            self.tally.arm_answers[arm] += 1
        return outcomes

    def _tell(self, events: Sequence[Event]) -> list[int]:
        """Tell the engine, and learn what it made of each answer.

        Where feedback is silent, no news and a reward of 0 look the same: the policy must not see the difference.
        """
        is_heard = [self.problem.feedback == "explicit" or event.reward != 0.0 for event in events]
        heard = [event for event, is_one in zip(events, is_heard, strict=True) if is_one]
        found = np.empty(len(heard), dtype=np.int64)
        if heard:
            self._calls.answer(
                np.array([event.number for event in heard], dtype=np.int64),
                np.array([event.reward for event in heard], dtype=np.float64),
                np.array([event.clock for event in heard], dtype=np.float64),
                found,
            )
        following = iter(found.tolist())
        return [next(following) if is_one else UNHEARD for is_one in is_heard]

    def _move(self, event: Event) -> None:
        states = self.tally.states
        states[_known(event.was)] -= 1
        states[_known(event.state)] += 1

    def _count_reward(self, event: Event, amount: float) -> None:
        """In units of worth: weighed by what a reward is worth in this context."""
        context, arm = _known(event.context), _known(event.arm)
        worth = amount * self.problem.contexts[context].weight
        counts = event.state == RETURNED or (event.state == LATE and self.problem.deadlines[context] == math.inf)
        if counts:
            self.tally.reward += worth
            self.tally.arm_rewards[arm] += worth
        else:
            self.tally.late_reward += worth

    def _settle(self, event: Event) -> None:
        """Book what a decision cost: from its reservation, or out of what was spent when it expired."""
        before = exact(_known(event.previous_cost))
        after = before if event.actual_cost is None else exact(event.actual_cost)
        released = minus(before, after)
        if event.was == PENDING:
            self.book.spend(self.exact_costs[_known(event.arm)], released)
        elif released:
            self.book.refund(released)
        if released and event.kind != CANCELLED:  # the engine's own `cancel` gives back by itself
            operations.give_back(self.state, _known(event.context), float(released))

    # --- everything else --------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> Event:
        """One event that is neither a decision nor an answer; completed by what the engine made of it."""
        self.dirty = True
        self._advance(event)
        data: dict[str, Any] = {} if event.data is None else json.loads(event.data)
        if event.kind == CORRECTED:
            event = self._correct(event, data)
        elif event.kind == CANCELLED:
            self._cancel(event)
        elif event.kind == EXPIRED:
            self._expire(data)
        elif event.kind == ARM_ADDED:
            self._add_arm(Arm(**data))
        elif event.kind in (ARM_PAUSED, ARM_RESUMED, ARM_RETIRED):
            status = {ARM_PAUSED: ARM_IS_PAUSED, ARM_RESUMED: ARM_ON, ARM_RETIRED: ARM_IS_RETIRED}[event.kind]
            self.arm_status[_known(event.arm)] = status
            self._read_arms()
        elif event.kind == TOPPED_UP:
            amount = _known(event.value)
            self.book.top_up(exact(amount))
            operations.top_up(self.state, amount)
        elif event.kind == EXTENDED:
            operations.extend(self.state, data["rounds"])
        elif event.kind == CLOSED:
            self.closed = True
        elif event.kind != CREATED:
            raise BrokenLog(f"event {event.sequence} is of the unknown kind {event.kind}: written by a newer doral")
        return event

    def _correct(self, event: Event, data: dict[str, Any]) -> Event:
        previous, reward = _known(event.previous), _known(event.reward)
        if data:  # the engine has heard nothing so far: to it this is the answer
            event = event._replace(outcome=self._tell([event])[0])
        elif event.outcome == LEARNED and operations.is_learned(self.rules, _known(event.reason)):
            number, context, arm = _known(event.number), _known(event.context), _known(event.arm)
            operations.correct(self.state, self.rules, number, context, arm, previous, reward)
        self._settle(event)
        self._count_reward(event, reward - previous)
        self.tally.corrections += 1
        return event

    def _cancel(self, event: Event) -> None:
        number, context, arm = _known(event.number), _known(event.context), _known(event.arm)
        in_race = event.reason == PLAYED_RACING
        operations.cancel(self.state, self.rules, number, context, arm, in_race, event.clock)
        self._move(event)
        self._settle(event)
        self.tally.arm_plays[arm] -= 1

    def _expire(self, data: dict[str, Any]) -> None:
        self.state = operations.pass_time(self.state, self.rules, self.clock)
        for arm, count in data["by_arm"]:
            self.tally.states[PENDING] -= count
            self.tally.states[STATE_EXPIRED] += count
            self.book.spend(times(self.exact_costs[arm], count), exact(0.0))
        if any(new < old for new, old in zip(data["upto"], self.expired_upto, strict=True)):
            raise BrokenLog(f"event {self.sequence}: decisions expired up to {self.expired_upto} already")
        self.expired_upto = data["upto"]

    def _add_arm(self, arm: Arm) -> None:
        before = self.first_state()
        self.problem = dataclasses.replace(self.problem, arms=(*self.problem.arms, arm))
        self.state = operations.widened(self.state, self.rules, before, self.first_state())
        self.arm_status.append(ARM_ON)
        self.tally.add_arm()
        self._read_arms()

    # --- snapshots --------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Everything but the engine's state, in plain values."""
        tally = dataclasses.asdict(self.tally)
        tally["reasons"] = [[reason, count] for reason, count in self.tally.reasons.items()]
        return {
            "sequence": self.sequence,
            "clock": self.clock,
            "round": self.round,
            "expired_upto": self.expired_upto,
            "closed": self.closed,
            "book": self.book.to_json(),
            "tally": tally,
            "added_arms": [
                {"name": arm.name, "features": list(arm.features), "cost": arm.cost}
                for arm in self.problem.arms[self.definition.problem.n_arms :]
            ],
            "arm_status": self.arm_status,
        }

    @classmethod
    def from_json(cls, definition: Definition, tag: str, stored: dict[str, Any]) -> Fold:
        """The fold that `to_json` described, still with a first state in the engine's place."""
        fold = cls(definition, tag)
        if stored["added_arms"]:
            arms = (*definition.problem.arms, *(Arm(**arm) for arm in stored["added_arms"]))
            fold.problem = dataclasses.replace(definition.problem, arms=arms)
            fold.state = fold.first_state()
        fold.arm_status = stored["arm_status"]
        fold._read_arms()
        fold.sequence, fold.clock, fold.round = stored["sequence"], stored["clock"], stored["round"]
        fold.expired_upto, fold.closed = stored["expired_upto"], stored["closed"]
        fold.book = Book.from_json(stored["book"])
        tally = dict(stored["tally"])
        tally["reasons"] = dict(tally["reasons"])
        fold.tally = Tally(**tally)
        return fold

    def check(self) -> None:
        """Assertions over the whole state: the ledger, the counts and the engine agree."""
        states = self.tally.states
        played = sum(states) - states[SKIPPED]
        if self.round != sum(states) or int(self.state.now["next"][0]) != played:
            raise BrokenLog(f"counts disagree: {self.round} arrivals, {states} decisions by state")
        reserved = minus(self.book.total, self.book.left)
        drift = abs(float(self.state.now["budget_left"][0]) - float(self.book.left))
        if drift > 1e-9 * float(self.book.total) or reserved < 0:
            raise BrokenLog(f"the engine's budget is {drift} away from the ledger")


def _known(value: Any) -> Any:
    """A column that this kind of event always has."""
    if value is None:
        raise BrokenLog("an event lacks a value that its kind always has")
    return value
