"""Where a campaign stands is judged relative to what was planned by now."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import doral
from doral.live.state.plan import Plan, judge_pace
from doral.live.state.snapshot import decode_snapshot, encode_snapshot
from doral.live.store import Store
from doral.live.views.text import pace_words
from tests.live.campaigns import in_rounds
from tests.live.test_page import shop as shop


def _status(used: float, planned: float, *, dearest: float = 5.0) -> str:
    return judge_pace(
        used=used, planned=planned, total=10_000.0, dearest=dearest, arrivals=300, share_gone=0.03, is_closed=False
    ).status


@pytest.mark.parametrize(
    ("used", "planned", "status"),
    [
        (126.5, 303.8, "behind plan"),
        (303.8, 126.5, "ahead of plan"),
        (295.0, 303.8, "on plan"),
        (0.0, 8.0, "too early"),
        (0.0, 400.0, "behind plan"),
        (4_000.0, 5_000.0, "behind plan"),
        (4_600.0, 5_000.0, "on plan"),
    ],
)
def test_a_gap_is_judged_by_what_was_planned_and_not_by_the_budget(used: float, planned: float, status: str) -> None:
    assert _status(used, planned) == status


def test_little_is_no_verdict_where_one_decision_explains_it() -> None:
    assert _status(0.0, 400.0, dearest=200.0) == "too early"


def test_a_plan_bends_and_keeps_what_was_planned() -> None:
    plan = Plan()
    assert plan.by(50.0, end=100.0, total=200.0) == 100.0
    plan.bend(50.0, end=100.0, total=200.0)
    assert plan.by(50.0, end=100.0, total=400.0) == 100.0
    assert plan.by(75.0, end=100.0, total=400.0) == 250.0
    assert plan.by(500.0, end=100.0, total=400.0) == 400.0


def test_report_page_and_reopened_campaign_say_the_same(tmp_path: object) -> None:
    with doral.open(f"sqlite:///{tmp_path}/plan.db") as store:
        campaign = in_rounds(store, "bent", 100)
        total, horizon = float(campaign.ledger().total), campaign.report().horizon
        campaign.top_up(total)
        campaign.extend(horizon)
        for _ in range(20):
            campaign.decide("old")
        report, spending = campaign.report(), campaign.facts().spending
        planned = total * 100 / horizon
        assert report.planned == pytest.approx(planned + (2 * total - planned) * 20 / (2 * horizon - 100))
        assert report.pace == spending.pace
        assert report.planned == pytest.approx(spending.planned)
        assert spending.planned == pytest.approx(
            next(amount for at, amount in _at(spending.plan, spending.now) if at == spending.now)
        )
        kept = campaign.session.read(lambda _, state: encode_snapshot(state))
        tag, definition = campaign.session.row.tag, campaign.session.read(lambda _, state: state.definition)
        assert decode_snapshot(kept, definition, tag).pace() == campaign.session.read(lambda _, state: state.pace())
    with doral.open(f"sqlite:///{tmp_path}/plan.db") as store:
        assert store.campaign("bent").report().planned == report.planned


def _at(plan: tuple[tuple[float, float], ...], now: float) -> list[tuple[float, float]]:
    found = []
    for (a, low), (b, high) in pairwise(plan):
        if a <= now <= b and b > a:
            found.append((now, low + (high - low) * (now - a) / (b - a)))
    return found


def test_words_name_the_money_and_both_amounts(shop: Store) -> None:
    problem = doral.Problem(
        arms={"a": 1.0}, contexts=["x"], budget=9_000, horizon=9_000, currency="EUR", outcome="booking"
    )
    campaign = shop.create("named", problem, clock="rounds", seed=1)
    assert campaign.problem == problem == doral.Problem.from_dict(problem.to_dict())
    for _ in range(150):
        campaign.decide("x", available=[])
    report = campaign.report()
    assert report.pace == "behind plan"
    assert "EUR 150" in str(report)
    assert (report.currency, report.outcome) == ("EUR", "booking")
    for status in ("on plan", "ahead of plan", "too early", "used up", "over", "not begun"):
        assert pace_words(judge_pace(**_SAMPLE)._replace(status=status))


_SAMPLE: dict[str, Any] = {
    "used": 1.0,
    "planned": 2.0,
    "total": 9.0,
    "dearest": 1.0,
    "arrivals": 3,
    "share_gone": 0.2,
    "is_closed": False,
}
