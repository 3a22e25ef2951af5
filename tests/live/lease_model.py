"""Random histories of several workers with budget leases, and somebody who only reads the log.

Workers share one store in memory. At every call of the store one of them can be killed, lose its connection (before or
after the call took effect), or be paused while others go on: whoever is paused before it has the lock comes back as a
zombie, which may find that its lease was recovered. `Auditor` knows nothing of the protocol but what events say: it
adds up amounts as fractions, and keeps what callers were told.
"""

from __future__ import annotations

import json
import math
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any
from unittest import mock

import doral
from doral._arrays import leaves, replace_leaves
from doral.engine import engine
from doral.engine.setup import Blueprint, coin_of, first_state
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.decision import Decision
from doral.live.definition import Definition
from doral.live.errors import BrokenLog, ConnectionLost, OutcomeUnknown, StorageBusy
from doral.live.events import (
    ANSWERED,
    CANCELLED,
    CORRECTED,
    DECIDED,
    LEASE_ENDED,
    LEASED,
    RECORDED,
    TOPPED_UP,
    Event,
)
from doral.live.leases import session as leases_session
from doral.live.leases.session import LeasedSession
from doral.live.storage.memory import MemoryLog, MemoryStorage
from doral.live.store import Store
from doral.live.together import decisions, store_together

NAME = "leased"
NAMES = ("a", "b")
COSTS = ((0.1, 0.3), (0.2, 0.3), (0.07, 1.0))
_SIZES = ((2.3, 300), (8.0, 300), (8.0, 300), (20.1, 300), (20.1, 30), (40.0, 45))  # budgets and horizons
_POINTS = (  # at which most can go wrong; None: anywhere
    *(None,) * 5,
    *(f"{when} {call}" for when in ("before", "after") for call in ("begin", "tail", "append", "commit", "commit")),
)
_NEVER_BREAKS = {"rollback", "close", "writing", "is_lost"}
_OPEN = (ConnectionLost, OutcomeUnknown, StorageBusy)  # after these nobody knows whether a request was stored


class Killed(BaseException):
    """The process has ended here."""


def exact(amount: float | str) -> Fraction:
    """What a person means by it."""
    return Fraction(amount if isinstance(amount, str) else repr(amount))


# --- who reads the log ------------------------------------------------------------------------------------------------


@dataclass
class Lease:
    sequence: int
    left: Fraction


class Auditor:
    """What the log adds up to, event by event. AssertionError where it does not."""

    def __init__(self, events: list[Event], budget: float, horizon: int) -> None:
        self._events = events
        self._read = 0
        self.total = self.left = exact(budget)
        self.horizon = horizon
        self.leases: dict[int, Lease] = {}  # by writer
        self.round = 0
        self.number = -1
        self.by_lease = 0  # decisions of those who had one
        self.kinds: Counter[int] = Counter()
        self.why: Counter[str] = Counter()  # leases ended
        self.keys: set[str] = set()

    @property
    def leased(self) -> Fraction:
        return sum((lease.left for lease in self.leases.values()), Fraction(0))

    def read(self) -> None:
        """All events since the last time."""
        while self._read < len(self._events):
            event = self._events[self._read]
            self._read += 1
            assert event.sequence == self._read, f"event {event.sequence} in the place of {self._read}"
            self._take(event)
            self.kinds[event.kind] += 1
            assert all(lease.left >= 0 for lease in self.leases.values()), f"{event}: more than was leased"
            assert self.left >= self.leased, f"{event}: {self.left} left, and {self.leased} of it leased"
            assert self.left <= self.total
            if event.key is not None:
                assert event.key not in self.keys, f"{event.key} twice"
                self.keys.add(event.key)

    def _take(self, event: Event) -> None:
        if event.kind in (DECIDED, RECORDED):
            self._decided(event)
        elif event.kind in (ANSWERED, CORRECTED, CANCELLED):
            if event.actual_cost is not None and event.previous_cost is not None:
                self._pay(event.writer, exact(event.actual_cost) - exact(event.previous_cost))
        elif event.kind == TOPPED_UP:
            assert event.value is not None
            self.total += exact(event.value)
            self.left += exact(event.value)
        elif event.kind == LEASED:
            said = json.loads(event.data or "")
            assert exact(said["amount"]) > 0
            self.leases[event.writer] = Lease(event.sequence, exact(said["amount"]))  # in the place of an older one
        elif event.kind == LEASE_ENDED:
            self._ended(json.loads(event.data or ""))

    def _pay(self, writer: int, amount: Fraction) -> None:
        """For something else than a decision of his own: out of his lease only where nothing else is left."""
        self.left -= amount
        lease = self.leases.get(writer)
        if lease is not None:
            lease.left -= max(Fraction(0), min(lease.left, self.leased - self.left))

    def _decided(self, event: Event) -> None:
        is_ours = event.kind == DECIDED or json.loads(event.data or "")["spend"]
        self.round += is_ours
        assert event.round == self.round, f"round {event.round} in the place of {self.round}"
        if event.arm is None:
            return
        assert self.round <= self.horizon or event.kind == RECORDED, "somebody was served after the end"
        self.number += 1
        assert event.number == self.number, f"number {event.number} in the place of {self.number}"
        assert event.cost is not None
        cost = exact(event.cost)
        if event.kind == RECORDED:
            self._pay(event.writer, cost)
            return
        lease = self.leases.get(event.writer)
        if lease is not None:
            self.by_lease += 1
            lease.left -= min(cost, lease.left)
        self.left -= cost

    def _ended(self, said: dict[str, Any]) -> None:
        holders = [writer for writer, lease in self.leases.items() if lease.sequence == said["lease"]]
        assert len(holders) == 1, f"{said}: there is no such lease"
        lease = self.leases.pop(holders[0])
        assert exact(said["left"]) == lease.left, f"{said}: {lease.left} was not spent"
        self.why[said["why"]] += 1


# --- what breaks ------------------------------------------------------------------------------------------------------


class BreakingLog(MemoryLog):
    """At each of its calls, before and after, something may happen to the worker that has made it."""

    worker: Worker
    is_cut = False

    @property
    def is_lost(self) -> bool:
        return self.is_cut


def _breaking(name: str) -> Callable[..., Any]:
    plain = getattr(MemoryLog, name)

    def call(self: BreakingLog, *args: Any, **named: Any) -> Any:
        self.worker.pass_point(self, f"before {name}")
        found = plain(self, *args, **named)
        self.worker.pass_point(self, f"after {name}")
        return found

    return call


for _name in dir(MemoryLog):
    if not _name.startswith("_") and callable(getattr(MemoryLog, _name)) and _name not in _NEVER_BREAKS:
        setattr(BreakingLog, _name, _breaking(_name))


class BreakingStorage(MemoryStorage):
    """The store as one worker reaches it; its campaigns are those of all."""

    def __init__(self, shared: MemoryStorage, worker: Worker) -> None:
        self.__dict__ = {**shared.__dict__, "worker": worker}

    def open_log(self, row: Any) -> BreakingLog:
        log = BreakingLog(self._kept[row.name])
        log.worker = self.__dict__["worker"]
        return log

    def close(self) -> None:
        """Others go on."""


@dataclass(eq=False)
class Worker:
    """One process."""

    history: History
    leased: bool
    store: Store = field(init=False)
    campaign: Campaign = field(init=False)
    fault: str | None = None
    where: str | None = None  # only at this point of the protocol
    fuse: int = 0  # points until then
    asks: Sequence[str] = ()  # for these keys
    is_dead: bool = False

    def __post_init__(self) -> None:
        self.store = open_worker(BreakingStorage(self.history.storage, self), leased=self.leased)
        self.campaign = self.store.campaign(NAME)
        session = self.campaign.session
        if isinstance(session, LeasedSession) and self.history.seed % 5:
            session._met_at = math.inf  # it knows of others: whoever takes himself to be alone leases nothing

    @property
    def writer(self) -> int:
        return self.campaign.session.writer

    def pass_point(self, log: BreakingLog, point: str) -> None:
        if self.fault is None:
            return
        if self.where in (None, point):
            self.fuse -= 1
        if self.fuse > 0:
            return
        fault, self.fault = self.fault, None
        self.history.fired[f"{fault} {point}"] += 1
        if fault == "pause":
            self.history.meanwhile(self)
            return
        log.rollback()  # the other end of the connection sees that it is over
        log.is_cut = True
        if fault == "kill":
            end_of(self)
            raise Killed
        raise ConnectionLost(f"cut off {point}")


class Clock:
    """Of all hosts; nothing of what is checked may depend on it."""

    def __init__(self) -> None:
        self.shows = 1_000_000.0

    def time(self) -> float:
        self.shows += 1e-3
        return self.shows

    def sleep(self, seconds: float) -> None:
        self.shows += seconds


# --- histories --------------------------------------------------------------------------------------------------------


@dataclass
class Told:
    """What a caller was told of a decision, or asked for and was not told."""

    arms: dict[str, str | None] = field(default_factory=dict)  # by id
    by_key: dict[str, str] = field(default_factory=dict)  # id
    open_keys: list[str] = field(default_factory=list)
    open_arrivals: int = 0  # without a key, of whose storing nobody heard


class History:
    """One, by its seed."""

    def __init__(self, seed: int, clock: Clock) -> None:
        self.seed, self.draws = seed, random.Random(seed)
        draws = self.draws
        self.clock = clock
        self.storage = MemoryStorage()
        self.budget, self.horizon = draws.choice(
            ((2.3, 300), (8.0, 300), (8.0, 300), (20.1, 300), (20.1, 30), (40.0, 45))
        )
        self.costs = dict(zip(NAMES, draws.choice(COSTS), strict=True))
        problem = doral.Problem(
            arms=[doral.Arm(name, cost=cost) for name, cost in self.costs.items()],
            contexts=["x"],
            budget=self.budget,
            horizon=self.horizon,
            deadline=1_000,
        )
        with quiet_store(self.storage) as store:
            store.create(NAME, problem, policy="d-linucb", seed=seed, clock="rounds")
        self.auditor = Auditor(self.storage._kept[NAME].events, self.budget, self.horizon)
        self.told = Told()
        self.fired: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.keys = 0
        self.standing: list[Worker] = []  # those who are paused: a process does one thing at a time
        self.workers = [Worker(self, leased=True) for _ in range(draws.choice((2, 2, 3)))]
        for sizes in ((1,), (1, 4, 8)):  # whoever has not met others yet takes no lease
            for worker in self.workers:
                self.decide(worker, draws.choice(sizes), keyed=False)
        if draws.random() < 0.4:
            self.workers.append(Worker(self, leased=False))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.draws.choice(self.workers))
        self.end()

    def step(self, worker: Worker) -> None:
        """One request of one worker, or its end."""
        draws = self.draws
        self.clock.sleep(draws.choice((0.0, 0.0, 0.3, 2.0)))
        if draws.random() < 0.3:
            worker.fault = draws.choice(("kill", "lose", "lose", "pause", "pause"))
            worker.where = "before begin" if worker.fault == "pause" else draws.choice(_POINTS)
            worker.fuse = draws.choice((1, 2, 3, 5, 8, 13, 20, 30)) if worker.where is None else 1
        kind = draws.choices(
            (
                "decide",
                "together",
                "answer",
                "correct",
                "cancel",
                "record",
                "top up",
                "pause arm",
                "close",
                "end",
                "late",
            ),
            (50, 15, 9, 6, 4, 6, 2, 2, 2, 2, 3),
        )[0]
        self.done[kind] += 1
        with suppress(Killed):
            self._do(worker, kind)
        worker.fault = None
        self.auditor.read()
        if worker.is_dead and worker in self.workers:
            self.workers[self.workers.index(worker)] = Worker(self, leased=worker.leased)

    def _do(self, worker: Worker, kind: str) -> None:
        draws, campaign = self.draws, worker.campaign
        if kind == "decide":
            self.decide(worker, draws.choice((1, 1, 1, 2, 2, 3)), keyed=draws.random() < 0.5)
        elif kind == "together":
            self.decide_together(worker, [draws.choice((1, 2)) for _ in range(2)])
        elif kind == "answer":
            self._about(lambda one: campaign.feedback(one, 1.0, actual_cost=draws.choice((None, 0.0, 0.05))))
        elif kind == "correct":
            self._about(lambda one: campaign.correct(one, 0.5, actual_cost=self.costs[self.told.arms[one] or "a"]))
        elif kind == "cancel":
            self._about(campaign.cancel)
        elif kind == "record":
            arm = draws.choice(NAMES)
            self._change(lambda: campaign.record("x", arm, at=0, spend=True))
        elif kind == "top up":
            amount = draws.choice((0.1, 0.7))
            self._change(lambda: campaign.top_up(amount))
        elif kind == "pause arm":
            arm = draws.choice(NAMES)
            self._change(lambda: campaign.pause_arm(arm) if draws.random() < 0.5 else campaign.resume_arm(arm))
        elif kind == "close":
            self._change(worker.store.close)
        elif kind == "late":
            pass_time(self)
        else:
            end_of(worker)

    def _change(self, change: Callable[[], object]) -> None:
        with _refusals():
            change()

    def _about(self, do: Callable[[str], object]) -> None:
        """To one of the decisions that somebody knows; it may have been answered or cancelled before."""
        played = [decision_id for decision_id, arm in self.told.arms.items() if arm is not None]
        if not played:
            return
        with _refusals():
            do(self.draws.choice(played))

    def decide(self, worker: Worker, n: int, *, keyed: bool, keys: Sequence[str] = ()) -> list[Decision]:
        """Some arrivals; at times, those with the keys of a request that came to nothing are asked for again."""
        told, again = self.told, list(keys)
        if keyed and not again and told.open_keys and self.draws.random() < 0.5:
            again = [told.open_keys.pop() for _ in range(min(n, len(told.open_keys)))]
        new = []
        for _ in range(n - len(again) if keyed else 0):
            self.keys += 1
            new.append(f"k{self.keys}")
        asked = [{"context": "x", "key": key} for key in (*again, *new)] if keyed else ["x"] * n
        worker.asks = [*again, *new]
        stored = self._stored()
        try:
            found = worker.campaign.decide_many(asked)
        except (Killed, *_OPEN):
            if keyed:
                told.open_keys += [*again, *new]
            else:
                told.open_arrivals += n
            raise_killed(worker)
            return []
        except DoralError:
            assert self._stored() == stored or self.standing or self.fired, "something was refused, and stored"
            raise
        assert len(found) == n
        for one, asked_for in zip(found, asked, strict=True):
            key = asked_for["key"] if isinstance(asked_for, dict) else None
            self._acknowledged(one, key)
        return found

    def decide_together(self, worker: Worker, sizes: Sequence[int]) -> None:
        """Groups of several callers, stored together, each with its keys."""
        groups = []
        for size in sizes:
            groups.append([f"k{self.keys + 1 + i}" for i in range(size)])
            self.keys += size
        asked = [decisions([{"context": "x", "key": key} for key in keys]) for keys in groups]
        worker.asks = [key for keys in groups for key in keys]
        try:
            results = store_together(worker.campaign.session, asked)
        except (Killed, *_OPEN):
            self.told.open_keys += worker.asks
            raise_killed(worker)
            return
        for keys, found in zip(groups, results, strict=True):
            if isinstance(found, _OPEN):
                self.told.open_keys += keys
                continue
            assert not isinstance(found, Exception), f"refused: {found!r}"
            for one, key in zip(found, keys, strict=True):
                self._acknowledged(one, key)

    def _acknowledged(self, one: Decision, key: str | None) -> None:
        told = self.told
        if key is not None and key in told.by_key:
            assert told.by_key[key] == one.id, f"{key} was decided twice"
        else:
            assert one.id not in told.arms, f"{one.id} was given to two callers"
        told.arms[one.id] = one.arm
        if key is not None:
            told.by_key[key] = one.id

    def _stored(self) -> int:
        return len(self.storage._kept[NAME].events)

    def meanwhile(self, paused: Worker) -> None:
        """What others do while one stands still."""
        if len(self.standing) >= 2:
            return
        self.standing.append(paused)
        try:
            for _ in range(self.draws.randint(1, 4)):
                others = [one for one in self.workers if one not in self.standing]
                if self.draws.random() < 0.3:
                    declare_dead(paused)
                if others and paused.asks and self.draws.random() < 0.3:  # a caller has waited for too long
                    self.decide(self.draws.choice(others), len(paused.asks), keyed=True, keys=paused.asks)
                elif others:
                    self.step(self.draws.choice(others))
        finally:
            self.standing.remove(paused)

    # --- the end ----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Everybody leaves; whoever comes then can spend all that is left."""
        for worker in self.workers:
            if self.draws.random() < 0.5:
                worker.store.close()
            else:
                end_of(worker)
        self.auditor.read()
        pass_time(self)
        last = Worker(self, leased=self.draws.random() < 0.5)
        for arm in NAMES:
            last.campaign.resume_arm(arm)
        for n in (20, 1):
            while all(one.arm is not None for one in self.decide(last, n, keyed=False)):
                self.auditor.read()
        last.store.close()
        self.auditor.read()
        cheapest = min(map(exact, self.costs.values()))
        is_over = self.auditor.round > self.horizon
        assert is_over or self.auditor.left - self.auditor.leased < cheapest
        assert is_over or self.auditor.left < cheapest, f"{self.auditor.leased} never came back"
        self._check_told()

    def _check_told(self) -> None:
        """What callers were told is there, once, as they were told; and nothing that nobody asked for."""
        told = self.told
        decided = [event for event in self.storage._kept[NAME].events if event.kind == DECIDED]
        events = {event.sequence: event for event in decided}
        known = {int(decision_id.split("-")[1]): arm for decision_id, arm in told.arms.items()}
        for sequence, arm in known.items():
            found = events[sequence].arm
            assert (None if found is None else NAMES[found]) == arm, f"event {sequence} is not what was told"
        for key, decision_id in told.by_key.items():
            assert events[int(decision_id.split("-")[1])].key == f"d:{key}"
        untold = [event for event in decided if event.sequence not in known]
        assert {event.key for event in untold if event.key} <= {f"d:{key}" for key in told.open_keys}
        assert sum(event.key is None for event in untold) <= told.open_arrivals, "more was stored than was asked for"


@contextmanager
def _refusals() -> Iterator[None]:
    """Whoever is refused has changed nothing; but nobody may find the log damaged."""
    try:
        yield
    except BrokenLog:
        raise
    except DoralError:
        pass


def raise_killed(worker: Worker) -> None:
    """Whoever was killed says nothing more."""
    if worker.is_dead:
        raise Killed


# --- where the protocol is touched ------------------------------------------------------------------------------------


def open_worker(storage: MemoryStorage, *, leased: bool) -> Store:
    return Store(storage, leases=leased)


def end_of(worker: Worker) -> None:
    """Its process is gone, and with it whatever shows that it lives; the server sees it sooner or later."""
    worker.is_dead = True
    if worker.history.draws.random() < 0.8:
        declare_dead(worker)


def declare_dead(worker: Worker) -> None:
    """Others think that it is gone."""
    worker.history.storage._kept[NAME].holders.pop(worker.writer, None)


def pass_time(history: History) -> None:
    """Longer than any lease lasts."""
    history.clock.shows += 1_000.0


@contextmanager
def quiet_store(storage: MemoryStorage) -> Iterator[Store]:
    yield Store(storage)


_FIRST: dict[tuple[Any, ...], Any] = {}
_definition = cache(Definition.from_json)


def _first_state(blueprint: Blueprint) -> Any:
    """What the engine makes of a blueprint, made once: most of the time of a history would go into it."""
    problem = blueprint.problem
    key = (problem.budget, problem.horizon, tuple(arm.cost for arm in problem.arms))
    if key not in _FIRST:
        _FIRST[key] = first_state(blueprint)
    made = _FIRST[key]
    arrays = {name: array.copy() for name, array in leaves(made)}
    for name, array in leaves(made):
        arrays[name].flags.writeable = array.flags.writeable
    return replace_leaves(made, arrays)._replace(coin=coin_of(blueprint))


def play(seed: int, steps: int = 12) -> History:
    """One history from its beginning to its end; AssertionError where something does not hold."""
    clock = Clock()
    with (
        mock.patch.multiple(time, sleep=clock.sleep, time=clock.time, monotonic=clock.time),
        mock.patch.object(secrets, "randbits", random.Random(seed).getrandbits),
        mock.patch.object(engine, "first_state", _first_state),
        mock.patch.object(leases_session, "UNHEARD_SHARE", 1e9),  # histories are short: states would never be old
        mock.patch.object(Definition, "from_json", _definition),
    ):
        history = History(seed, clock)
        history.run(steps)
    _definition.cache_clear()
    return history
