"""Decisions that were made elsewhere: they teach, and enter the ledger only if asked."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import CampaignClosed, KeyReused
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole

DAY = 86_400.0
DEADLINE = 14 * DAY


def make(store: Store, name: str = "kits", began: float = 90.0, **changes: Any) -> Campaign:
    given: dict[str, Any] = {
        "arms": [doral.Arm("a", features=[1.0, 0.0]), doral.Arm("b", features=[0.0, 1.0], cost=2.0)],
        "contexts": ["old", "young"],
        "budget": 1_000,
        "horizon": 1_000,
        "deadline": DEADLINE,
    }
    problem = doral.Problem(**{**given, **changes})
    return store.create(name, problem, policy="doral-otf", seed=1, at=time.time() - began * DAY)


def history(n: int, days_ago: float) -> list[dict[str, Any]]:
    """Arm b is better, and answers within a week."""
    rng = random.Random(3)
    now = time.time()
    records = []
    for i in range(n):
        at = now - days_ago * DAY + i * (days_ago - 20) * DAY / n
        arm = rng.choice("ab")
        one: dict[str, Any] = {"context": rng.choice(["old", "young"]), "arm": arm, "at": at, "probability": 0.5}
        if rng.random() < 0.8:
            mean = 1.0 if arm == "b" else 0.1
            one |= {"reward": rng.gauss(mean, 0.1), "answered_at": at + rng.random() * 7 * DAY}
        records.append(one)
    rng.shuffle(records)
    return records


def test_history_teaches_and_costs_nothing(store: Store) -> None:
    campaign = make(store)
    made = campaign.record_many(history(400, 80))
    report = campaign.report()
    assert (report.arrivals, float(report.ledger.left), float(report.ledger.spent)) == (0, 1_000.0, 0.0)
    assert all(one.is_recorded and not one.is_in_ledger and one.probability == 0.5 for one in made)
    assert {one.state for one in made} == {"returned", "expired"}
    assert {one.reason_code for one in made} == {"made-elsewhere"}
    following = campaign.decide_many(["old", "young"] * 50)
    assert [one.round for one in following] == list(range(1, 101))
    played = [one.arm for one in following if one.arm is not None]
    assert played.count("b") > 0.8 * len(played)  # twice as dear, ten times as good
    values = campaign.report().arms[1].view
    assert values.return_curve[-1] == pytest.approx(0.8, abs=0.1)
    adds_up(campaign)
    log_is_whole(campaign)


def test_one_by_one_and_together_are_the_same(store: Store) -> None:
    together, single = make(store, "one"), make(store, "two")
    records = sorted(history(60, 80), key=lambda one: one["at"])
    for one in records:  # answers follow in their time only if they are told in between
        one.pop("reward", None), one.pop("answered_at", None)
    together.record_many(records)
    for one in records:
        single.record(**one)
    assert together.report().decisions == single.report().decisions
    assert [one.arm for one in together.decide_many(["old"] * 30)] == [
        one.arm for one in single.decide_many(["old"] * 30)
    ]


def test_it_enters_the_ledger_if_asked(store: Store) -> None:
    campaign = make(store, budget=5)
    now = time.time()
    paid = campaign.record("old", "b", at=now - DAY, spend=True)
    assert (paid.state, paid.cost, paid.is_in_ledger, paid.round) == ("pending", 2.0, True, 1)
    assert float(campaign.ledger().reserved) == 2.0
    cheap = campaign.record("old", "b", at=now - DAY, cost=0.5, spend=True, reward=1.0, answered_at=now)
    assert (cheap.state, cheap.cost, cheap.actual_cost) == ("returned", 0.5, 0.5)
    gone = campaign.record("old", "a", at=now - 30 * DAY, spend=True)
    assert (gone.state, gone.actual_cost) == ("expired", 1.0)
    assert float(campaign.ledger().spent) == 1.5
    with pytest.raises(InvalidValue, match="budget has only 1.5 left"):
        campaign.record("old", "b", at=now, spend=True)
    with pytest.raises(InvalidValue, match="budget has only 1.5 left"):
        campaign.record_many([{"context": "old", "arm": "a", "at": now, "spend": True}] * 2)
    assert campaign.feedback(paid.id, 1.0, actual_cost=1.0).actual_cost == 1.0
    assert campaign.cancel(campaign.record("old", "a", at=now, spend=True).id).state == "cancelled"
    assert campaign.record("old", None, at=now, spend=True).state == "skipped"
    adds_up(campaign)
    log_is_whole(campaign)


def test_answers_follow_or_come_with_it(store: Store) -> None:
    campaign = make(store)
    now = time.time()
    one = campaign.record("old", "a", at=now - 20 * DAY)
    assert one.state == "expired"
    told = campaign.feedback(one.id, 1.0, at=now - 18 * DAY)
    assert (told.state, told.actual_cost) == ("returned", 1.0)
    assert told.delay == pytest.approx(2 * DAY)
    late = campaign.record("old", "a", at=now - 40 * DAY, reward=1.0, answered_at=now)
    assert late.state == "late"
    assert float(campaign.ledger().left) == 1_000
    assert campaign.report().reward == 1.0
    assert campaign.correct(told.id, 0.5).reward == 0.5
    log_is_whole(campaign)


def test_what_is_wrong_is_refused(store: Store) -> None:
    campaign = make(store, reward_range=(0.0, 2.0))
    now = time.time()
    good: dict[str, Any] = {"context": "old", "arm": "a", "at": now - DAY}
    for field, wrong in (
        ("at", {"at": now + DAY}),
        ("at", {"at": now - 100 * DAY}),
        ("at", {"at": None}),
        ("answered_at", {"reward": 1.0}),
        ("answered_at", {"answered_at": now}),
        ("answered_at", {"reward": 1.0, "answered_at": now - 2 * DAY}),
        ("answered_at", {"reward": 1.0, "answered_at": now + DAY}),
        ("answered_at", {"arm": None, "reward": 1.0, "answered_at": now}),
        ("reward", {"reward": 3.0, "answered_at": now}),
        ("cost", {"cost": -1.0}),
        ("probability", {"probability": 0.0}),
        ("probability", {"probability": 1.5}),
        ("spend", {"spend": "yes"}),
        ("record", {"reword": 1.0}),
    ):
        with pytest.raises(doral.DoralError, match=field):
            campaign.record_many([good, {**good, **wrong}])
    with pytest.raises(doral.DoralError, match="unknown arm"):
        campaign.record("old", "z", at=now)
    assert campaign.report().events == 1
    campaign.close()
    with pytest.raises(CampaignClosed):
        campaign.record(**good)


def test_keys(store: Store) -> None:
    campaign = make(store)
    now = time.time()
    asked: dict[str, Any] = {"context": "old", "arm": "a", "at": now - DAY, "reward": 1.0, "answered_at": now}
    first = campaign.record(**asked, key="visit-1")
    assert campaign.record(**asked, key="visit-1") == first
    assert campaign.record_many([{**asked, "key": "visit-1"}, {**asked, "key": "new"}] * 2)[::2] == [first, first]
    for other in ({"reward": 0.5}, {"answered_at": now - 1}, {"at": now - 2 * DAY}, {"arm": "b"}, {"spend": True}):
        with pytest.raises(KeyReused):
            campaign.record(**{**asked, **other}, key="visit-1")
    with pytest.raises(KeyReused):
        campaign.decide("old", key="visit-1")
    assert len(list(campaign.decisions())) == 2


def test_in_the_middle_of_a_running_campaign(store: Store) -> None:
    """Backdated ones among open ones: expiry, pages and replay keep their heads."""
    campaign = make(store, began=50)
    now = time.time()
    open_ones = [campaign.decide("old") for _ in range(10)]
    back = [campaign.record("young", "a", at=now - days * DAY) for days in (1, 5, 13, 15, 30)]
    assert [campaign.decision(one.id).state for one in back] == ["pending"] * 3 + ["expired"] * 2
    assert campaign.expire() == 0
    assert campaign.feedback(back[2].id, 1.0, at=now - 12 * DAY).state == "returned"
    assert len(list(campaign.decisions("pending"))) == len([one for one in open_ones if one.arm is not None]) + 2
    campaign.save_snapshot()
    campaign._session.close()
    log_is_whole(campaign)


def test_a_campaign_whose_refresh_is_due_is_reported() -> None:
    """Arrivals that were decided elsewhere go past the round of the next refresh, which only a decision makes."""
    with doral.open("memory://") as store:
        problem = doral.Problem(
            arms=[doral.Arm("a", cost=1.0), doral.Arm("b", cost=2.0)],
            contexts=["old", "young"],
            budget=1e6,
            horizon=100_000,
            deadline=500,
        )
        campaign = store.create("kits", problem, seed=1, clock="rounds")
        for number in range(900):
            made = campaign.decide("old" if number % 2 else "young")
            if made.arm:
                campaign.feedback(made.id, float(made.arm == "b"))
        campaign.record_many(
            [
                {"context": "old", "arm": "ab"[number % 2], "at": 1_000.0 + number, "spend": True}
                for number in range(300)
            ]
        )
        assert campaign.report().arrivals == 1_200
