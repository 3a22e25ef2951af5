"""The page of a campaign: it says what the report and the ledger say, and is whole and harmless for every kind."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog, StorageError
from doral.live.page.facts import CampaignFacts
from doral.live.page.gather import pending, unsettled
from doral.live.page.history import Open
from doral.live.store import Store
from doral.pages.numbers import figure
from tests.experiments.pages import Page
from tests.live.campaigns import ARMS, KINDS, in_days, in_rounds, of_people

SECTIONS = ("money", "answers", "arms", "certain", "pending", "served")


@pytest.fixture(scope="module")
def shop() -> Iterator[Store]:
    with doral.open("memory://") as store:
        yield store


@pytest.fixture(scope="module", params=KINDS)
def campaign(request: pytest.FixtureRequest, shop: Store) -> Campaign:
    return KINDS[request.param](shop)


def words_of(html: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<(script|style)>.*?</\1>", "", html.partition("<body>")[2], flags=re.S)
    return unescape(re.sub(r"<[^>]+>", " ", body))


def is_harmless(html: str) -> Page:
    found = Page(html)
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))
    assert all(link.removeprefix("#") in ids for link in found.attributes("href"))
    assert not re.search(r"url\(|@import|https?://", html)
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert found.count("script") == 1
    return found


def test_every_kind_is_shown_whole(campaign: Campaign) -> None:
    html = campaign.page()
    found = is_harmless(html)
    assert set(SECTIONS) <= set(found.attributes("id"))
    words = re.sub(r"\b[0-9a-f]{8}-\d+\b", "", words_of(html))  # without ids, which may be all digits
    assert not re.search(r"\b(nan|NaN|inf|None|Decimal|True|False)\b", words)
    assert not re.search(r"(?<![-.\w])\d{6,}\b", words)  # neither seconds nor amounts without separators
    for _, attributes in found.tags:
        for name in ("points", "x", "y", "x1", "cx", "width"):
            assert "nan" not in (attributes.get(name) or "")


def test_the_facts_are_those_of_the_report_and_the_ledger(campaign: Campaign) -> None:
    facts, report, decisions = campaign.facts(), campaign.report(), list(campaign.decisions())
    ledger = report.ledger.to_dict()
    for name, amount in ledger.items():
        assert getattr(facts, name) == amount
    last = facts.spending.points[-1]
    assert (last.spent, last.reserved) == (ledger["spent"], ledger["reserved"])
    assert facts.spending.budget[-1][1] == pytest.approx(ledger["total"])
    assert (facts.arrivals, facts.reward, facts.states) == (report.arrivals, report.reward, report.decisions)
    for ours, theirs in zip(facts.arms, report.arms, strict=True):
        assert (ours.name, ours.plays, ours.answers, ours.reward) == (
            theirs.name, theirs.plays, theirs.answers, theirs.reward,
        )  # fmt: skip
        assert (ours.ages, ours.returned) == (theirs.view.return_ages, theirs.view.return_curve)
        for low, middle, high in zip(ours.returned_low, ours.returned, ours.returned_high, strict=True):
            assert -1e-9 <= low <= middle + 1e-9 <= high + 2e-9 <= 1 + 1e-6
        mine = [one for one in facts.pairs if one.arm == ours.name]
        assert sum(one.plays for one in mine) == ours.plays
        assert sum(one.answers for one in mine) == ours.answers
        assert math.fsum(one.reward for one in mine) == pytest.approx(ours.reward)
        values = [one.value for one in mine]
        assert values in ([None] * len(mine), [pytest.approx(one) for one in theirs.view.values])
    assert math.fsum(one.reward for one in facts.contexts) == pytest.approx(report.reward)
    came = Counter(one.context for one in decisions if not one.is_recorded)
    assert {one.name: one.arrivals for one in facts.contexts if one.arrivals} == came
    for context in facts.contexts:
        inside = [one for one in decisions if one.context == context.name]
        spend = math.fsum(one.cost if one.actual_cost is None else one.actual_cost for one in inside)
        assert context.spend == pytest.approx(spend)
        usual = campaign.problem.arm_names[campaign.problem.control] if campaign.problem.control is not None else None
        served = [one for one in inside if one.arm not in (None, usual) and one.state != "cancelled"]
        assert context.served == len(served)
    if report.clock == "seconds":
        assert math.fsum(one.reward for one in facts.periods) == pytest.approx(report.reward)
    json.dumps(facts.to_dict(), allow_nan=False)


def test_pending_and_the_latest_are_as_the_decisions_say(campaign: Campaign) -> None:
    facts, decisions = campaign.facts(), list(campaign.decisions())
    waiting = [one for one in decisions if one.state == "pending"]
    assert facts.pending.decisions == len(waiting)
    assert facts.pending.reserved == pytest.approx(math.fsum(one.cost for one in waiting))
    for groups in (facts.pending.by_age, facts.pending.by_expiry):
        assert sum(one.decisions for one in groups) == len(waiting)
    assert list(facts.latest) == decisions[::-1][:50]
    words = words_of(campaign.page())
    for one in facts.latest:
        assert one.reason in words
    for amount in (facts.total, facts.spent, facts.reserved, facts.left, facts.reward):
        assert figure(amount, 6) in words


def test_open_decisions_of_minutes_are_told_apart_and_seconds_of_delay_are_no_warning() -> None:
    made = np.arange(0.0, 300.0, 5.0)
    found = Open(made=made, expires=made + 300.0, cost=np.ones(made.size))
    told = pending(found, now=304.0, clock="seconds", epoch=0.0)
    assert [one.words for one in told.by_age][:2] == ["up to 10 s", "up to 30 s"]
    assert sum(one.decisions for one in told.by_age) == told.decisions == 60
    assert [one.words for one in told.by_expiry][:2] == ["overdue", "within 10 s"]
    assert told.overdue == 1
    assert unsettled(found, now=304.0, clock="seconds") == 0  # a service settles it within a minute
    assert unsettled(found, now=460.0, clock="seconds") == 2
    assert unsettled(found, now=304.0, clock="rounds") == 1


def test_the_plan_ends_with_all_of_the_budget(campaign: Campaign) -> None:
    facts: CampaignFacts = campaign.facts()
    plan = facts.spending.plan
    assert plan[0] == (facts.spending.start, 0.0)
    assert plan[-1][0] == pytest.approx(facts.spending.end)
    assert plan[-1][1] == pytest.approx(facts.total)
    assert [at for at, _ in plan] == sorted(at for at, _ in plan)
    assert facts.spending.start <= facts.spending.now <= facts.spending.end


def test_people_are_shown_by_feature_and_changes_by_name() -> None:
    with doral.open("memory://") as store:
        campaign = of_people(store)
        facts, served = campaign.facts(), campaign.report().served()
        assert {one.feature for one in facts.groups} == set(served)
        assert [one.served for one in facts.groups if one.feature == "age"] == [one["served"] for one in served["age"]]
        changes = in_days(store, n=20).facts().spending.changes
        assert [one.words for one in changes] == ["topped up by 50", "arm letter paused"]


HOSTILE = ("</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "x" * 180, "検査\u202e[31m[b]&amp;")


def test_hostile_names_are_words(tmp_path: Path) -> None:
    arms = [doral.Arm(name, features=[i, 1.0], cost=1.0) for i, name in enumerate(HOSTILE)]
    with doral.open("memory://") as store:
        campaign = in_rounds(store, HOSTILE[0], 60, arms=arms, contexts=list(HOSTILE), horizon=100)
        campaign.decide(HOSTILE[1], key="<b>key</b>")
        html = campaign.page(tmp_path / "a.html")
        is_harmless(html)
        assert "<script>alert" not in html
        assert "<b>key" not in html
        assert "\u202e" not in html
        shown = (repr(campaign), repr(campaign.report()), repr(campaign.decide(HOSTILE[3])), str(campaign.report()))
        assert not any("\u202e" in one for one in shown)
        objects: list[Any] = [store, campaign, campaign.report(), campaign.ledger(), next(campaign.decisions())]
        for one in objects:
            card = one._repr_html_()
            Page(card)
            assert "<script" not in card
            assert "<img" not in card


def test_a_hundred_contexts_and_fifty_arms_stay_readable() -> None:
    arms = [doral.Arm(f"arm {i}", features=[i / 50, 1 - i / 50], cost=1.0 + i % 3) for i in range(50)]
    with doral.open("memory://") as store:
        contexts = [f"c{j}" for j in range(100)]
        problem = doral.Problem(arms=arms, contexts=contexts, budget=5_000, horizon=2_000, deadline=200)
        campaign = store.create("wide", problem, seed=1, clock="rounds")
        for _ in range(4):
            made = campaign.decide_many(contexts)
            campaign.feedback_many([(one.id, 1.0) for one in made if one.arm is not None][::2])
        facts, html = campaign.facts(), campaign.page()
    found = is_harmless(html)
    assert facts.n_pairs == 5_000
    assert len(facts.pairs) <= 1_000
    assert found.count("tr") < 1_000
    assert len(html) < 1_500_000
    assert sum(name.startswith("figure-context-") for name in found.attributes("id")) == 6
    assert re.search(r"The \d+ most used pairs of 5,000", words_of(html))


def test_a_page_is_written_whole_and_never_over_something_else(tmp_path: Path) -> None:
    with doral.open("memory://") as store:
        campaign = in_rounds(store, "kits", 5)
        path = tmp_path / "kits.html"
        assert campaign.page(path) == path.read_text(encoding="utf-8")
        campaign.decide("old")
        assert campaign.page(path) == path.read_text(encoding="utf-8")
        own = tmp_path / "own.html"
        own.write_text("<p>mine</p>")
        os.mkfifo(tmp_path / "pipe.html")  # nobody will ever write to it
        for bad in (own, tmp_path, tmp_path / "a.txt", tmp_path / "pipe.html", 7):
            with pytest.raises(InvalidValue):
                campaign.page(bad)  # type: ignore[arg-type]
        assert own.read_text() == "<p>mine</p>"
        with pytest.raises(StorageError, match="nothing was written"):
            campaign.page(tmp_path / "nowhere" / "a.html")
        assert sorted(one.name for one in tmp_path.iterdir()) == ["kits.html", "own.html", "pipe.html"]


def test_a_log_that_lacks_events_is_not_shown_as_if_whole(shop: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from doral.live.page.history import History

    read = History.read
    monkeypatch.setattr(History, "read", lambda self, events: read(self, events[1:-1]))
    with pytest.raises(BrokenLog, match="open decisions"):
        in_rounds(shop, "torn", 30).page()


def test_objects_say_in_a_line_what_they_are(shop: Store, tmp_path: Path) -> None:
    campaign = in_rounds(shop, "lines", 40)
    report = campaign.report()
    used = f"40 of 400 arrivals, {report.spent_share:.1%}"
    assert repr(campaign).startswith("<Campaign 'lines': open, 40 of 400 arrivals")
    assert repr(report).startswith(f"<Report of 'lines': open, {used}")
    objects: list[Any] = [campaign, report, report.ledger, *report.arms, *campaign.decisions()]
    for one in objects:
        assert "\n" not in repr(one)
        assert len(repr(one)) <= 200
        Page(one._repr_html_())
    assert all(len(line) <= 80 for line in str(report).splitlines())
    days = str(in_days(shop, "more days", 20).report())
    assert "cut-off 5 days" in days
    assert all(len(line) <= 80 for line in days.splitlines())
    store = doral.open(f"sqlite:///{tmp_path / 'a.db'}")
    store.create("kits", campaign.problem, clock="rounds")
    assert "kits" in store._repr_html_()
    store.close()
    assert "closed" in store._repr_html_()
    assert repr(store).endswith(", closed>")
    assert ARMS[0].name in report._repr_html_()


def test_a_group_says_what_is_done_there_and_why_without_contradicting_itself(shop: Store) -> None:
    from doral.live.page.charts import group_words

    facts = in_rounds(shop, "in words", 200).facts()
    for context in facts.contexts:
        usual, many = next(iter(context.recent.items()))
        assert sum(context.recent.values()) == min(50, context.arrivals)
        known = [one for one in facts.pairs if one.context == context.name and one.brings is not None]
        assert known
        best = max(known, key=lambda one: context.weight * (one.brings or 0.0) - (facts.price or 0.0) * one.cost)
        gained = context.weight * (best.brings or 0.0) - (facts.price or 0.0) * best.cost
        does, why = group_words(facts, context)
        assert (usual or "skipped") in does
        assert f"{100 * many / 50:g}%" in does
        assert best.arm in why
        if facts.price and gained < 0.0 and usual and "margin" not in why:
            assert "What was done differs" in why
