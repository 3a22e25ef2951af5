"""Facts that are kept up to date are the facts that reading the whole log gives, after every step."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import doral
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.events.row import Row
from doral.live.page.history import MOST_PERIODS
from doral.live.page.watch import Watch
from doral.live.storage.contract import Log
from doral.live.store import Store
from tests.live import people
from tests.live.campaigns import DAY, KINDS, in_rounds, of_people
from tests.live.checks import expire_as_before

STEPS = 40


def same(campaign: Campaign, watch: Watch) -> None:
    """What was kept, and what is read anew."""
    now = time.time()
    assert watch.facts(now=now) == Watch(campaign.session).facts(now=now)


def step(campaign: Campaign, rng: random.Random, number: int) -> None:
    """One thing that people do; some of it is refused, which changes nothing."""
    is_person = bool(campaign.problem.person)
    context = None if is_person else rng.choice(campaign.problem.context_names)
    features = people.somebody(rng) if is_person else None
    decisions = list(campaign.decisions())
    some = rng.choice(decisions).id if decisions else "00000000-2"
    width = campaign.problem.features.shape[1]
    steps: list[Callable[[], object]] = [
        lambda: [campaign.decide(context, features=features, key=f"k{number}-{i}") for i in range(3)],
        lambda: campaign.decide(context, features=features),
        lambda: campaign.feedback(some, rng.random()),
        lambda: campaign.feedback(next(campaign.decisions("pending")).id, 1.0),
        lambda: campaign.correct(some, rng.random()),
        lambda: campaign.cancel(some),
        lambda: expire_as_before(campaign, release=rng.random() < 0.5),
        lambda: campaign.add_arm(doral.Arm(f"new {number}", features=[rng.random()] * width, cost=1.0)),
        lambda: campaign.pause_arm(campaign.problem.arm_names[-1]),
        lambda: campaign.top_up(5.0),
        lambda: campaign.extend(7),
        lambda: campaign.record(
            context, rng.choice([*campaign.problem.arm_names, None]), decisions[-1].decided_at,
            spend=rng.random() < 0.5, features=features,
        ),
        lambda: campaign.repair_clock(decisions[-1].decided_at if rng.random() < 0.5 else None),
        lambda: campaign.forget([f"k{rng.randrange(number + 1)}-0"]),
    ]  # fmt: skip
    with suppress(DoralError, StopIteration, IndexError):
        rng.choice(steps)()


@pytest.mark.parametrize("kind", KINDS)
def test_facts_are_the_same_after_every_step(kind: str) -> None:
    with doral.open("memory://") as store:
        campaign = KINDS[kind](store)
        watch, rng = Watch(campaign.session), random.Random(kind)
        for number in range(STEPS):
            same(campaign, watch)
            step(campaign, rng, number)
        same(campaign, watch)


def test_a_few_new_events_cost_no_reading_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    with doral.open("memory://") as store:
        campaign = of_people(store)
        watch = Watch(campaign.session)
        watch.facts()
        kind: type[Log] = type(campaign.session.read(lambda log, _: log))
        read: list[int] = []
        after, decided = kind.after, kind.decided_after

        def counted(self: Log, sequence: int, **how: int) -> list[Row]:
            found = after(self, sequence, **how)
            read.append(len(found))
            return found

        monkeypatch.setattr(kind, "after", counted)
        monkeypatch.setattr(kind, "decided_after", lambda *_, **__: pytest.fail("all decisions are read"))
        made = campaign.decide(features=people.somebody(random.Random(3)))
        if made.state == "pending":
            campaign.feedback(made.id, 1.0)
        watch.facts()
        assert sum(read) <= 4
        monkeypatch.setattr(kind, "decided_after", decided)
        same(campaign, watch)


def test_another_log_under_the_same_name_is_read_anew(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    campaign = in_rounds(store, "kits", 20)
    watch = Watch(campaign.session)
    store.backup(tmp_path / "b.db")
    for _ in range(5):
        campaign.decide("old")
    same(campaign, watch)
    store.delete("kits")
    store.restore(tmp_path / "b.db")
    same(store.campaign("kits"), watch)
    for _ in range(9):
        store.campaign("kits").decide("young")
    same(store.campaign("kits"), watch)


@pytest.mark.parametrize(
    ("length_s", "unit_s"), [(1.0, 60.0), (3_600.0, 60.0), (6_000.0, 600.0), (2 * DAY, 3_600.0), (9 * DAY, DAY)]
)
def test_young_campaigns_are_told_by_shorter_periods(length_s: float, unit_s: float) -> None:
    with doral.open("memory://") as store:
        problem = in_rounds(store, "as", 0, deadline=DAY).problem
        began = time.time() - length_s
        campaign = store.create("young", problem, seed=1, at=began)
        for i in range(30):
            made = campaign.decide("old", at=began + length_s * i / 30)
            if made.state == "pending":
                campaign.feedback(made.id, 1.0, at=began + length_s * (i + 0.9) / 30)
        facts = campaign.facts()
        assert {one.ends - one.begins for one in facts.periods} == {unit_s}
        assert len(facts.periods) <= MOST_PERIODS
        assert sum(one.reward for one in facts.periods) == pytest.approx(campaign.report().reward)
        assert sum(one.arrivals for one in facts.periods) == 30
        assert [one.begins for one in facts.periods] == sorted(one.begins for one in facts.periods)
