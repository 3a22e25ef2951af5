"""Every operation in every order, against a tiny model of what a campaign is, on every storage."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

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
from doral.live.errors import CampaignClosed, KeyReused, UnknownDecision, WrongState
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.conftest import clear_postgres

COSTS = {"a": 0.1, "b": 0.3, "c": 0.7}
CONTEXTS = ("x", "y")
DEADLINE = 12.0


def dec(number: float) -> Decimal:
    return Decimal(repr(number))


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
    actual: float = 0.0
    first_actual: float | None = None


@dataclass
class Model:
    """A campaign without an engine: which arm is chosen is the engine's business, everything else is checked."""

    total: Decimal
    horizon: int
    costs: dict[str, float] = field(default_factory=lambda: dict(COSTS))
    off: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    decisions: dict[str, One] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)  # of decisions
    answer_keys: dict[str, tuple[str, str, float | None]] = field(default_factory=dict)
    change_keys: dict[str, object] = field(default_factory=dict)
    clock: float = 0.0
    rounds: int = 0
    closed: bool = False

    def now(self) -> float:
        """The clock shows the number of the coming arrival, unless it was further already."""
        self.clock = max(self.clock, float(self.rounds + 1))
        return self.clock

    def used(self) -> Decimal:
        used = Decimal(0)
        for one in self.decisions.values():
            used += dec(one.cost) if one.state == "pending" else dec(one.actual)
        return used


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
            options = doral.policy("doral", screening="none", learner=policy)
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

    def enter(self, one: doral.Decision, context: str, available: list[str] | None) -> None:
        model = self.model
        at = model.now()
        model.rounds += 1
        assert (one.round, one.decided_at, one.context) == (model.rounds, at, context)
        offered = set(model.costs if available is None else available) - model.off - model.retired
        left = model.total - model.used()
        affordable = {name for name in offered if dec(model.costs[name]) <= left}
        if one.arm is None:
            assert (one.state, one.cost) == ("skipped", 0.0)
            model.decisions[one.id] = One(context, None, 0.0, at, "skipped")
        else:
            assert one.arm in affordable
            assert (one.state, one.cost) == ("pending", model.costs[one.arm])
            model.decisions[one.id] = One(context, one.arm, one.cost, at, "pending")
        if model.rounds > model.horizon:
            assert one.reason == "skipped: the horizon is over"
        assert 0.0 < (one.probability or 0.0) <= 1.0

    available = st.none() | st.lists(st.sampled_from(sorted(COSTS)), max_size=3)
    keys = st.none() | st.sampled_from([f"k{i}" for i in range(5)])

    @rule(target=made, context=st.sampled_from(CONTEXTS), available=available, key=keys)
    def decide(self, context: str, available: list[str] | None, key: str | None) -> Any:
        model = self.model
        known = None if key is None else model.keys.get(key)
        if known is not None:
            if model.decisions[known].context != context:
                with pytest.raises(KeyReused):
                    self.campaign.decide(context, available, key)
                return multiple()
            self.same(self.campaign.decide(context, available, key), known)
            return multiple()
        if model.closed:
            with pytest.raises(CampaignClosed):
                self.campaign.decide(context, available, key)
            return multiple()
        one = self.campaign.decide(context, available, key)
        self.enter(one, context, available)
        if key is not None:
            model.keys[key] = one.id
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
            self.enter(one, context, None)
        return multiple(*(one.id for one in made))

    # --- answers ----------------------------------------------------------------------------------------------------

    rewards = st.sampled_from([0.0, 0.25, 1.0])
    shares = st.none() | st.sampled_from([0.0, 0.5, 1.0])
    answer_keys = st.none() | st.sampled_from([f"a{i}" for i in range(4)])

    def cost_of(self, decision_id: str, share: float | None) -> float | None:
        return None if share is None else round(self.model.decisions[decision_id].cost * share, 3)

    @rule(decision_id=made, reward=rewards, share=shares, key=answer_keys)
    def feedback(self, decision_id: str, reward: float, share: float | None, key: str | None) -> None:
        model, one = self.model, self.model.decisions[decision_id]
        actual = self.cost_of(decision_id, share)

        def call() -> doral.Decision:
            return self.campaign.feedback(decision_id, reward, key=key, actual_cost=actual)

        if key is not None and key in model.answer_keys:
            if model.answer_keys[key] != ("feedback", decision_id, reward):
                with pytest.raises(KeyReused):
                    call()
            else:
                self.same(call(), decision_id)
            return
        if one.state in ("skipped", "cancelled"):
            with pytest.raises(WrongState):
                call()
            return
        if one.state in ("returned", "late"):
            is_same = reward in (one.reward, one.first_reward) and actual in (None, one.first_actual, one.actual)
            if is_same:
                self.same(call(), decision_id)
            else:
                with pytest.raises(WrongState):
                    call()
            return
        now = model.now()
        one.state = "late" if one.state == "expired" or now - one.at > DEADLINE else "returned"
        one.reward = one.first_reward = reward
        one.actual = one.cost if actual is None else actual
        one.first_actual = actual
        if key is not None:
            model.answer_keys[key] = ("feedback", decision_id, reward)
        self.same(call(), decision_id)

    @rule(decision_id=made, reward=rewards, share=shares, key=answer_keys)
    def correct(self, decision_id: str, reward: float, share: float | None, key: str | None) -> None:
        model, one = self.model, self.model.decisions[decision_id]
        actual = self.cost_of(decision_id, share)

        def call() -> doral.Decision:
            return self.campaign.correct(decision_id, reward, key=key, actual_cost=actual)

        if key is not None and key in model.answer_keys:
            if model.answer_keys[key] != ("correct", decision_id, reward):
                with pytest.raises(KeyReused):
                    call()
            else:
                self.same(call(), decision_id)
            return
        if one.state not in ("returned", "late"):
            with pytest.raises(WrongState):
                call()
            return
        if reward == one.reward and actual in (None, one.actual):
            self.same(call(), decision_id)
            return
        if actual is not None and dec(actual) - dec(one.actual) > model.total - model.used():
            with pytest.raises(WrongState):
                call()
            return
        model.now()
        one.reward = reward
        one.actual = one.actual if actual is None else actual
        if key is not None:
            model.answer_keys[key] = ("correct", decision_id, reward)
        self.same(call(), decision_id)

    @rule(decision_id=made)
    def cancel(self, decision_id: str) -> None:
        one = self.model.decisions[decision_id]
        if one.state in ("skipped", "returned", "late"):
            with pytest.raises(WrongState):
                self.campaign.cancel(decision_id)
            return
        if one.state != "cancelled":
            self.model.now()
        one.state, one.actual = "cancelled", 0.0
        self.same(self.campaign.cancel(decision_id), decision_id)

    @rule(decision_id=consumes(made), rewards=st.lists(rewards, min_size=1, max_size=3))
    def feedback_many(self, decision_id: str, rewards: list[float]) -> None:
        """Several answers to one decision in one batch: the same ones are fine, different ones refuse the batch."""
        one = self.model.decisions[decision_id]
        batch = [(decision_id, reward) for reward in rewards]
        if one.state in ("pending", "expired") and len(set(rewards)) == 1:
            now = self.model.now()
            one.state = "late" if one.state == "expired" or now - one.at > DEADLINE else "returned"
            one.reward = one.first_reward = rewards[0]
            one.actual = one.cost
            for shown in self.campaign.feedback_many(batch):
                self.same(shown, decision_id)
        elif one.state in ("returned", "late") and all(r in (one.reward, one.first_reward) for r in rewards):
            self.campaign.feedback_many(batch)
        else:
            with pytest.raises(WrongState):
                self.campaign.feedback_many(batch)

    @rule(later=st.integers(0, 30))
    def expire(self, later: int) -> None:
        model = self.model
        now = max(model.clock, float(model.rounds + later))
        old = [one for one in model.decisions.values() if one.state == "pending" and now - one.at > DEADLINE]
        assert self.campaign.expire(now) == len(old)
        for one in old:
            one.state, one.actual = "expired", one.cost
        if old:
            model.clock = now

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
        assert (shown.id, shown.arm, shown.context, shown.cost) == (decision_id, one.arm, one.context, one.cost)
        assert (shown.state, shown.reward, shown.actual_cost) == (one.state, one.reward, actual)
        assert shown.decided_at == one.at

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "campaign"):
            return
        model, ledger = self.model, self.campaign.ledger()
        assert ledger.total == model.total
        assert ledger.left == model.total - model.used()
        assert ledger.reserved == sum(dec(one.cost) for one in model.decisions.values() if one.state == "pending")
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
    return settings(max_examples=usual * (10 if TORTURE else 1), **_SETTINGS)


TestMemory = MemoryMachine.TestCase
TestMemory.settings = examples(200)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = examples(30)


def test_postgres(postgres_url: str) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class PostgresMachine(CampaignMachine):
        storage = "postgres"
        postgres = postgres_url

    run_state_machine_as_test(PostgresMachine, settings=examples(20))
