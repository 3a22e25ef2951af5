"""Decisions in the log are facts: another engine's are adopted, and `verify` says where this one would differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog
from doral.live.events.event import known
from doral.live.runtime.replay import replay
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.store import Store
from tests.live import people
from tests.live.campaigns import KINDS
from tests.live.checks import adds_up
from tests.live.damage import rewrite
from tests.live.tapes import same_bits

Opener = Callable[[str], Store]


def make(store: Store, policy: str = "doral-otf") -> Campaign:
    problem = doral.Problem(
        arms=[doral.Arm(name, features=[i, 1.0]) for i, name in enumerate("abc")],
        contexts=["old", "young"],
        budget=300,
        horizon=300,
        deadline=30,
    )
    return store.create("kits", problem, policy=policy, seed=1, clock="rounds")


def busy(campaign: Campaign) -> None:
    for i in range(60):
        made = campaign.decide("old" if i % 3 else "young")
        if made.arm is not None and i % 2:
            campaign.feedback(made.id, {"a": 0.1, "b": 0.9, "c": 0.5}[made.arm])


def test_a_whole_log_of_this_engine(store: Store) -> None:
    campaign = make(store)
    busy(campaign)
    found = campaign.verify()
    assert (found.events, found.n_differences, found.differences) == (campaign.report().events, 0, ())
    [stretch] = found.engines
    assert (stretch.first, stretch.last, stretch.engine["doral"]) == (1, found.events, doral.__version__)
    assert len(found.head) == 32
    before = found.head
    campaign.decide("old")
    assert campaign.verify().head != before


@pytest.mark.parametrize("policy", ["doral-otf", "doral", "random", "d-lints"])
def test_other_decisions_are_adopted(policy: str, durable_url: str, open_store: Opener) -> None:
    """As if an engine that chooses otherwise had written the log, and named itself."""
    campaign = make(open_store(durable_url), policy)
    busy(campaign)
    before = {one.id: one for one in campaign.decisions()}
    rewrite(
        campaign,
        "UPDATE events SET arm = (arm + 1) % 3 WHERE arm IS NOT NULL AND number % 5 = 0",
        "UPDATE events SET data = replace(data, 'sources', 'hidden') WHERE sequence = 1",
        with_chain=True,
    )
    campaign = open_store(durable_url).campaign("kits")
    after = {one.id: one for one in adds_up(campaign)}
    other = {"a": "b", "b": "c", "c": "a"}
    changed = [id_ for id_ in before if after[id_].arm != before[id_].arm]
    assert all(after[id_].arm == other[before[id_].arm or ""] for id_ in changed)
    assert len(changed) > 8
    assert {id_: one.state for id_, one in after.items()} == {id_: one.state for id_, one in before.items()}
    found = campaign.verify()
    assert {one.decision_id for one in found.differences} <= set(after)
    assert found.n_differences >= len(changed) / 2
    made = campaign.decide("old")
    assert made.round == 61
    campaign.feedback(next(one.id for one in after.values() if one.state == "pending"), 0.3)
    names = [stretch.engine for stretch in campaign.verify().engines]
    assert "hidden" in names[0]
    assert "sources" in names[1]
    adds_up(campaign)


def test_damage_under_a_snapshot_is_found(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    busy(campaign)
    campaign.save_snapshot()
    rewrite(campaign, "UPDATE events SET reward = 0.8 WHERE sequence = 4")
    campaign.report()  # what the snapshot says is right
    with pytest.raises(BrokenLog, match="event 4 is not what was written"):
        campaign.verify()
    with pytest.raises(BrokenLog, match="event 4"):
        list(campaign.decisions())


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM events WHERE sequence = 5",
        "UPDATE events SET decision = NULL WHERE sequence = 5",
        "UPDATE events SET key = NULL, key_hash = NULL WHERE sequence = 2",
    ],
)
def test_what_is_missing_under_a_snapshot_is_found_at_opening(sql: str, durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    made = campaign.decide("young", key="visit-1")
    assert made.id.endswith("-2")
    busy(campaign)
    campaign.save_snapshot()
    rewrite(campaign, sql)
    with pytest.raises(BrokenLog, match="it was damaged"):
        open_store(durable_url).campaign("kits").decide("young", key="visit-1")


@pytest.mark.parametrize("policy", ["doral", "d-alp", "doral-otf"])
def test_a_snapshot_after_new_arms_only_saves_time(policy: str, durable_url: str, open_store: Opener) -> None:
    """What follows from the number of arms at the start, such as how many a race accepts, does not change."""
    campaign = make(open_store(durable_url), policy)
    for name in ("d", "e", "f"):
        campaign.add_arm(doral.Arm(name, features=[0.3, 0.7]))
    campaign.save_snapshot()
    other = open_store(durable_url).campaign("kits")
    for i in range(120):
        made = (campaign if i % 2 else other).decide("old")
        if made.arm is not None:
            (other if i % 2 else campaign).feedback(made.id, 0.5)
    assert campaign.verify().n_differences == 0
    assert other.verify().n_differences == 0


def test_a_corrected_reward_leaves_no_trace_in_the_report(store: Store) -> None:
    campaign = make(store)
    made = [campaign.decide("old") for _ in range(3)]
    for one, reward in zip(made, (0.1, 0.2, 1e9), strict=True):
        campaign.feedback(one.id, reward)
    campaign.correct(made[2].id, 0.3)
    assert campaign.report().reward == 0.6


def test_a_snapshot_that_says_something_else_is_found(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    busy(campaign)
    campaign._session._state.counts.reward += 1  # type: ignore[union-attr]
    with pytest.raises(BrokenLog, match="counts in use"):
        campaign.verify()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(("empty", "closed"))])
def test_facts_are_adopted_together_as_one_by_one(kind: str) -> None:
    """Whoever asks what this engine would have decided reads each of them; all others read many at once."""
    with doral.open("memory://") as store:
        campaign = KINDS[kind](store)
        problem, rng = campaign.problem, random.Random(7)
        for n in (1, 2, 40, 3, 90):
            asked: list[dict[str, Any]] = [{"context": rng.choice(problem.context_names)} for _ in range(n)]
            for i, one in enumerate(asked):
                if problem.person:
                    one["features"] = people.somebody(rng)
                if rng.random() < 0.3:
                    served = [arm for i, arm in enumerate(problem.arm_names) if i != problem.control]
                    one["available"] = [rng.choice(served)]
                if rng.random() < 0.3:
                    one["key"] = f"{n}-{i}"
            campaign.decide_many(asked)

        def look(log: Log, fold: CampaignState) -> None:
            events, told = log.after(1), list[int]()
            together, apart = (CampaignState(fold.definition, fold.names.tag) for _ in range(2))
            for one in (together, apart):
                one.head = one.salt = known(log.after(0, limit=1)[0].chain)
            replay(together, events)
            replay(apart, events, lambda event, _: told.append(event.sequence))
            assert told == [event.sequence for event in events]
            for one in (together, apart):
                assert same_bits(one.engine.state, fold.engine.state) == []
                assert one.to_json() == fold.to_json()

        campaign._session.read(look)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("round = round + 1", "do not follow"),
        ("number = number + 1", "do not follow"),
        ("clock = clock - 50", "does not follow"),
        ("reason = NULL", "lacks a value"),
        ("context = 7", "no context"),
        ("arm = 9", "no arm"),
    ],
)
def test_facts_that_cannot_be(change: str, said: str, durable_url: str, open_store: Opener) -> None:
    """In the middle of many that are read at once; the chain was computed anew."""
    campaign = make(open_store(durable_url))
    campaign.decide_many(["old", "young"] * 60)
    one = "(SELECT min(sequence) FROM events WHERE sequence > 10 AND arm IS NOT NULL)"
    rewrite(campaign, f"UPDATE events SET {change} WHERE sequence = {one}", with_chain=True)
    with pytest.raises(BrokenLog, match=said):
        open_store(durable_url).campaign("kits").report()
