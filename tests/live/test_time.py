"""Back-fill is true or refused, and a wrong clock cannot ruin a campaign."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import ClockDisagrees
from doral.live.store import Store
from tests.live.checks import adds_up, expire_as_before, log_is_whole

DAY = 86_400.0
DEADLINE = 14 * DAY


def make(store: Store, *, at: object = None, clock: str = "seconds", **changes: Any) -> Campaign:
    problem = doral.Problem(
        **{
            "arms": [doral.Arm("a", features=[1.0, 0.0]), doral.Arm("b", features=[0.0, 1.0])],
            "contexts": ["old", "young"],
            "budget": 1_000,
            "horizon": 1_000,
            "deadline": DEADLINE,
            **changes,
        }
    )
    return store.create("kits", problem, policy="doral-otf", seed=1, clock=clock, at=at)


def set_clock(monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    monkeypatch.setattr("doral.live.runtime.session.time.time", lambda: now)


# --- back-fill ----------------------------------------------------------------------------------------------------


def test_a_time_before_the_beginning_is_refused(store: Store) -> None:
    campaign = make(store)
    before = time.time() - 30 * DAY
    with pytest.raises(InvalidValue, match="at = .*before the campaign began.*create"):
        campaign.decide("old", at=before)
    made = campaign.decide("old")
    with pytest.raises(InvalidValue, match="before the campaign began"):
        campaign.feedback(made.id, 1.0, at=before)
    assert campaign.decision(made.id).state == "pending"


def test_an_answer_a_month_late_is_late(store: Store) -> None:
    now = time.time()
    campaign = make(store, at=now - 40 * DAY)
    made = campaign.decide("old", at=now - 40 * DAY)
    late = campaign.feedback(made.id, 1.0, at=now - 11 * DAY)
    assert late.state == "late"
    assert late.delay == pytest.approx(29 * DAY)


def test_an_answer_that_is_imported_late_is_judged_by_its_own_time(store: Store) -> None:
    """Of day 3, imported on day 20, with a deadline of 14: in time, and the policy learns it."""
    now = time.time()
    campaign = make(store, at=now - 20 * DAY)
    made = campaign.decide("old", at=now - 20 * DAY)
    silent = campaign.decide("old", at=now - 20 * DAY)
    campaign.decide("young")  # today: the campaign's clock has passed the deadline of both
    for expires in (False, True):
        if expires:
            assert campaign.expire() == 2 - 1
            made = silent
        told = campaign.feedback(made.id, 0.7, at=now - 17 * DAY)
        assert told.state == "returned"
        assert told.delay == pytest.approx(3 * DAY)
    assert campaign.report().reward == pytest.approx(1.4)
    assert campaign.report().decisions["returned"] == 2
    adds_up(campaign)
    log_is_whole(campaign)


def test_an_answer_before_its_decision_is_refused(store: Store) -> None:
    now = time.time()
    campaign = make(store, at=now - 20 * DAY)
    made = campaign.decide("old", at=now - 10 * DAY)
    for act in (campaign.feedback, lambda id_, _, at: campaign.cancel(id_, at=at)):
        with pytest.raises(InvalidValue, match="before decision"):
            act(made.id, 1.0, at=now - 11 * DAY)
    assert campaign.decision(made.id).state == "pending"


def test_decisions_of_the_past_keep_their_time(store: Store) -> None:
    now = time.time()
    campaign = make(store, at=now - 20 * DAY)
    campaign.decide("old")
    past = campaign.decide("old", at=now - 5 * DAY)
    assert past.decided_at == pytest.approx(now - 5 * DAY)
    assert campaign.feedback(past.id, 1.0, at=now - 4 * DAY).delay == pytest.approx(DAY)
    log_is_whole(campaign)


def test_a_beginning_in_the_past(store: Store) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    campaign = make(store, at=began)
    first = campaign.decide("old", at=began)
    assert first.decided_at == began.timestamp()
    with pytest.raises(InvalidValue, match="at = .*ahead of this host"):
        store.create("future", make_problem(), at=time.time() + DAY)
    with pytest.raises(InvalidValue, match="counts rounds|in seconds"):
        store.create("rounds", make_problem(), clock="rounds", at=began)


def test_a_beginning_before_time_is_refused(store: Store) -> None:
    for bad in (-1.0, -1e17, -1e300):
        with pytest.raises(InvalidValue, match="1970"):
            make(store, at=bad)


def test_a_negative_zero_is_a_zero(url: str) -> None:
    """SQLite does not know it: a log with one would not be what was written."""
    with doral.open(url) as store:
        campaign = make(store, clock="rounds", deadline=30)
        made = campaign.decide("old", at=-0.0)
        campaign.record("old", "a", at=-0.0, reward=-0.0, answered_at=-0.0, cost=0.0)
        campaign.feedback(made.id, -0.0, actual_cost=-0.0, at=-0.0)
        campaign._session.close()
        assert campaign.verify().n_differences == 0
        campaign.decide("old")
        log_is_whole(campaign)


def make_problem() -> doral.Problem:
    return doral.Problem(
        arms=[doral.Arm("a", features=[1.0])], contexts=["old"], budget=10, horizon=10, deadline=DEADLINE
    )


# --- wrong clocks -------------------------------------------------------------------------------------------------


def test_milliseconds_are_refused(store: Store) -> None:
    campaign = make(store)
    made = campaign.decide("old")
    for act in (
        lambda at: campaign.decide("old", at=at),
        lambda at: campaign.decide_many(["old", {"context": "old", "at": at}]),
        lambda at: campaign.feedback(made.id, 1.0, at=at),
        lambda at: campaign.cancel(made.id, at=at),
        campaign.expire,
    ):
        with pytest.raises(InvalidValue, match="milliseconds"):
            act(1_000 * time.time())
        with pytest.raises(InvalidValue, match="ahead of this host's clock"):
            act(time.time() + 3_600)
    assert campaign.feedback(made.id, 1.0).state == "returned"
    assert campaign.report().arrivals == 1


def test_how_far_clocks_may_disagree_can_be_set(open_store: Callable[..., Store], url: str) -> None:
    with doral.open(url, clock_tolerance_s=7_200) as store:
        campaign = make(store)
        assert campaign.decide("old", at=time.time() + 3_600).decided_at > time.time() + 3_000
    for bad in (-1, float("nan"), "x", None):
        with pytest.raises(InvalidValue, match="clock_tolerance_s"):
            doral.open(url, clock_tolerance_s=bad)  # type: ignore[arg-type]


def test_rounds_cannot_be_carried_away_by_seconds(store: Store) -> None:
    campaign = make(store, clock="rounds", deadline=30)
    with pytest.raises(InvalidValue, match="counts rounds"):
        campaign.decide("old", at=time.time())
    with pytest.raises(InvalidValue, match="counts rounds"):
        campaign.decide("old", at=-1)
    with pytest.raises(InvalidValue, match="up to 1030"):  # more than are expected to arrive, and their answers
        campaign.decide("old", at=1_031)
    campaign.decide("old", at=500)
    with pytest.raises(InvalidValue, match="not ahead"):
        campaign.repair_clock(to=600)
    with pytest.raises(InvalidValue, match="before the last arrival"):
        campaign.repair_clock(to=1)
    campaign.repair_clock()
    assert campaign.decide("old").decided_at == 2.0


def test_a_campaign_that_was_carried_away_is_refused_until_it_is_repaired(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One host is a year fast. Nobody loses by it but for the time until somebody sets the clock."""
    now = time.time()
    campaign = make(store)
    before = [campaign.decide("old") for _ in range(40)]
    set_clock(monkeypatch, now + 365 * DAY)
    during = [campaign.decide("old") for _ in range(10)]
    campaign.expire()
    set_clock(monkeypatch, now + 1)
    with pytest.raises(ClockDisagrees, match="repair_clock"):
        campaign.decide("old")
    with pytest.raises(ClockDisagrees, match="365 days behind"):
        campaign.feedback(during[0].id, 1.0)
    campaign.repair_clock()
    set_clock(monkeypatch, now + 2 * DAY)
    for one in (before[0], during[0]):
        answered = campaign.feedback(one.id, 1.0)
        assert answered.state == "returned"
        assert answered.delay == pytest.approx(2 * DAY, abs=5)
    after = campaign.decide("old")
    assert after.decided_at == pytest.approx(now + 2 * DAY)
    set_clock(monkeypatch, now + 5 * DAY)
    assert campaign.feedback(after.id, 0.5).delay == pytest.approx(3 * DAY)
    set_clock(monkeypatch, now + 30 * DAY)
    assert campaign.feedback(before[1].id, 1.0).state == "late"
    assert campaign.report().reward == pytest.approx(2.5)
    campaign.expire()
    assert {one.state for one in campaign.decisions()} <= {"returned", "late", "expired"}
    adds_up(campaign)
    log_is_whole(campaign)


def test_a_clock_that_is_right_cannot_be_set_to_the_past(store: Store) -> None:
    campaign = make(store, at=time.time() - 60 * DAY)
    made = campaign.decide("old")
    for to in (time.time() - 50 * DAY, time.time() - 3_600):
        with pytest.raises(InvalidValue, match="to = .*behind this host's clock"):
            campaign.repair_clock(to=to)
    assert campaign.decision(made.id) == made


def test_a_host_that_is_far_behind_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(store)
    made = campaign.decide("old")
    set_clock(monkeypatch, time.time() - 365 * DAY)
    with pytest.raises(ClockDisagrees, match="behind"):
        campaign.feedback(made.id, 1.0)
    assert campaign.decision(made.id).state == "pending"  # reading goes on
    campaign.report()


# --- expiry -------------------------------------------------------------------------------------------------------


def test_what_was_not_spent_can_be_released(store: Store) -> None:
    now = time.time()
    campaign = make(store, at=now - 60 * DAY, budget=20, horizon=20)
    old = [campaign.decide("old", at=now - 50 * DAY) for _ in range(5)]
    assert expire_as_before(campaign, now - 30 * DAY, release=True) == 5
    ledger = campaign.ledger()
    assert (float(ledger.spent), float(ledger.reserved), float(ledger.left)) == (0.0, 0.0, 20.0)
    assert {campaign.decision(one.id).actual_cost for one in old} == {0.0}
    more = [campaign.decide("old", at=now - 29 * DAY) for _ in range(3)]
    assert campaign.expire() == 3
    assert float(campaign.ledger().spent) == 3.0
    answered = campaign.decide("old")
    campaign.feedback(answered.id, 1.0)
    assert expire_as_before(campaign, release=True) == 0
    assert campaign.decision(answered.id).actual_cost == 1.0  # the expiry passed it by
    campaign.cancel(campaign.record("old", "a", at=now, cost=1.0, spend=True).id)
    late = campaign.feedback(old[0].id, 1.0, actual_cost=1.0)  # it was used after all
    assert (late.state, late.actual_cost) == ("late", 1.0)
    assert float(campaign.ledger().spent) == 5.0
    assert campaign.feedback(old[1].id, 1.0).actual_cost == 0.0
    assert campaign.feedback(more[0].id, 1.0).actual_cost == 1.0
    assert campaign.correct(old[1].id, 1.0, actual_cost=0.5).actual_cost == 0.5
    assert campaign.cancel(old[2].id).actual_cost == 0.0
    adds_up(campaign)
    log_is_whole(campaign)


def test_answers_after_a_release_cannot_overdraw(store: Store) -> None:
    now = time.time()
    campaign = make(store, at=now - 60 * DAY, budget=2, horizon=2)
    old = [campaign.decide("old", at=now - 50 * DAY) for _ in range(2)]
    expire_as_before(campaign, release=True)
    campaign.extend(10)
    campaign.record("old", "a", at=now, cost=1.5, spend=True)
    with pytest.raises(doral.DoralError, match="only 0.5 left"):
        campaign.feedback(old[0].id, 1.0, actual_cost=1.0)
    with pytest.raises(doral.DoralError, match="budget has"):
        campaign.feedback_many([{"decision_id": one.id, "reward": 1.0, "actual_cost": 0.4} for one in old])
    assert {campaign.decision(one.id).state for one in old} == {"expired"}
    adds_up(campaign)
