"""Every operation in every order, against a tiny model of what a campaign is, on every storage."""

from __future__ import annotations

import copy
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

import doral
from doral.live.errors import BrokenLog, CampaignClosed, KeyReused, UnknownDecision, WrongState
from doral.live.events.row import COLUMNS
from tests.live.checks import adds_up, expire_as_before, fold_of, log_is_whole
from tests.live.conftest import clear_postgres

COSTS = {"a": 0.1, "b": 0.3, "c": 0.7}
CONTEXTS = ("x", "y")
DEADLINE = 12.0


def dec(number: float) -> Decimal:
    return Decimal(repr(number))


def number_of(decision_id: str) -> int:
    return int(decision_id.split("-")[1])


@dataclass
class One:
    """A decision in the model."""

    context: str
    arm: str | None
    cost: float
    at: float
    state: str
    reward: float | None = None
    first_reward: float | None = None
    answered_at: float | None = None
    actual: float = 0.0
    first_actual: float | None = None
    is_in_ledger: bool = True

    @property
    def reserved(self) -> float:
        """What it can cost the campaign."""
        return self.cost if self.is_in_ledger else 0.0

    @property
    def booked(self) -> float:
        """What it costs the campaign as far as is known."""
        return self.reserved if self.state == "pending" else self.actual


@dataclass
class Model:
    """A campaign without an engine: which arm is chosen is the engine's business, everything else is checked."""

    total: Decimal
    horizon: int
    costs: dict[str, float] = field(default_factory=lambda: dict(COSTS))
    off: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    decisions: dict[str, One] = field(default_factory=dict)  # by id, in the order of the log
    keys: dict[str, tuple[object, ...]] = field(default_factory=dict)  # of decisions: what was asked, and what came
    answer_keys: dict[str, object] = field(default_factory=dict)
    change_keys: dict[str, object] = field(default_factory=dict)
    clock: float = 0.0
    rounds: int = 0
    expired_upto: int = 0
    closed: bool = False

    def now(self, at: float | None = None) -> float:
        """When something happens. The clock shows the number of the coming arrival, unless it was further already;
        what happened in the past does not move it.
        """
        self.clock = max(self.clock, float(self.rounds + 1) if at is None else at)
        return self.clock if at is None else at

    def used(self) -> Decimal:
        return sum((dec(one.booked) for one in self.decisions.values()), Decimal(0))

    @property
    def left(self) -> Decimal:
        return self.total - self.used()


class CampaignMachine(RuleBasedStateMachine):
    """One campaign, and a model that is told the same."""

    storage: ClassVar[str] = "memory"
    postgres: ClassVar[str] = ""
    made = Bundle("made")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="doral-sm-"))
        self.url = {
            "memory": "memory://",
            "sqlite": f"sqlite:///{self.folder / 'c.db'}",
            "postgres": self.postgres,
        }[self.storage]
        if self.storage == "postgres":
            clear_postgres(self.url)
        self.store = doral.open(self.url)

    @initialize(
        budget=st.sampled_from([0.4, 2.0, 5.3]),
        policy=st.sampled_from(["d-linucb", "random", "doral", "doral-otf", "scaled", "thinned"]),
        horizon=st.sampled_from([10, 60]),
    )
    def create(self, budget: float, policy: str, horizon: int) -> None:
        problem = doral.Problem(
            arms=[doral.Arm(name, features=[i, 1.0], cost=cost) for i, (name, cost) in enumerate(COSTS.items())],
            contexts={"x": 0.5, "y": 0.5},
            budget=budget,
            horizon=horizon,
            deadline=DEADLINE,
        )
        options: Any = policy
        if policy == "doral":
            options = doral.policy("doral", min_answers=1)
        elif policy in ("scaled", "thinned"):
            options = doral.PolicyOptions.named("doral", {"screening": "none", "learner": policy})
        self.campaign = self.store.create("machine", problem, policy=options, seed=3, clock="rounds")
        self.foreign = self.store.create("foreign", problem, policy="d-linucb", seed=3, clock="rounds").decide("x")
        self.model = Model(total=dec(budget), horizon=horizon)

    def teardown(self) -> None:
        try:
            if hasattr(self, "campaign"):
                adds_up(self.campaign)
                log_is_whole(self.campaign)
        finally:
            self.store.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- decisions --------------------------------------------------------------------------------------------------

    def enter(
        self, one: doral.Decision, context: str, available: list[str] | None = None, at: float | None = None
    ) -> None:
        model = self.model
        own = model.now(at)
        model.rounds += 1
        assert (one.round, one.decided_at, one.context) == (model.rounds, own, context)
        offered = set(model.costs if available is None else available) - model.off - model.retired
        affordable = {name for name in offered if dec(model.costs[name]) <= model.left}
        if one.arm is None:
            assert (one.state, one.cost) == ("skipped", 0.0)
            model.decisions[one.id] = One(context, None, 0.0, own, "skipped")
        else:
            assert one.arm in affordable
            assert (one.state, one.cost) == ("pending", model.costs[one.arm])
            model.decisions[one.id] = One(context, one.arm, one.cost, own, "pending")
        if model.rounds > model.horizon:
            assert one.reason_code == "over"
        assert 0.0 < (one.probability or 0.0) <= 1.0

    available = st.none() | st.lists(st.sampled_from(sorted(COSTS)), max_size=3)
    keys = st.none() | st.sampled_from([f"k{i}" for i in range(5)])
    # A share of what the clock shows, or rounds ahead of it; mostly now.
    times = st.none() | st.sampled_from([0.0, 0.5, 0.9, 1.0, 3, 20])

    def time_of(self, when: float | None) -> float | None:
        if when is None:
            return None
        return float(self.model.clock + when) if isinstance(when, int) else round(self.model.clock * when) + 0.0

    @rule(target=made, context=st.sampled_from(CONTEXTS), available=available, key=keys, when=times)
    def decide(self, context: str, available: list[str] | None, key: str | None, when: float | None) -> Any:
        model, at = self.model, self.time_of(when)
        asked = ("decide", context, None if available is None else frozenset(available), at)

        def call() -> doral.Decision:
            return self.campaign.decide(context, available, key, at)

        if key is not None and key in model.keys:
            *before, decision_id = model.keys[key]
            if tuple(before) != asked:
                with pytest.raises(KeyReused):
                    call()
            else:
                self.same(call(), str(decision_id))
            return multiple()
        if model.closed:
            with pytest.raises(CampaignClosed):
                call()
            return multiple()
        one = call()
        self.enter(one, context, available, at)
        if key is not None:
            model.keys[key] = (*asked, one.id)
        return one.id

    @rule(target=made, contexts=st.lists(st.sampled_from(CONTEXTS), max_size=6))
    def decide_many(self, contexts: list[str]) -> Any:
        if self.model.closed:
            if contexts:
                with pytest.raises(CampaignClosed):
                    self.campaign.decide_many(contexts)
            return multiple()
        made = self.campaign.decide_many(contexts)
        for one, context in zip(made, contexts, strict=True):
            self.enter(one, context)
        return multiple(*(one.id for one in made))

    # --- decisions that were made elsewhere -------------------------------------------------------------------------

    @rule(
        target=made,
        context=st.sampled_from(CONTEXTS),
        arm=st.none() | st.sampled_from(sorted(COSTS)),
        when=st.sampled_from([0.0, 0.5, 1.0, 2]),
        delay=st.none() | st.sampled_from([-1.0, 0.0, 5.0, 12.0, 13.0]),
        cost=st.none() | st.sampled_from([0.0, 0.05, 1.5]),
        spend=st.booleans(),
        key=keys,
    )
    def record(
        self, context: str, arm: str | None, when: float, delay: float | None, cost: float | None, spend: bool,
        key: str | None,
    ) -> Any:  # fmt: skip
        model, at = self.model, self.time_of(when)
        assert at is not None
        answer: dict[str, Any] = {} if delay is None else {"reward": 0.25, "answered_at": at + delay}
        price = 0.0 if arm is None else model.costs[arm] if cost is None else cost
        asked = ("record", context, arm, at, delay, price, spend)

        def call() -> doral.Decision:
            return self.campaign.record(context, arm, at, cost=cost, spend=spend, key=key, **answer)

        if delay is not None and (arm is None or delay < 0):
            with pytest.raises(doral.InvalidValue):
                call()
            return multiple()
        if key is not None and key in model.keys:
            *before, decision_id = model.keys[key]
            if tuple(before) != asked:
                with pytest.raises(KeyReused):
                    call()
            else:
                self.same(call(), str(decision_id))
            return multiple()
        if model.closed:
            with pytest.raises(CampaignClosed):
                call()
            return multiple()
        if spend and dec(price) > model.left:
            with pytest.raises(doral.InvalidValue):
                call()
            return multiple()
        made = call()
        one = One(context, arm, price, at, "skipped" if arm is None else "pending", is_in_ledger=spend)
        if delay is not None:
            one.state = "late" if delay > DEADLINE else "returned"
            one.reward = one.first_reward = 0.25
            one.answered_at = at + delay
        elif arm is not None and model.clock - at > DEADLINE:
            one.state = "expired"
        if one.state not in ("pending", "skipped"):
            one.actual = one.reserved
        model.now(at)
        if delay is not None:
            model.now(at + delay)
        model.rounds += spend
        assert made.round == model.rounds
        model.decisions[made.id] = one
        self.same(made, made.id)
        if key is not None:
            model.keys[key] = (*asked, made.id)
        return made.id

    # --- answers ----------------------------------------------------------------------------------------------------

    rewards = st.sampled_from([0.0, 0.25, 1.0])
    shares = st.none() | st.sampled_from([0.0, 0.5, 1.0])
    answer_keys = st.none() | st.sampled_from([f"a{i}" for i in range(4)])

    def cost_of(self, decision_id: str, share: float | None) -> float | None:
        return None if share is None else round(self.model.decisions[decision_id].cost * share, 3)

    def is_settled(self, call: Any, key: str | None, asked: object, decision_id: str) -> bool:
        """Whether the key, or that the decision is gone, says already what comes out."""
        model = self.model
        if decision_id not in model.decisions:  # made after the backup that was restored
            with pytest.raises(UnknownDecision):
                call()
            return True
        if key is None or key not in model.answer_keys:
            return False
        if model.answer_keys[key] != asked:
            with pytest.raises(KeyReused):
                call()
        else:
            self.same(call(), decision_id)
        return True

    def nothing_new(self, call: Any, key: str | None, asked: object, decision_id: str, at: float | None) -> None:
        """A request that changes nothing; its key is used all the same."""
        if key is not None:
            self.model.now(at)
            self.model.answer_keys[key] = asked
        self.same(call(), decision_id)

    def answered(self, one: One, own: float, reward: float, actual: float | None) -> None:
        one.actual = one.booked if actual is None else actual
        one.state = "late" if own - one.at > DEADLINE else "returned"
        one.reward = one.first_reward = reward
        one.first_actual, one.answered_at = actual, own

    @rule(decision_id=made, reward=rewards, share=shares, key=answer_keys, when=times)
    def feedback(
        self, decision_id: str, reward: float, share: float | None, key: str | None, when: float | None
    ) -> None:
        model, at = self.model, self.time_of(when)
        one = model.decisions.get(decision_id)
        actual = None if one is None else self.cost_of(decision_id, share)
        asked = ("feedback", decision_id, reward, actual, at)

        def call() -> doral.Decision:
            return self.campaign.feedback(decision_id, reward, key=key, actual_cost=actual, at=at)

        if self.is_settled(call, key, asked, decision_id):
            return
        assert one is not None
        if one.state in ("returned", "late"):
            is_same = reward in (one.reward, one.first_reward) and actual in (None, one.first_actual, one.actual)
            if is_same:
                self.nothing_new(call, key, asked, decision_id, at)
                return
        is_too_early = at is not None and at < one.at
        if one.state not in ("pending", "expired") or self.costs_too_much(one, actual):
            # Where two things are wrong, it is told of one of them.
            with pytest.raises((WrongState, doral.InvalidValue) if is_too_early else WrongState):
                call()
            return
        if is_too_early:
            with pytest.raises(doral.InvalidValue):
                call()
            return
        self.answered(one, model.now(at), reward, actual)
        if key is not None:
            model.answer_keys[key] = asked
        self.same(call(), decision_id)

    def costs_too_much(self, one: One, actual: float | None) -> bool:
        if actual is None:
            return False
        return actual > one.reserved or dec(actual) - dec(one.booked) > self.model.left

    @rule(decision_id=made, reward=rewards, share=shares, key=answer_keys, when=times)
    def correct(
        self, decision_id: str, reward: float, share: float | None, key: str | None, when: float | None
    ) -> None:
        model, at = self.model, self.time_of(when)
        one = model.decisions.get(decision_id)
        actual = None if one is None else self.cost_of(decision_id, share)
        asked = ("correct", decision_id, reward, actual, at)

        def call() -> doral.Decision:
            return self.campaign.correct(decision_id, reward, key=key, actual_cost=actual, at=at)

        if self.is_settled(call, key, asked, decision_id):
            return
        assert one is not None
        if one.state in ("returned", "late") and reward == one.reward and actual in (None, one.actual):
            self.nothing_new(call, key, asked, decision_id, None)
            return
        if one.state not in ("returned", "late") or self.costs_too_much(one, actual):
            with pytest.raises(WrongState):
                call()
            return
        if at is not None and at < one.at:
            with pytest.raises(doral.InvalidValue):
                call()
            return
        model.now(at)
        one.reward = reward
        one.actual = one.actual if actual is None else actual
        if key is not None:
            model.answer_keys[key] = asked
        self.same(call(), decision_id)

    @rule(decision_id=made, key=answer_keys, when=times)
    def cancel(self, decision_id: str, key: str | None, when: float | None) -> None:
        model, at = self.model, self.time_of(when)
        one = model.decisions.get(decision_id)
        asked = ("cancel", decision_id, at)

        def call() -> doral.Decision:
            return self.campaign.cancel(decision_id, key=key, at=at)

        if self.is_settled(call, key, asked, decision_id):
            return
        assert one is not None
        if one.state in ("skipped", "returned", "late"):
            with pytest.raises(WrongState):
                call()
            return
        if one.state == "cancelled":
            self.nothing_new(call, key, asked, decision_id, None)
            return
        if at is not None and at < one.at:
            with pytest.raises(doral.InvalidValue):
                call()
            return
        model.now(at)
        one.state, one.actual = "cancelled", 0.0
        if key is not None:
            model.answer_keys[key] = asked
        self.same(call(), decision_id)

    @rule(decision_id=consumes(made), rewards=st.lists(rewards, min_size=1, max_size=3))
    def feedback_many(self, decision_id: str, rewards: list[float]) -> None:
        """Several answers to one decision in one batch: the same ones are fine, different ones refuse the batch."""
        batch = [(decision_id, reward) for reward in rewards]
        if decision_id not in self.model.decisions:
            return
        one = self.model.decisions[decision_id]
        if one.state in ("pending", "expired") and len(set(rewards)) == 1:
            self.answered(one, self.model.now(), rewards[0], None)
            for shown in self.campaign.feedback_many(batch):
                self.same(shown, decision_id)
        elif one.state in ("returned", "late") and all(r in (one.reward, one.first_reward) for r in rewards):
            self.campaign.feedback_many(batch)
        else:
            with pytest.raises(WrongState):
                self.campaign.feedback_many(batch)

    @rule(later=st.integers(0, 20), release=st.booleans())
    def expire(self, later: int, release: bool) -> None:
        """In the order of the log, up to the first decision that is not too old."""
        model = self.model
        now = max(model.clock, float(model.rounds + later))
        upto, old = model.expired_upto, []
        for decision_id, one in model.decisions.items():
            if now - one.at <= DEADLINE and number_of(decision_id) > model.expired_upto:
                break
            upto = max(upto, number_of(decision_id))
            if one.state == "pending":
                old.append(one)
        assert expire_as_before(self.campaign, now, release=release) == len(old)
        for one in old:
            one.state, one.actual = "expired", 0.0 if release else one.reserved
        if old:
            model.clock, model.expired_upto = now, upto

    @rule(to=st.none() | st.sampled_from([0.0, 0.5, 0.99]))
    def repair_clock(self, to: float | None) -> None:
        model = self.model
        target = float(model.rounds + 1) if to is None else self.time_of(to)
        assert target is not None
        if target >= model.clock or target < model.rounds + 1:
            with pytest.raises(doral.InvalidValue):
                self.campaign.repair_clock(None if to is None else target)
            return
        self.campaign.repair_clock(None if to is None else target)
        model.clock = target
        for one in model.decisions.values():
            one.at = min(one.at, target)
            one.answered_at = None if one.answered_at is None else min(one.answered_at, target)

    # --- changes ----------------------------------------------------------------------------------------------------

    def change(self, call: Any, key: str | None, what: object) -> bool:
        """Whether a change takes effect."""
        model = self.model
        if key is not None and key in model.change_keys:
            if model.change_keys[key] != what:
                with pytest.raises(KeyReused):
                    call()
            else:
                call()
            return False
        if model.closed:
            with pytest.raises(CampaignClosed):
                call()
            return False
        model.now()
        call()
        if key is not None:
            model.change_keys[key] = what
        return True

    change_keys = st.none() | st.sampled_from(["c0", "c1"])

    @rule(amount=st.sampled_from([0.1, 1.0]), key=change_keys)
    def top_up(self, amount: float, key: str | None) -> None:
        if self.change(lambda: self.campaign.top_up(amount, key=key), key, ("top up", amount)):
            self.model.total += dec(amount)

    @rule(rounds=st.sampled_from([1, 20]), key=change_keys)
    def extend(self, rounds: int, key: str | None) -> None:
        if self.change(lambda: self.campaign.extend(rounds, key=key), key, ("extend", rounds)):
            self.model.horizon += rounds

    @precondition(lambda self: not self.model.closed)
    @rule(name=st.sampled_from(sorted(COSTS)), what=st.sampled_from(["pause", "resume", "retire"]))
    def change_arm(self, name: str, what: str) -> None:
        model = self.model
        call = getattr(self.campaign, f"{what}_arm")
        if name in model.retired and what != "retire":
            with pytest.raises(doral.InvalidValue):
                call(name)
            return
        is_change = {"pause": name not in model.off, "resume": name in model.off, "retire": name not in model.retired}
        if is_change[what]:
            model.now()
        call(name)
        {"pause": model.off.add, "resume": model.off.discard, "retire": model.retired.add}[what](name)

    @precondition(lambda self: not self.model.closed and len(self.model.costs) < 6)
    @rule(cost=st.sampled_from([0.1, 0.2]))
    def add_arm(self, cost: float) -> None:
        name = f"new{len(self.model.costs)}"
        self.model.now()
        self.campaign.add_arm(doral.Arm(name, features=[0.5, 0.5], cost=cost))
        self.model.costs[name] = cost

    @precondition(lambda self: self.model.rounds > 15)
    @rule()
    def close(self) -> None:
        if not self.model.closed:
            self.model.now()
        self.campaign.close()
        self.model.closed = True

    # --- faults and looks -------------------------------------------------------------------------------------------

    @rule()
    def reopen(self) -> None:
        self.campaign._session.close()
        if self.storage != "memory":
            self.store.close()
            self.store = doral.open(self.url)
            self.campaign = self.store.campaign("machine")

    @rule(context=st.sampled_from(CONTEXTS))
    def fork(self, context: str) -> None:
        """A child that uses what it inherited is refused, and changes nothing."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.campaign.decide(context)
            except doral.DoralError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            assert "open it again" in pipe.read()
        os.waitpid(child, 0)

    @precondition(lambda self: self.storage != "memory")
    @rule(
        place=st.floats(0, 1, exclude_max=True),
        what=st.sampled_from(["kind = 2", "clock = clock + 1", "context = 1", "cost = 0.1", "reward = 0.5", "arm = 1",
                              "decision = NULL", "number = number + 1", "data = '{}'", "happened = 1", "at = at + 1"]),
    )  # fmt: skip
    def damage(self, place: float, what: str) -> None:
        """One value is changed, and changed back: whoever opens the campaign meanwhile is told, or nothing is wrong."""
        sequence = 1 + int(place * self.campaign.report().events)
        where = f"WHERE campaign_id = {self.campaign._session.row.id} AND sequence = {sequence}"
        before = self.sql(f"SELECT {', '.join(COLUMNS)} FROM events {where}")
        truth = (self.campaign.report().to_dict(), list(self.campaign.decisions()))
        self.sql(f"UPDATE events SET {what} {where}")
        is_changed = self.sql(f"SELECT {', '.join(COLUMNS)} FROM events {where}") != before
        with doral.open(self.url) as store:
            campaign = store.campaign("machine")
            try:
                assert (campaign.report().to_dict(), list(campaign.decisions())) == truth
            except BrokenLog:
                assert is_changed
            if is_changed:
                with pytest.raises(BrokenLog):
                    campaign.verify()
        marks = ", ".join(f"{column} = ?" for column in COLUMNS)
        self.sql(f"UPDATE events SET {marks} {where}", before[0])

    @precondition(lambda self: self.storage != "memory")
    @rule()
    def backup(self) -> None:
        number = self.campaign._session.row.id
        rows = {
            name: self.sql(f"SELECT * FROM {name} WHERE campaign_id = {number}") for name in ("events", "snapshots")
        }
        rows["head"] = self.sql(f"SELECT head, last_sequence FROM campaigns WHERE id = {number}")
        self.saved = (rows, copy.deepcopy(self.model))

    @precondition(lambda self: hasattr(self, "saved"))
    @rule()
    def restore(self) -> None:
        """In place, under the running session."""
        rows, model = self.saved
        number = self.campaign._session.row.id
        self.sql(f"DELETE FROM events WHERE campaign_id = {number}")
        self.sql(f"DELETE FROM snapshots WHERE campaign_id = {number}")
        self.sql(f"UPDATE campaigns SET head = ?, last_sequence = ? WHERE id = {number}", rows["head"][0])
        for table in ("events", "snapshots"):
            for row in rows[table]:
                self.sql(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        self.model = copy.deepcopy(model)

    def sql(self, text: str, parameters: Sequence[object] = ()) -> list[Any]:
        if self.storage == "sqlite":
            connection = sqlite3.connect(self.folder / "c.db", isolation_level=None)
            try:
                return connection.execute(text, parameters).fetchall()
            finally:
                connection.close()
        with psycopg.connect(self.url, options="-c search_path=doral") as pg:
            cursor = pg.execute(text.replace("?", "%s"), parameters)
            return cursor.fetchall() if cursor.description else []

    @rule()
    def snapshot(self) -> None:
        self.campaign.save_snapshot()

    @rule()
    def ask_about_others(self) -> None:
        for call in (self.campaign.decision, self.campaign.cancel, lambda i: self.campaign.feedback(i, 1.0)):
            for unknown in (self.foreign.id, self.foreign.id[:9] + "99999", "x"):
                with pytest.raises(UnknownDecision):
                    call(unknown)

    def same(self, shown: doral.Decision, decision_id: str) -> None:
        one = self.model.decisions[decision_id]
        actual = None if one.state in ("pending", "skipped") else one.actual
        if not one.is_in_ledger and actual is not None:  # what it cost those who made it
            actual = shown.actual_cost
        assert (shown.id, shown.arm, shown.context, shown.cost) == (decision_id, one.arm, one.context, one.cost)
        assert (shown.state, shown.reward, shown.actual_cost) == (one.state, one.reward, actual)
        assert (shown.decided_at, shown.answered_at) == (one.at, one.answered_at)
        assert shown.delay == (None if one.answered_at is None else one.answered_at - one.at)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "campaign"):
            return
        model, ledger = self.model, self.campaign.ledger()
        assert ledger.total == model.total
        assert ledger.left == model.left
        assert ledger.reserved == sum(dec(one.reserved) for one in model.decisions.values() if one.state == "pending")
        report = self.campaign.report()
        for state, count in report.decisions.items():
            assert count == sum(one.state == state for one in model.decisions.values())
        counted = sum(one.reward or 0.0 for one in model.decisions.values() if one.state == "returned")
        assert report.reward == pytest.approx(counted, abs=1e-9)
        assert (report.arrivals, report.horizon, report.is_closed) == (model.rounds, model.horizon, model.closed)

    @rule()
    def look_at_all(self) -> None:
        for shown in self.campaign.decisions():
            self.same(shown, shown.id)
        fold_of(self.campaign).check()


class MemoryMachine(CampaignMachine):
    storage = "memory"


class SqliteMachine(CampaignMachine):
    storage = "sqlite"


# `make torture` looks further, and somewhere else every time.
TORTURE = int(os.environ.get("DORAL_TORTURE", "0"))
_SETTINGS: dict[str, Any] = {
    "deadline": None,
    "stateful_step_count": 50 if TORTURE else 35,
    "suppress_health_check": list(HealthCheck),
    "derandomize": not TORTURE,
}


def examples(usual: int) -> Any:
    return settings(max_examples=usual * (30 if TORTURE else 1), **_SETTINGS)


TestMemory = MemoryMachine.TestCase
TestMemory.settings = examples(60)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = examples(15)


def test_postgres(postgres_url: str) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class PostgresMachine(CampaignMachine):
        storage = "postgres"
        postgres = postgres_url

    run_state_machine_as_test(PostgresMachine, settings=examples(10))
