"""What a campaign promises: exactly once, the budget, states, changes while it runs. On every storage."""

from __future__ import annotations

import csv
import math
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import doral
from doral._arrays import leaves
from doral.errors import InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import CampaignClosed, CampaignExists, KeyReused, UnknownDecision, WrongState
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from tests.live.checks import adds_up, expire_as_before, fold_of, log_is_whole
from tests.live.tapes import same_bits

COSTS = {"a": 0.1, "b": 0.2, "c": 0.7}


def problem(**changes: Any) -> doral.Problem:
    given: dict[str, Any] = {
        "arms": [doral.Arm(name, features=[i, 1.0], cost=cost) for i, (name, cost) in enumerate(COSTS.items())],
        "contexts": {"old": 0.3, "young": 0.7},
        "budget": 10.0,
        "horizon": 1000,
        "deadline": 20,
    }
    return doral.Problem(**{**given, **changes})


def make(
    store: Store, policy: Any = "d-linucb", clock: str = "rounds", name: str = "kits", at: Any = None, **changes: Any
) -> Campaign:
    return store.create(name, problem(**changes), policy=policy, seed=1, clock=clock, at=at)


def everything(campaign: Campaign) -> Any:
    """All that can be seen of a campaign, to notice any change."""
    return list(campaign.decisions()), campaign.ledger(), str(campaign.report()), fold_of(campaign).to_json()


# --- exactly once -------------------------------------------------------------------------------------------------


def test_the_same_key_is_the_same_decision(store: Store) -> None:
    campaign = make(store)
    first = campaign.decide("old", key="visit-1")
    before = everything(campaign)
    assert campaign.decide("old", key="visit-1") == first
    assert campaign.decide_many([{"context": "old", "key": "visit-1"}] * 2) == [first, first]
    assert everything(campaign) == before
    for other in ({"context": "young"}, {"context": "old", "available": ["b"]}, {"context": "old", "at": 1}):
        with pytest.raises(KeyReused, match="visit-1"):
            campaign.decide(**other, key="visit-1")
    assert everything(campaign) == before
    answered = campaign.feedback(first.id, 0.5)
    assert campaign.decide("old", key="visit-1") == answered  # the same decision, as it stands now


def test_a_key_twice_in_one_batch(store: Store) -> None:
    campaign = make(store)
    first, second, again = campaign.decide_many(
        [{"context": "old", "key": "x"}, "young", {"context": "old", "key": "x"}]
    )
    assert first == again != second
    assert campaign.report().arrivals == 2


def test_the_same_feedback_twice_counts_once(store: Store) -> None:
    campaign = make(store)
    made = campaign.decide("old")
    answered = campaign.feedback(made.id, 0.5)
    assert (answered.state, answered.reward, answered.delay) == ("returned", 0.5, 1.0)
    before = everything(campaign)
    for _ in range(3):
        assert campaign.feedback(made.id, 0.5) == answered
        assert campaign.feedback_many([(made.id, 0.5)] * 2) == [answered] * 2
    assert everything(campaign) == before
    with pytest.raises(WrongState, match="correct"):
        campaign.feedback(made.id, 0.6)
    assert everything(campaign) == before


def test_feedback_by_key(store: Store) -> None:
    campaign = make(store)
    one, two = campaign.decide_many(["old", "old"])
    campaign.feedback(one.id, 0.5, key="k")
    before = everything(campaign)
    campaign.feedback(one.id, 0.5, key="k")
    with pytest.raises(KeyReused):
        campaign.feedback(one.id, 0.7, key="k")
    with pytest.raises(KeyReused):
        campaign.feedback(two.id, 0.5, key="k")
    with pytest.raises(KeyReused):
        campaign.feedback_many(
            [{"decision_id": two.id, "reward": 0.1, "key": "n"}, {"decision_id": two.id, "reward": 0.2, "key": "n"}]
        )
    assert everything(campaign) == before
    campaign.correct(one.id, 0.9, key="better")
    assert campaign.correct(one.id, 0.9, key="better").reward == 0.9
    campaign.correct(one.id, 0.8)
    assert campaign.correct(one.id, 0.9, key="better").reward == 0.8  # an old request again: nothing happens
    assert campaign.feedback(one.id, 0.5, key="k").reward == 0.8
    assert campaign.feedback(one.id, 0.5).reward == 0.8  # the first answer, sent again by somebody who lost count
    assert campaign.report().corrections == 2


def test_zero_is_an_answer(store: Store) -> None:
    campaign = make(store)
    made = campaign.decide("old")
    answered = campaign.feedback(made.id, 0)
    assert (answered.state, answered.reward) == ("returned", 0.0)
    assert campaign.report().arms[["a", "b", "c"].index(made.arm or "")].answers == 1
    assert [one.id for one in campaign.decisions("returned")] == [made.id]


def test_a_correction_replaces(store: Store) -> None:
    campaign, other = make(store), make(store, name="told the truth at once")
    made = [campaign.decide("old") for _ in range(5)]
    also = [other.decide("old") for _ in range(5)]
    for one, same in zip(made, also, strict=True):
        campaign.feedback(one.id, 0.2)
        campaign.correct(one.id, 0.9)
        other.feedback(same.id, 0.9)
    assert campaign.report().reward == pytest.approx(4.5)
    assert campaign.decision(made[0].id).reward == 0.9
    ours, theirs = (fold_of(one).engine.state.ridge.estimate for one in (campaign, other))
    assert ours == pytest.approx(theirs, rel=1e-12)
    with pytest.raises(WrongState, match="feedback"):
        campaign.correct(campaign.decide("old").id, 1.0)


@pytest.mark.parametrize("learner", ["returned", "scaled", "thinned"])
def test_a_correction_reaches_every_learner(learner: Any, open_store: Callable[[str], Store]) -> None:
    policy = doral.policy("doral", screening="none", learner=learner, cutoff=10.0, pacing="greedy")
    campaign, other = (make(open_store("memory://"), policy, budget=10**4) for _ in range(2))
    for early in (True, False):
        # arms of which two are alike: which of them is played must not be for rounding to say
        ids = [[one.decide("old", available=["abc"[i % 3]]).id for i in range(12)] for one in (campaign, other)]
        for mine, theirs in zip(*ids, strict=True):
            campaign.feedback(mine, 0.2)
            other.feedback(theirs, 0.7)
        if not early:  # after the cut-off, when a decision has left the engine
            for one in (campaign, other):
                one.decide_many(["young"] * 40)
        for mine in ids[0]:
            campaign.correct(mine, 0.7)
    for one in (campaign, other):
        one.decide_many(["young"] * 40)
    ours, theirs = (fold_of(one).engine.state.ridge.estimate for one in (campaign, other))
    assert ours[0] == pytest.approx(theirs[0], rel=1e-9)


# --- refusals -----------------------------------------------------------------------------------------------------


def test_what_is_refused_changes_nothing(store: Store) -> None:
    campaign = make(store, budget=1.0)
    other = make(store, name="another")
    foreign = other.decide("old")
    made, cancelled, answered = campaign.decide_many(["old"] * 3)
    campaign.cancel(cancelled.id)
    campaign.feedback(answered.id, 1.0)
    campaign.decide_many(["old"] * 30)
    skipped = campaign.decide("old")
    assert skipped.arm is None
    assert skipped.reason_code == "budget"
    before = everything(campaign)
    refused: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (UnknownName, "context", lambda: campaign.decide("olde")),
        (UnknownName, "arm", lambda: campaign.decide("old", available=["z"])),
        (InvalidValue, "available", lambda: campaign.decide("old", available="a")),
        (InvalidValue, "key", lambda: campaign.decide("old", key="")),
        (InvalidValue, "at", lambda: campaign.decide("old", at="now")),
        (InvalidValue, "arrival", lambda: campaign.decide_many([{"contxt": "old"}])),
        (UnknownName, "context", lambda: campaign.decide_many(["old", "olde"])),
        (InvalidValue, "reward", lambda: campaign.feedback(made.id, float("nan"))),
        (InvalidValue, "reward", lambda: campaign.feedback(made.id, float("inf"))),
        (InvalidValue, "reward", lambda: campaign.feedback(made.id, True)),
        (InvalidValue, "actual_cost", lambda: campaign.feedback(made.id, 1.0, actual_cost=-0.1)),
        (WrongState, "at most", lambda: campaign.feedback(made.id, 1.0, actual_cost=made.cost * 2)),
        (UnknownDecision, "no such", lambda: campaign.feedback(made.id + "999", 1.0)),
        (UnknownDecision, "give the id", lambda: campaign.feedback("nonsense", 1.0)),
        (UnknownDecision, "give the id", lambda: campaign.feedback(3, 1.0)),  # type: ignore[arg-type]
        (UnknownDecision, "another campaign", lambda: campaign.feedback(foreign.id, 1.0)),
        (UnknownDecision, "another campaign", lambda: campaign.cancel(foreign.id)),
        (UnknownDecision, "no such", lambda: campaign.decision(foreign.id.split("-")[0] and made.id[:9] + "1")),
        (WrongState, "cancelled", lambda: campaign.feedback(cancelled.id, 1.0)),
        (WrongState, "cancelled", lambda: campaign.correct(cancelled.id, 1.0)),
        (WrongState, "skipped", lambda: campaign.feedback(skipped.id, 1.0)),
        (WrongState, "skipped", lambda: campaign.cancel(skipped.id)),
        (WrongState, "answered", lambda: campaign.cancel(answered.id)),
        (WrongState, "cancelled", lambda: campaign.feedback_many([(made.id, 1.0), (cancelled.id, 1.0)])),
        (UnknownName, "state", lambda: campaign.decisions("open")),
        (UnknownName, "arm", lambda: campaign.pause_arm("z")),
        (InvalidValue, "appears twice", lambda: campaign.add_arm(doral.Arm("a", features=[0, 0]))),
        (InvalidValue, "number of features", lambda: campaign.add_arm(doral.Arm("n", features=[0]))),
        (InvalidValue, "amount", lambda: campaign.top_up(0)),
        (InvalidValue, "rounds", lambda: campaign.extend(-1)),
        (InvalidValue, "path", lambda: campaign.export("x.xlsx")),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()
        assert everything(campaign) == before, words
    assert everything(campaign) == before


def test_what_only_a_simulation_knows_is_refused(store: Store) -> None:
    with pytest.raises(InvalidValue, match="oracle"):
        make(store, policy="doral/literal")
    with pytest.raises(InvalidValue, match="instant"):
        make(store, policy=doral.policy("doral", censoring="instant"))
    with pytest.raises(InvalidValue, match="deadline"):
        make(store, policy="doral", clock="seconds", deadline=None)
    with pytest.raises(InvalidValue, match="clock"):
        make(store, clock="days")
    with pytest.raises(UnknownName, match="policy"):
        make(store, policy="dorla")
    with pytest.raises(InvalidValue, match="code="):
        make(store, policy=object)
    assert store.list() == []


def test_campaigns_of_a_store(store: Store) -> None:
    kits = make(store)
    with pytest.raises(CampaignExists):
        make(store)
    make(store, name="a second")
    assert store.list() == ["a second", "kits"]
    assert store.campaign("kits") is kits
    with pytest.raises(UnknownName, match="did you mean 'kits'"):
        store.campaign("kit")


# --- the budget ---------------------------------------------------------------------------------------------------


def test_the_budget_is_used_to_the_last_tenth_and_never_above(store: Store) -> None:
    campaign = make(store, budget=1.0)
    decisions = campaign.decide_many([{"context": "old", "available": ["a"]}] * 15)
    spent = sum(Decimal(repr(one.cost)) for one in decisions)
    assert Decimal("0.9") <= spent <= Decimal("1.0")  # floats may lose the last tenth, and must not invent one
    adds_up(campaign)
    assert decisions[-1].reason_code == "budget"


# From 0.7999999999999999 on, floats make one tenth more of the budget than there is.
@pytest.mark.parametrize("budget", [0.3, 0.7, 1.1, 2.3, 5.9, 0.7999999999999999, 0.9999999999999999, 4.999999999999999])
@pytest.mark.parametrize("arm", ["a", "b", "c"])
def test_rounding_never_overdraws(budget: float, arm: str, open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), budget=budget)
    for _ in range(3):  # cancelling moves the engine's floats up and down
        made = campaign.decide_many([{"context": "old", "available": [arm]}] * 70)
        for one in made:
            if one.arm is not None:
                campaign.cancel(one.id)
        adds_up(campaign)
    assert campaign.ledger().left == campaign.ledger().total


def test_cancel_and_actual_cost_give_back(store: Store) -> None:
    campaign = make(store)
    one, two, three = campaign.decide_many([{"context": "old", "available": ["c"]}] * 3)
    assert campaign.ledger().reserved == Decimal("2.1")
    assert campaign.cancel(one.id).state == "cancelled"
    assert campaign.cancel(one.id).actual_cost == 0.0
    assert campaign.ledger().left == Decimal("8.6")
    campaign.feedback(two.id, 1.0, actual_cost=0.1)
    assert campaign.ledger().spent == Decimal("0.1")
    assert campaign.ledger().released == Decimal("1.3")
    campaign.feedback(three.id, 1.0)
    campaign.correct(three.id, 1.0, actual_cost=0.0)
    assert campaign.ledger().spent == Decimal("0.1")
    assert campaign.correct(three.id, 1.0, actual_cost=0.7).actual_cost == 0.7
    assert campaign.ledger().spent == Decimal("0.8")
    adds_up(campaign)


def test_a_corrected_cost_cannot_take_what_is_not_there(store: Store) -> None:
    campaign = make(store, budget=1.0)
    first = campaign.decide("old", available=["c"])
    campaign.feedback(first.id, 1.0, actual_cost=0.0)
    campaign.decide_many([{"context": "old", "available": ["c"]}] * 3)
    before = everything(campaign)
    with pytest.raises(WrongState, match="0.3 left"):
        campaign.correct(first.id, 1.0, actual_cost=0.7)
    assert everything(campaign) == before


def test_top_up_and_extend(store: Store) -> None:
    campaign = make(store, budget=1.0, horizon=40)
    campaign.decide_many(["old"] * 30)
    assert campaign.decide("old").arm is None
    for _ in range(2):
        campaign.top_up(0.5, key="more")
    assert campaign.ledger().total == Decimal("1.5")
    assert campaign.decide("old").arm is not None
    campaign.decide_many(["old"] * 20)
    assert campaign.decide("old").reason_code == "over"
    for _ in range(2):
        campaign.extend(60, key="longer")
    campaign.top_up(5.0)
    assert campaign.decide("old").arm is not None
    assert campaign.report().horizon == 100
    with pytest.raises(KeyReused):
        campaign.top_up(0.7, key="more")
    adds_up(campaign)


# --- time ---------------------------------------------------------------------------------------------------------


def test_expired_and_late(store: Store) -> None:
    campaign = make(store)  # a deadline of 20 rounds
    one, two, three, four = campaign.decide_many(["old"] * 4)
    campaign.cancel(four.id)
    campaign.feedback(two.id, 0.5)
    campaign.decide_many(["young"] * 17)
    assert campaign.expire() == 1  # clock 22: the first is 21 rounds old, the third 19
    assert campaign.expire() == 0
    assert campaign.decision(one.id).state == "expired"
    assert campaign.decision(three.id).state == "pending"
    adds_up(campaign)
    campaign.decide_many(["young"] * 3)
    late = campaign.feedback(one.id, 5.0)
    assert (late.state, late.reward, late.delay) == ("late", 5.0, 24.0)
    also_late = campaign.feedback(
        three.id, 7.0, actual_cost=0.0
    )  # older than the deadline, though nobody called expire
    assert also_late.state == "late"
    assert campaign.report().reward == 0.5
    assert campaign.report().late_reward == 12.0
    assert campaign.feedback(one.id, 5.0) == late
    adds_up(campaign)
    assert campaign.expire(1000) == 20
    assert list(campaign.decisions("pending")) == []
    expired = next(campaign.decisions("expired"))
    assert campaign.cancel(expired.id).state == "cancelled"
    adds_up(campaign)


def test_without_a_deadline_the_cutoff_is_the_limit_and_late_rewards_count(store: Store) -> None:
    campaign = make(store, policy=doral.policy("d-linucb", cutoff=5.0), deadline=None)
    made = campaign.decide("old")
    campaign.decide_many(["young"] * 9)
    assert campaign.expire() == 5
    assert campaign.feedback(made.id, 2.0).state == "late"
    assert campaign.report().reward == 2.0


def test_nothing_expires_while_the_race_has_no_cutoff(store: Store) -> None:
    campaign = make(store, policy="doral", deadline=None, budget=1000.0)
    campaign.decide_many(["old"] * 30)
    assert campaign.report().is_racing
    assert campaign.report().cutoff is None
    assert campaign.expire(1_000) == 0


def test_seconds_and_timestamps(store: Store) -> None:
    start = time.time() - 86_400
    campaign = make(store, clock="seconds", deadline=3600, at=start)
    made = campaign.decide("old", at=start + 10)
    assert made.decided_at == pytest.approx(start + 10)
    answered = campaign.feedback(made.id, 1.0, at=datetime.fromtimestamp(start + 100, tz=UTC))
    assert answered.delay == pytest.approx(90.0)
    other = campaign.decide("old", at=start + 200)
    assert campaign.expire(start + 200 + 3601) == 1
    assert campaign.decision(other.id).state == "expired"
    with pytest.raises(InvalidValue, match="time zone"):
        campaign.decide("old", at=datetime(2026, 1, 1))
    with pytest.raises(InvalidValue, match="rounds"):
        make(store, name="rounds").decide("old", at=datetime.now(UTC))


def test_a_clock_that_goes_back_stands_still(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(store, clock="seconds", deadline=3600)
    first = campaign.decide("old")
    now = time.time()
    monkeypatch.setattr("doral.live.runtime.session.time.time", lambda: now - 100)
    second = campaign.decide("old")
    assert second.decided_at == first.decided_at
    assert campaign.feedback(second.id, 1.0).delay == 0.0
    assert campaign.report().clock_went_back == 2
    assert "stood still" in str(campaign.report())
    campaign._session.close()
    assert campaign.report().clock_went_back == 2  # replayed from the log
    adds_up(campaign)


# --- arms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["d-linucb", "doral", doral.policy("doral", screening="none", learner="scaled")])
def test_arms_come_and_go(store: Store, policy: Any) -> None:
    campaign = make(store, policy=policy, budget=100.0)
    made = campaign.decide_many(["old"] * 30)
    campaign.feedback_many([(one.id, 0.5) for one in made[:20] if one.arm is not None])
    campaign.pause_arm("a")
    campaign.pause_arm("a")
    assert "a" not in {one.arm for one in campaign.decide_many(["old"] * 20)}
    campaign.resume_arm("a")
    campaign.retire_arm("b")
    campaign.add_arm(doral.Arm("new", features=[3.0, 3.0], cost=0.3))
    campaign.add_arm(doral.Arm("new", features=[3.0, 3.0], cost=0.3))
    later = campaign.decide_many([{"context": c, "available": ["a", "b", "new"]} for c in ["old", "young"] * 20])
    assert "b" not in {one.arm for one in later}
    assert "new" in {one.arm for one in later}
    assert later[0].available == ("a", "b", "new")
    campaign.feedback_many([(one.id, 2.0) for one in later if one.arm == "new"])
    waiting = [one for one in made[20:] if one.arm == "b"]
    for one in waiting:
        campaign.feedback(one.id, 1.0)  # answers to a retired arm are taken
    with pytest.raises(InvalidValue, match="retired"):
        campaign.resume_arm("b")
    with pytest.raises(UnknownName):
        campaign.decide("old", available=["newer"])
    assert [(arm.name, arm.status) for arm in campaign.report().arms] == [
        ("a", "active"),
        ("b", "retired"),
        ("c", "active"),
        ("new", "active"),
    ]
    adds_up(campaign)
    before = everything(campaign)
    campaign._session.close()
    assert everything(campaign) == before  # the log alone gives it all again
    campaign.save_snapshot()
    campaign._session.close()
    assert everything(campaign) == before  # and so does a snapshot
    assert campaign._session.reader.saved_at > 0


def test_a_new_arm_knows_what_the_features_tell(open_store: Callable[[str], Store]) -> None:
    """An arm with the features of a known one is estimated like it from the start."""
    campaign = make(open_store("memory://"))
    for one in campaign.decide_many(["old"] * 20):
        if one.arm is not None:
            campaign.feedback(one.id, 0.8)
    campaign.add_arm(doral.Arm("twin of b", features=[1.0, 1.0], cost=0.2))
    ridge = fold_of(campaign).engine.state.ridge
    assert ridge.estimate[0, 3] == ridge.estimate[0, 1] != 0.0
    assert ridge.norm[0, 3] == ridge.norm[0, 1]


def test_all_arms_paused(store: Store) -> None:
    campaign = make(store)
    for arm in COSTS:
        campaign.pause_arm(arm)
    assert campaign.decide("old").reason_code == "unavailable"
    assert campaign.decide("old", available=[]).arm is None


def test_cancelling_leaves_no_trace_in_curves_and_estimates(open_store: Callable[[str], Store]) -> None:
    """A campaign in which some decisions were cancelled at once knows what one without them knows."""
    for learner in ("returned", "thinned"):
        policy = doral.policy("doral", screening="none", learner=learner, pacing="greedy")
        with_some, without = (make(open_store("memory://"), policy, budget=10**6) for _ in range(2))
        for i in range(300):
            arm = ["abc"[i % 3]]
            kept = with_some.decide("old", available=arm)
            if i % 4 == 0:
                with_some.cancel(kept.id)
                without.pause_arm(arm[0])
            also = without.decide("old", available=arm)
            if i % 4 == 0:
                without.resume_arm(arm[0])
            elif i % 3 != 1:
                with_some.feedback(kept.id, 0.1 * (i % 7))
                without.feedback(also.id, 0.1 * (i % 7))
        for campaign in (with_some, without):
            campaign.decide_many(["old"] * 21)  # until curves are next read, every 32 rounds
        one, other = fold_of(with_some).engine.state, fold_of(without).engine.state
        assert one.ridge.estimate == pytest.approx(other.ridge.estimate, rel=1e-9)
        assert one.ridge.weight.tolist() == other.ridge.weight.tolist()
        assert one.curves.returned.tolist() == other.curves.returned.tolist()
        assert one.curves.at_risk.tolist() == other.curves.at_risk.tolist()
        assert one.contexts["pulls"].tolist() == other.contexts["pulls"].tolist()


# --- the end ------------------------------------------------------------------------------------------------------


def test_a_closed_campaign_takes_answers_and_nothing_else(store: Store) -> None:
    campaign = make(store)
    made, other = campaign.decide("old", key="k"), campaign.decide("old")
    campaign.close()
    campaign.close()
    for call in (
        lambda: campaign.decide("old"),
        lambda: campaign.top_up(1.0),
        lambda: campaign.extend(1),
        lambda: campaign.pause_arm("a"),
        lambda: campaign.add_arm(doral.Arm("n", features=[0, 0])),
    ):
        with pytest.raises(CampaignClosed):
            call()
    assert campaign.decide("old", key="k") == made
    assert campaign.feedback(made.id, 1.0).state == "returned"
    assert campaign.cancel(other.id).state == "cancelled"
    assert campaign.report().is_closed
    adds_up(campaign)


def test_report_and_export(store: Store, tmp_path: Path) -> None:
    campaign = make(store, policy="doral")
    made = campaign.decide_many([{"context": "old", "available": ["a", "b"], "key": f"k{i}"} for i in range(40)])
    campaign.feedback_many([(one.id, 0.25) for one in made[:10] if one.arm])
    campaign.cancel(made[11].id)
    text = str(campaign.report())
    for word in ("campaign kits: open, policy doral", "10.0 = spent", "pending", "allocation, cut-off", "accepted"):
        assert word in text
    assert campaign.report().to_dict()["ledger"]["total"] == 10.0
    assert campaign.export(tmp_path / "d.parquet") == campaign.export(tmp_path / "d.csv") == 40
    frame = pl.read_parquet(tmp_path / "d.parquet")
    decisions = list(campaign.decisions())
    assert frame["id"].to_list() == [one.id for one in decisions]
    for column in ("context", "arm", "value", "price", "probability", "cost", "state", "reward", "delay", "reason"):
        assert frame[column].to_list() == [getattr(one, column) for one in decisions]
    assert frame["available"].to_list() == [["a", "b"]] * 40
    with (tmp_path / "d.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["available"] for row in rows] == ['["a", "b"]'] * 40
    assert make(store, name="empty").export(tmp_path / "e.csv") == 0


def test_pages_of_decisions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doral.live.campaign.PAGE_DECISIONS", 7)
    campaign = make(store, budget=100.0, deadline=100)
    made = campaign.decide_many(["old"] * 30)
    campaign.feedback_many([(one.id, 1.0) for one in made[::2]])
    assert [one.id for one in campaign.decisions()] == [one.id for one in made]
    assert [one.id for one in campaign.decisions("returned")] == [one.id for one in made[::2]]


def test_reasons_can_be_read(open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store("memory://"), policy=doral.policy("doral", screening="none"), budget=30.0, horizon=400)
    for _ in range(40):
        for one in campaign.decide_many(["old", "young"] * 5):
            if one.arm is not None:
                campaign.feedback(one.id, 0.9 if one.context == "old" else 0.1)
    played = [one for one in campaign.decisions("returned") if one.reason_code == "best" and one.price > 0]
    assert played
    for one in played:
        assert one.return_here == one.value / one.cost
        assert f"{one.return_here:.3g}" in one.reason or f"{one.price:.3g}" in one.reason
    paced = [one for one in campaign.decisions("skipped") if one.price > 0 and one.probability == 1.0]
    assert paced
    # arms of different costs: the log does not say which was thought of
    assert (paced[-1].reason_code, paced[-1].return_here) == ("paced", None)
    assert f"the budget currently buys {paced[-1].price:.3g} per unit" in paced[-1].reason
    assert 0.0 < (paced[-1].probability or 0.0) <= 1.0


def test_a_skip_says_what_a_unit_of_budget_brings_here_and_elsewhere(open_store: Callable[[str], Store]) -> None:
    arms = [doral.Arm(name, features=[i, 1.0], cost=2.0) for i, name in enumerate("ab")]
    policy = doral.policy("doral", screening="none")
    store = open_store("memory://")
    campaign = make(store, policy=policy, arms=arms, budget=60.0, horizon=200, baseline="observed")
    for _ in range(15):
        for one in campaign.decide_many(["old", "young"] * 5):
            if one.arm is not None:
                campaign.feedback(one.id, 0.9 if one.context == "old" else 0.2)
    said = [one for one in campaign.decisions() if one.arm is None and one.value > 0 and one.probability == 1.0]
    assert said
    for one in said:
        assert one.value / 2.0 < one.price
        assert (one.reason_code, one.return_here) == ("paced", one.value / 2.0)
        elsewhere = f"the budget currently buys {one.price:.3g} per unit elsewhere"
        assert (
            one.reason == f"Skipped: the best option here returns {one.return_here:.3g} per unit of budget; {elsewhere}"
        )
    campaign.add_arm(doral.Arm("dear", features=[0.5, 1.0], cost=7.0))
    assert campaign.decision(said[0].id).return_here is None


# --- several handles ----------------------------------------------------------------------------------------------


def test_two_handles_see_each_other(durable_url: str, open_store: Callable[[str], Store]) -> None:
    mine = make(open_store(durable_url), budget=100.0)
    yours = open_store(durable_url).campaign("kits")
    for i in range(10):
        a = mine.decide("old", key=f"k{i}")
        assert yours.decide("old", key=f"k{i}") == a
        b = yours.decide("young")
        assert mine.feedback(b.id, 0.5).reward == 0.5
        assert yours.feedback(b.id, 0.5).reward == 0.5
    yours.add_arm(doral.Arm("new", features=[0.5, 0.5]))
    assert mine.decide("old", available=["new"]).arm == "new"
    assert everything(mine) == everything(yours)
    adds_up(mine)


def test_memory_does_not_grow_with_finished_decisions(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    """What a handle keeps after 20,000 finished decisions is what it kept after 2,000."""
    store = open_store(f"sqlite:///{tmp_path / 'c.db'}")
    campaign = make(store, policy=doral.policy("doral", screening="none"), budget=10**6, horizon=10**6)
    sizes = []
    for _ in range(10):
        for _ in range(4):
            made = campaign.decide_many(["old"] * 500)
            campaign.feedback_many([(one.id, 0.5) for one in made if one.arm is not None])
        sizes.append(len(encode(fold_of(campaign))) + sum(a.nbytes for a in _arrays(campaign)))
    assert max(sizes[1:]) < 1.1 * sizes[0]


def _arrays(campaign: Campaign) -> list[Any]:
    return [array for _, array in leaves(fold_of(campaign).engine.state)]


# --- urgency, silence ---------------------------------------------------------------------------------------------


def test_deadlines_and_weights_by_context(store: Store) -> None:
    contexts = [doral.Context("old", 0.3, weight=2.0, deadline=5.0), doral.Context("young", 0.7)]
    campaign = make(store, policy=doral.policy("d-linucb", cutoff=30.0), contexts=contexts, deadline=None)
    urgent, other, late = campaign.decide_many(["old", "young", "old"])
    campaign.decide_many(["young"] * 6)
    assert campaign.feedback(late.id, 1.0).state == "late"  # 7 rounds old, and 5 are allowed
    assert campaign.expire() == 1
    assert campaign.decision(urgent.id).state == "expired"
    assert campaign.decision(other.id).state == "pending"
    assert campaign.feedback(other.id, 1.0).state == "returned"
    campaign.feedback(campaign.decide("old").id, 1.0)
    assert campaign.report().reward == 1.0 + 2.0
    assert campaign.report().late_reward == 2.0
    patient = campaign.decide("young")
    campaign.decide_many(["young"] * 40)
    assert campaign.feedback(patient.id, 1.0).state == "late"
    assert campaign.report().reward == 4.0  # without a deadline it counts all the same
    assert campaign.expire() > 0
    adds_up(campaign)
    log_is_whole(campaign)


def test_where_feedback_is_silent_the_policy_hears_no_zeros(open_store: Callable[[str], Store]) -> None:
    policy = doral.policy("doral-otf")
    told, untold = (make(open_store("memory://"), policy, feedback="silent", budget=50.0) for _ in range(2))
    ids = []
    for campaign in (told, untold):
        made = [one for one in campaign.decide_many(["old", "young"] * 10) if one.arm is not None]
        ids.append([one.id for one in made])
        for i, one in enumerate(made):
            if i % 3 == 0:
                campaign.feedback(one.id, 1.0)
            elif campaign is told:
                campaign.feedback(one.id, 0.0)
    assert told.report().decisions["returned"] == len(ids[0])
    assert same_bits(fold_of(told).engine.state, fold_of(untold).engine.state) == []
    told.correct(ids[0][1], 1.0)  # a conversion after all: to the policy, it comes now
    untold.feedback(ids[1][1], 1.0)
    told.correct(ids[0][1], 0.5)
    untold.correct(ids[1][1], 0.5)
    assert same_bits(fold_of(told).engine.state, fold_of(untold).engine.state) == []
    log_is_whole(told)


@pytest.mark.parametrize("name", ["doral-otf", "eva", "d-lints", "doral"])
def test_every_kind_of_policy_through_everything(name: str, open_store: Callable[[str], Store]) -> None:
    """Cancelling, correcting, settling, new and retired arms, reserves: the log gives the same state again."""
    contexts = [doral.Context("old", 0.3, weight=2.0, tier=1), doral.Context("young", 0.7)]
    campaign = make(
        open_store("memory://"), policy=name, contexts=contexts, reserves={1: 0.3}, budget=60.0, horizon=400
    )
    for turn in range(6):
        made = [one for one in campaign.decide_many(["old", "young"] * 15) if one.arm is not None]
        for i, one in enumerate(made):
            if i % 5 == 0:
                campaign.cancel(one.id)
            elif i % 5 != 1:
                campaign.feedback(one.id, 0.1 * i, actual_cost=0.0 if i % 7 == 0 else None)
                if i % 5 == 2:
                    campaign.correct(one.id, 0.2 * i)
        campaign.expire()
        if turn in (1, 3):
            campaign.add_arm(doral.Arm(f"new {turn}", features=[0.3, turn], cost=0.2 + turn))
        if turn == 4:
            campaign.retire_arm("b")
            campaign.top_up(7.7)
            campaign.extend(50)
    adds_up(campaign)
    log_is_whole(campaign)
    assert all(math.isfinite(value) for arm in campaign.report().arms for value in arm.view.values)


def test_a_top_up_reserves_its_share(open_store: Callable[[str], Store]) -> None:
    contexts = [doral.Context("old", 0.3, tier=1), doral.Context("young", 0.7)]
    campaign = make(open_store("memory://"), contexts=contexts, reserves={1: 0.25})
    campaign.top_up(10.0)
    assert fold_of(campaign).engine.state.tiers[0].tolist() == [0.0, 5.0]
    made = campaign.decide("young", available=["c"])
    assert fold_of(campaign).engine.state.tiers[1].tolist() == [0.0, 0.7]
    campaign.cancel(made.id)
    assert fold_of(campaign).engine.state.tiers[1].tolist() == [0.0, 0.0]


def test_a_first_batch_at_one_moment_is_not_spent_on_one_arm() -> None:
    """Before there is a pace of arrivals the end is not in view, and open decisions count: every arm gets its tries."""
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{i}", features=[float(i == k) for k in range(4)]) for i in range(4)],
        contexts={"one": 0.5, "other": 0.5},
        budget=1_000,
        horizon=2_000,
        deadline=86_400,
    )
    with doral.open("memory://") as store:
        campaign = store.create("batch", problem, seed=1)
        made = campaign.decide_many([{"context": name} for name in ("one", "other")] * 250)
        tries = Counter(one.arm for one in made if one.arm is not None)
    assert len(tries) == 4
    assert min(tries.values()) > 20


def test_an_extended_campaign_sees_the_end_no_longer() -> None:
    problem = doral.Problem(
        arms=[doral.Arm("a", features=[1.0]), doral.Arm("b", features=[0.5])],
        contexts=["all"],
        budget=700,  # more than anybody can spend
        horizon=300,
        deadline=50,
    )
    with doral.open("memory://") as store:
        campaign = store.create("longer", problem, seed=1, clock="rounds")
        for _ in range(300):
            made = campaign.decide("all")
            if made.arm is not None:
                campaign.feedback(made.id, 1.0)
        campaign.extend(300)
        played = [campaign.decide("all").arm for _ in range(10)]
    assert None not in played


def test_an_expiry_that_releases_passes_by_what_was_answered_before(store: Store) -> None:
    """Also what was too old when it was recorded has been paid for."""
    campaign = make(store)
    answered, silent = campaign.decide("old", ["c"]), campaign.decide("old", ["c"])
    campaign.feedback(answered.id, 1.0)
    campaign.decide("old", ["c"], at=50.0)
    recorded = campaign.record("old", "a", 4.0, spend=True)
    assert recorded.state == "expired"
    assert expire_as_before(campaign, 90.0, release=True) == 2
    assert campaign.decision(answered.id).actual_cost == 0.7
    assert campaign.decision(silent.id).actual_cost == 0.0
    assert campaign.decision(recorded.id).actual_cost == 0.1
    assert campaign.feedback(recorded.id, 1.0).actual_cost == 0.1
    adds_up(campaign)
    log_is_whole(campaign)


def test_changes_keep_to_the_limits_of_a_problem() -> None:
    with doral.open("memory://") as store:
        problem = doral.Problem(arms=["letter"], contexts=["all"], budget=10, horizon=10, deadline=10)
        campaign = store.create("limits", problem, seed=1)
        for amount in (5e-324, 1e-13, 1e300, 1e15):
            with pytest.raises(doral.InvalidValue, match="amount"):
                campaign.top_up(amount)
        with pytest.raises(doral.InvalidValue, match="rounds"):
            campaign.extend(10_000_000_000)
        campaign.top_up(0.5, key="once")
        campaign.top_up(0.5, key="once")
        assert campaign.ledger().total == Decimal("10.5")
        campaign.close()
        with pytest.raises(CampaignClosed):
            campaign.top_up(1.0)
