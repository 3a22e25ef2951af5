"""Every change takes a key: asked again, however late, it changes nothing and gives the same answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import KeyReused
from doral.live.storage.service_tables import ActRow
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole

DAY = 86_400.0
PROBLEM = doral.Problem(
    arms=[doral.Arm("letter", cost=1.0), doral.Arm("call", cost=3.0)],
    contexts={"young": 0.5, "old": 0.5},
    budget=1_000,
    horizon=1_000,
    deadline=DAY,
)
Change = Callable[[Campaign, str], Any]
CHANGES: dict[str, tuple[Change, Change]] = {  # each, and the same key for something else
    "add_arm": (
        lambda one, key: one.add_arm(doral.Arm("visit", cost=5.0), key=key),
        lambda one, key: one.add_arm(doral.Arm("visit", cost=6.0), key=key),
    ),
    "pause_arm": (lambda one, key: one.pause_arm("call", key=key), lambda one, key: one.pause_arm("letter", key=key)),
    "retire_arm": (lambda one, key: one.retire_arm("call", key=key), lambda one, key: one.pause_arm("call", key=key)),
    "top_up": (lambda one, key: one.top_up(5.0, key=key), lambda one, key: one.top_up(6.0, key=key)),
    "extend": (lambda one, key: one.extend(5, key=key), lambda one, key: one.extend(6, key=key)),
    "expire": (
        lambda one, key: one.expire(key=key),
        lambda one, key: one.expire(time.time() - DAY, key=key),
    ),
    "repair_clock": (
        lambda one, key: one.repair_clock(key=key),
        lambda one, key: one.repair_clock(time.time() - 1.0, key=key),
    ),
    "forget": (
        lambda one, key: one.forget("visit-1", key),
        lambda one, key: one.forget(["visit-1", "visit-2"], key),
    ),
    "pause": (lambda one, key: one.pause(key=key), lambda one, key: one.resume(key=key)),
    "close": (lambda one, key: one.close(key=key), lambda one, key: one.top_up(5.0, key=key)),
}


def make(store: Store) -> Campaign:
    """With decisions that are overdue, and a clock that is ahead of this host's."""
    campaign = store.create("kits", PROBLEM, seed=1, at=time.time() - 10 * DAY)
    campaign.decide_many([{"context": "old", "key": f"visit-{i}", "at": time.time() - 9 * DAY} for i in range(4)])
    campaign.decide("old", at=time.time() + 200.0)
    return campaign


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_made_once(store: Store, name: str) -> None:
    campaign = make(store)
    change, another = CHANGES[name]
    said = change(campaign, "k")
    events = campaign.report().events
    before = campaign.report().to_dict()
    for _ in range(2):
        assert change(campaign, "k") == said
        campaign.session.close()
    assert campaign.report().events == events
    if name != "expire":  # in which time passes
        assert campaign.report().to_dict() == before
    with pytest.raises(KeyReused):
        another(campaign, "k")
    adds_up(campaign)
    log_is_whole(campaign)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_asked_by_many_at_once_is_made_once(
    name: str, durable_url: str, open_store: Callable[[str], Store]
) -> None:
    """Retries of one request through stores of their own, as processes and replicas have them."""
    campaign = make(open_store(durable_url))
    before = campaign.report().events
    handles = [open_store(durable_url).campaign("kits") for _ in range(4)]
    with ThreadPoolExecutor(len(handles)) as pool:
        said = list(pool.map(lambda one: CHANGES[name][0](one, "k"), handles))
    assert all(one == said[0] for one in said)
    assert [one.report().events for one in handles] == [before + 1] * len(handles)
    if name == "top_up":
        assert campaign.report().ledger.total == 1_005
    if name == "expire":
        assert said[0] == campaign.report().decisions["expired"] > 0
    adds_up(campaign)
    log_is_whole(campaign)


def test_a_late_pause_does_not_undo_what_came_after_it(store: Store) -> None:
    campaign = make(store)
    campaign.pause_arm("call", key="first")
    campaign.resume_arm("call", key="second")
    campaign.pause_arm("call", key="first")  # delayed on its way
    assert campaign.report().to_dict()["arms"][1]["status"] == "active"
    log_is_whole(campaign)


def test_what_changes_nothing_uses_its_key_up(store: Store) -> None:
    campaign = make(store)
    campaign.resume_arm("call", key="k")
    campaign.pause_arm("call")
    campaign.resume_arm("call", key="k")
    assert campaign.report().to_dict()["arms"][1]["status"] == "paused"
    assert campaign.expire(time.time() - 9.5 * DAY, key="none") == 0
    assert campaign.expire(time.time() - 9.5 * DAY + 1e-3) == 0


def act(name: str) -> ActRow:
    return ActRow(
        number=0, at=1.0, key_id="k", key_name="n", act=name, campaign="kits", details="{}", request_id="", address=""
    )


def test_a_change_and_its_note_are_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(store)
    with campaign.session.noting(lambda _: act("paused")):
        campaign.pause_arm("call")
    assert [one.act for one in store.books.acts()] == ["paused"]
    with campaign.session.noting(lambda _: act("again")):
        campaign.pause_arm("call")  # nothing changes
    with pytest.raises(doral.DoralError), campaign.session.noting(lambda _: act("refused")):
        campaign.pause_arm("nobody")
    campaign.top_up(1.0)  # not noted any more
    assert [one.act for one in store.books.acts()] == ["paused"]

    def fails(_: ActRow) -> None:
        raise RuntimeError("the note cannot be written")

    events = campaign.report().events
    monkeypatch.setattr(campaign.session._open(), "note", fails)
    with pytest.raises(RuntimeError), campaign.session.noting(lambda _: act("lost")):
        campaign.top_up(1.0)
    monkeypatch.undo()
    campaign.session.close()
    assert campaign.report().events == events
    log_is_whole(campaign)
