"""The parts of a campaign's state: ledger, counters, arms, expiries, names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from doral._arrays import Bits
from doral._money import exact as exact
from doral._money import minus as minus
from doral._money import plus as plus
from doral._money import product as product
from doral._money import times as times
from doral.errors import shown
from doral.live.errors import BrokenLog, UnknownDecision
from doral.live.events.event import (
    ARM_IS_ACTIVE,
    ARM_IS_RETIRED,
    IS_EXPIRED,
    IS_PENDING,
    IS_SKIPPED,
    STATE_NAMES,
    Deciding,
    Event,
    Settled,
    known,
)
from doral.pages.notebook import card
from doral.problem import Arm, Problem, arm_to_dict

_ZERO = Decimal(0)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Where the budget is. Every change is checked: a budget that does not add up is never written.

    Attributes:
        total: The whole budget, with what was added.
        spent: On decisions that are answered or expired.
        reserved: For decisions that are pending.
        released: Came back so far; it is in `left` again, or spent anew.
        left: What can still be reserved.
    """

    total: Decimal
    spent: Decimal = _ZERO
    reserved: Decimal = _ZERO
    released: Decimal = _ZERO
    left: Decimal

    def __repr__(self) -> str:
        parts = f"spent {self.spent} + reserved {self.reserved} + left {self.left}"
        return f"<Ledger: {self.total} = {parts}>"

    def _repr_html_(self) -> str:
        named = {name: getattr(self, name) for name in ("total", "spent", "reserved", "left", "released")}
        return card("Ledger", [(name, f"{amount:,f}") for name, amount in named.items()])

    def _check(self) -> None:
        if (self.left < _ZERO and not self.may_overdraw) or self.reserved < _ZERO or self.spent < _ZERO:
            raise BrokenLog(f"the budget was overdrawn: {self}")
        if plus(plus(self.spent, self.reserved), self.left) != self.total:
            raise BrokenLog(f"the ledger does not add up: {self}")

    @property
    def may_overdraw(self) -> bool:
        """Whether what is reserved may exceed the budget."""
        return False

    def reserve(self, amount: Decimal) -> None:
        self.left = minus(self.left, amount)
        self.reserved = plus(self.reserved, amount)
        self._check()

    def spend(self, reserved: Decimal, unused: Decimal = _ZERO) -> None:
        """A reservation is used, up to what comes back."""
        self.reserved = minus(self.reserved, reserved)
        self.spent = plus(self.spent, minus(reserved, unused))
        self.left = plus(self.left, unused)
        self.released = plus(self.released, unused)
        self._check()

    def refund(self, amount: Decimal) -> None:
        """What was spent comes back (below 0: costs more after all)."""
        self.spent = minus(self.spent, amount)
        self.left = plus(self.left, amount)
        self.released = plus(self.released, amount)
        self._check()

    def top_up(self, amount: Decimal) -> None:
        self.total = plus(self.total, amount)
        self.left = plus(self.left, amount)
        self._check()

    def copy(self) -> Ledger:
        """As it stands now, for somebody who keeps it."""
        return replace(self)

    def to_dict(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in asdict(self).items()}

    def to_json(self) -> dict[str, str]:
        """For snapshots: not a digit is lost."""
        return {name: str(amount) for name, amount in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> Ledger:
        ledger = cls(**{name: Decimal(amount) for name, amount in stored.items()})
        ledger._check()
        return ledger


class LikelyLedger(Ledger):
    """Of a problem whose `reserve` is below 1: list prices of open decisions may exceed the budget, since most of them
    will not be paid.
    """

    __slots__ = ()

    @property
    def may_overdraw(self) -> bool:
        return True


@dataclass(slots=True)
class Counters:
    states: list[int] = field(default_factory=lambda: [0] * len(STATE_NAMES))
    reasons: dict[int, int] = field(default_factory=dict)
    reward: Decimal = Decimal(0)  # that counts; exact, so that a correction leaves no trace
    late_reward: Decimal = Decimal(0)  # that came too late to count
    arm_plays: list[int] = field(default_factory=list)
    arm_answers: list[int] = field(default_factory=list)
    arm_rewards: list[Decimal] = field(default_factory=list)
    clock_went_back: int = 0  # events for which the clock stood still instead
    corrections: int = 0
    about: int = 0  # events about a decision,
    keyed: int = 0  # and events that have, or had, a key
    outside: int = 0  # decisions that were made elsewhere and are no arrivals of this campaign

    def add_arm(self) -> None:
        self.arm_plays.append(0)
        self.arm_answers.append(0)
        self.arm_rewards.append(Decimal(0))

    def play(self, arm: int, reason: int, count: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.states[IS_PENDING] += count
        self.arm_plays[arm] += count

    def skip(self, reason: int, count: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.states[IS_SKIPPED] += count

    def move(self, was: int, state: int, count: int = 1) -> None:
        """Decisions go from one state to another."""
        self.states[was] -= count
        self.states[state] += count

    def add_reward(self, arm: int, worth: Decimal, *, is_served: bool = True) -> None:
        """`is_served`: an arm has brought it, and not what people do by themselves."""
        if is_served:
            self.reward = plus(self.reward, worth)
        self.arm_rewards[arm] = plus(self.arm_rewards[arm], worth)

    def add_late_reward(self, worth: Decimal) -> None:
        self.late_reward = plus(self.late_reward, worth)

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "reasons": list(self.reasons.items()),
            "reward": str(self.reward),
            "late_reward": str(self.late_reward),
            "arm_rewards": list(map(str, self.arm_rewards)),
        }

    @property
    def arrivals(self) -> int:
        return sum(self.states) - self.outside

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Counters:
        exact = {
            "reasons": dict(stored["reasons"]),
            "reward": Decimal(stored["reward"]),
            "late_reward": Decimal(stored["late_reward"]),
            "arm_rewards": list(map(Decimal, stored["arm_rewards"])),
        }
        return cls(**{**stored, **exact})


def bits_of(mask: bytes | None) -> Bits | None:
    """Return one entry per arm of a mask; None: all."""
    return None if mask is None else np.unpackbits(np.frombuffer(mask, dtype=np.uint8))


class Arms:
    """The problem with the arms that were added to it, and their status."""

    def __init__(self, problem: Problem) -> None:
        self._n_first = problem.n_arms
        self.problem = problem
        self.status = [ARM_IS_ACTIVE] * problem.n_arms
        self.is_paused = False  # the whole campaign: no arm is offered
        self._read()

    def _read(self) -> None:
        """Whatever depends on the list of arms and on their status."""
        self.control = self.problem.control
        self._costs: list[list[float]] = self.problem.costs_by_context.tolist()  # one row for all contexts, or for each
        self._exact_costs = [[exact(cost) for cost in row] for row in self._costs]
        self.dearest = max(max(row) for row in self._exact_costs)
        self.off = [arm for arm, status in enumerate(self.status) if self.is_paused or status != ARM_IS_ACTIVE]
        self.retired = [arm for arm, status in enumerate(self.status) if status == ARM_IS_RETIRED]

    def costs(self, context: int) -> list[float]:
        """What each arm costs in a context."""
        return self._costs[min(context, len(self._costs) - 1)]

    def exact_costs(self, context: int) -> list[Decimal]:
        """The same to the last digit."""
        return self._exact_costs[min(context, len(self._costs) - 1)]

    @property
    def unit_costs(self) -> list[float | None] | None:
        """What a use costs, by context, where all arms cost the same there; None where less than that may be paid."""
        if self.problem.paid == "on_answer":
            return None
        weighed = [arm for arm in range(self.problem.n_arms) if arm != self.control]
        costs = [{row[arm] for arm in weighed} for row in self._costs]
        common = [one.pop() if len(one) == 1 else None for one in costs]
        return common * self.problem.n_contexts if len(common) == 1 else common

    def add(self, arm: Arm) -> None:
        self.problem = replace(self.problem, arms=(*self.problem.arms, arm))
        self.status.append(ARM_IS_ACTIVE)
        self._read()

    def as_it_grew(self) -> list[Problem]:
        """The problem after each arm that was added."""
        arms = self.problem.arms
        return [replace(self.problem, arms=arms[: n + 1]) for n in range(self._n_first, len(arms))]

    def set_status(self, arm: int, status: int) -> None:
        self.status[arm] = status
        self._read()

    def pause(self, is_paused: bool) -> None:
        """Offer no arm at all, or those that are active."""
        self.is_paused = is_paused
        self._read()

    def mask(self, names: Sequence[str]) -> bytes:
        """One bit per arm: those named are available."""
        bits = np.zeros(self.problem.n_arms, dtype=np.uint8)
        for name in names:
            bits[self.problem.arm_index(name)] = 1
        return np.packbits(bits).tobytes()

    def offered(self, masks: Sequence[bytes | None], off: Sequence[int]) -> Bits:
        """Per arrival, one entry per arm: available and not off. Without columns where that is all of them."""
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

    def to_json(self) -> dict[str, Any]:
        added = self.problem.arms[self._n_first :]
        status = list(self.status)
        return {"added": [arm_to_dict(arm) for arm in added], "status": status, "is_paused": self.is_paused}

    @classmethod
    def from_json(cls, problem: Problem, stored: dict[str, Any]) -> Arms:
        arms = cls(problem)
        for arm in stored["added"]:
            arms.add(Arm(**arm))
        arms.status, arms.is_paused = stored["status"], stored["is_paused"]
        arms._read()
        return arms


class OwnCall(NamedTuple):
    """A call of `expire`, for decisions with deadlines of their own."""

    sequence: int
    clock: float  # by which it judged
    releases: bool


class Expiries:
    """Calls of `expire`, in their order; those in a row that treated money alike are one."""

    def __init__(self, n_contexts: int, repairs: Sequence[tuple[int, float]] = ()) -> None:
        self.upto = [0] * n_contexts  # by context: sequence of the last event up to which decisions have expired
        self.own_upto = 0  # the same for those with deadlines of their own
        self._calls: list[tuple[list[int], bool]] = []
        self._own_calls: list[OwnCall] = []
        self._repairs = repairs  # of the clock

    @property
    def all_upto(self) -> int:
        """The event up to which no decision is still open."""
        return min(*self.upto, self.own_upto) if self._own_calls else min(self.upto)

    def add(self, upto: Sequence[int], *, releases: bool) -> None:
        """Enter a call."""
        if self._calls and self._calls[-1][1] == releases:
            self._calls.pop()
        self.upto = list(upto)
        self._calls.append((self.upto, releases))

    def add_own(self, call: OwnCall, upto: int) -> None:
        """Enter a call. What had expired by the one before it has so by this one, unless the clock was set back."""
        last = self._own_calls[-1] if self._own_calls else None
        if last is not None and last.releases == call.releases and last.clock <= call.clock:
            self._own_calls.pop()
        self._own_calls.append(call)
        self.own_upto = upto

    def has(self, decided: Deciding) -> bool:
        """Whether a decision has expired, if nothing became of it."""
        if decided.arrival.deadline is not None:
            return self._own_call(decided) is not None
        return decided.sequence <= self.upto[decided.arrival.context]

    def is_released(self, decided: Deciding, later: Sequence[Settled]) -> bool:
        """Whether what was reserved for it came back when it expired: not if it was answered, or too old, before."""
        is_overdue = decided.state_then == IS_EXPIRED
        if is_overdue or (later and later[0].settlement.was != IS_EXPIRED):
            return False
        if decided.arrival.deadline is not None:
            call = self._own_call(decided)
            return call is not None and call.releases
        context, sequence = decided.arrival.context, decided.sequence
        return next((releases for upto, releases in self._calls if sequence <= upto[context]), False)

    def _own_call(self, decided: Deciding) -> OwnCall | None:
        """Return the first by which it had expired."""
        for call in self._own_calls:
            if call.sequence > decided.sequence and self.is_over(decided, call.clock, at=call.sequence):
                return call
        return None

    def is_over(self, decided: Deciding, clock: float, *, at: int) -> bool:
        """Whether its own deadline has passed, as was known at an event: the clock may have been set back after it."""
        made = decided.own
        for sequence, clock_then in self._repairs:
            if decided.sequence < sequence < at:
                made = min(made, clock_then)
        return clock - made > known(decided.arrival.deadline)

    def to_json(self) -> list[Any]:
        """Return the calls, for snapshots."""
        return [[upto, releases] for upto, releases in self._calls]

    def own_to_json(self) -> dict[str, Any]:
        """Return the calls for decisions with deadlines of their own."""
        return {"upto": self.own_upto, "calls": [list(call) for call in self._own_calls]}

    def read_json(self, stored: list[Any], own: dict[str, Any]) -> None:
        """Enter what the two above returned."""
        for upto, releases in stored:
            self.add(upto, releases=releases)
        self._own_calls = [OwnCall(*call) for call in own["calls"]]
        self.own_upto = own["upto"]


_ID = re.compile(r"([0-9a-f]{8})-([1-9][0-9]{0,17})")


def make_id(tag: str, sequence: int) -> str:
    """Return an identifier that names its campaign too, so that a decision of another one is noticed."""
    return f"{tag}-{sequence}"


def read_id(tag: str, decision_id: object) -> int:
    """Return the sequence number of the event that made the decision."""
    match = _ID.fullmatch(decision_id) if isinstance(decision_id, str) else None
    if match is None:
        raise UnknownDecision(f"decision_id = {shown(decision_id)}: give the id of a Decision, such as '{tag}-12'")
    if match[1] != tag:
        raise UnknownDecision(
            f"decision_id = {shown(decision_id)}: belongs to another campaign; this one's begin with {tag}-"
        )
    return int(match[2])


class Names:
    """Of one campaign."""

    __slots__ = ("arms", "contexts", "epoch", "nothing", "person", "repairs", "tag", "unit_costs")

    def __init__(
        self,
        *,
        tag: str,
        epoch: float,
        contexts: Sequence[str],
        arms: Sequence[str],
        nothing: int | None = None,
        person: Sequence[str] = (),
        unit_costs: Sequence[float | None] | None = None,
    ) -> None:
        # What a use costs, by context, where all arms cost the same there; None where less than that may be paid.
        self.unit_costs = unit_costs
        self.tag, self.epoch, self.contexts, self.arms = tag, epoch, contexts, arms
        self.person = person  # features of people
        self.nothing = nothing  # the arm that means to do nothing, and that no caller has named
        self.repairs: list[tuple[int, float]] = []  # events that set the clock back, and to what

    def unit_cost(self, event: Deciding) -> float | None:
        """Return what a value has to be divided by to compare it with a price; None where it is not known."""
        if self.unit_costs is None:
            return None
        return event.choice.cost or self.unit_costs[event.arrival.context]  # a skip has no cost

    def own_time(self, event: Event) -> float:
        """Return when something happened, on the campaign's clock: no later than it was set back to afterwards."""
        own = event.own
        for sequence, clock in self.repairs:
            if event.sequence < sequence and own > clock:
                own = clock
        return own
