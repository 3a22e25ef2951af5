"""A campaign that a plan opens knows what the log knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import doral
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.planning.campaign import create_campaign
from doral.planning.plan import Plan

ROWS = 300
# Until now: a campaign takes decisions for expired that are open for longer than the deadline.
START = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=ROWS)


def a_file() -> pl.DataFrame:
    """One an hour, a third of them skipped, all of whom are heard of within two days, or not yet."""
    rng, rows = np.random.default_rng(0), ROWS
    arm = rng.choice(["A", "B", ""], rows).tolist()
    rate = {"A": 0.5, "B": 0.3, "": 0.2}
    hours = rng.integers(1, 49, rows)
    made = [START + timedelta(hours=i) for i in range(rows)]
    is_heard = np.arange(rows) + hours < rows
    return pl.DataFrame(
        {
            "time": made,
            "context": rng.choice(["old", "young"], rows),
            "arm": [one or None for one in arm],
            "reward": [
                float(rng.random() < rate[one]) if heard else None for one, heard in zip(arm, is_heard, strict=True)
            ],
            "answered_at": [
                at + timedelta(hours=int(wait)) if heard else None
                for at, wait, heard in zip(made, hours, is_heard, strict=True)
            ],
        }
    )


@pytest.fixture(scope="module")
def plan() -> Plan:
    return doral.plan(a_file(), policies=["doral-otf"], deadline="60h", truths=2)


def test_what_doing_nothing_brought_is_known(plan: Plan) -> None:
    log = plan.log
    heard = log.is_answered & ~log.is_served
    assert heard.sum() > 50
    view = create_campaign(plan, "memory://", "mine", policy="doral-otf").report().baseline
    assert view is not None
    assert sum(view.answers) == heard.sum()


def test_open_decisions_have_the_right_age_and_the_budget_is_whole(plan: Plan) -> None:
    log = plan.log
    campaign = create_campaign(plan, "memory://", "mine", policy="doral-otf")
    report = campaign.report()
    assert (report.arrivals, float(report.ledger.spent), float(report.ledger.reserved)) == (0, 0.0, 0.0)
    assert float(report.ledger.total) == plan.problem.budget
    still_open = list(campaign.decisions("pending"))
    assert [one.decided_at for one in still_open] == [
        (START + timedelta(seconds=one)).timestamp() for one in log.time[~log.is_answered].tolist()
    ]
    assert campaign.feedback(still_open[-1].id, 1.0).state == "returned"


def test_logs_longer_than_a_batch_are_recorded_whole(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = _learned(create_campaign(plan, "memory://", "mine", policy="doral-otf", seed=3))
    monkeypatch.setattr("doral.planning.campaign.STRETCH", 70)
    by_parts = _learned(create_campaign(plan, "memory://", "mine", policy="doral-otf", seed=3))
    assert by_parts == pytest.approx(at_once)


def test_a_campaign_that_could_not_take_the_log_is_not_left_behind(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    store = doral.open("memory://")

    def refuse(self: Campaign, records: object) -> None:
        raise DoralError("no")

    monkeypatch.setattr(Campaign, "record_many", refuse)
    with pytest.raises(DoralError):
        create_campaign(plan, store, "mine")
    assert store.list() == []


def _learned(campaign: Campaign) -> list[float]:
    decision = campaign.decide("old")
    arms = campaign.report().arms
    return [decision.value, decision.price, *(value for arm in arms for value in (arm.plays, *arm.view.values))]


def test_what_became_of_old_open_decisions_is_not_made_up() -> None:
    """A log of last year that ended in the middle: silence after its end says nothing."""
    old = a_file().with_columns(pl.col("time", "answered_at") - pl.duration(days=365))
    plan = doral.plan(old, policies=["doral-otf"], deadline="60h", truths=2)
    log = plan.log
    lost = ~log.is_answered & (log.watched < plan.deadline)
    assert lost.sum() > 20
    report = create_campaign(plan, "memory://", "mine", policy="doral-otf").report()
    assert report.decisions.get("expired", 0) == (~log.is_answered & ~lost).sum()
    assert report.decisions["returned"] == log.is_answered.sum()
