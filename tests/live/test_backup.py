"""Backups of stores that are in use, restored anywhere; campaigns that are deleted."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doral
from doral._files import UNFINISHED_SUFFIX
from doral.errors import InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog, CampaignExists, CampaignGone, StorageError, UnknownDecision
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.conftest import Zygote
from tests.live.damage import rewrite

Opener = Callable[[str], Store]
KILLS = int(os.environ.get("DORAL_TORTURE", "12")) // 2


def make(store: Store, name: str = "kits") -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")


def fill(campaign: Campaign, rounds: int = 30) -> None:
    for i in range(rounds):
        made = campaign.decide(writer.CONTEXTS[i % 2], key=f"visit-{i}")
        if made.arm is not None and i % 3:
            campaign.feedback(made.id, 0.1 * (i % 7), key=f"visit-{i}")
    campaign.expire(rounds + 40)


def everything(campaign: Campaign) -> Any:
    return list(campaign.decisions()), campaign.ledger(), str(campaign.report()), fold_of(campaign).to_json()


def is_sound(campaign: Campaign) -> None:
    adds_up(campaign)
    log_is_whole(campaign)
    found = campaign.verify()
    assert (found.events, found.n_differences) == (campaign.report().events, 0)


# --- backup and restore -------------------------------------------------------------------------------------------


def test_a_backup_is_a_store(store: Store, tmp_path: Path, open_store: Opener) -> None:
    for name in ("kits", "tests"):
        fill(make(store, name))
    store.campaign("kits").forget("visit-3")
    path = tmp_path / "backup.db"
    assert store.backup(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir() if "backup" in one.name) == ["backup.db"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    copy = open_store(f"sqlite:///{path}")
    assert copy.list() == ["kits", "tests"]
    for name in copy.list():
        assert everything(copy.campaign(name)) == everything(store.campaign(name))
        is_sound(copy.campaign(name))
    again = copy.campaign("kits").decide("old", key="visit-0")
    assert again == store.campaign("kits").decide("old", key="visit-0")
    copy.campaign("kits").decide("old", key="new")
    with pytest.raises(InvalidValue, match="is there already"):
        store.backup(path)


def test_a_backup_of_some(store: Store, tmp_path: Path, open_store: Opener) -> None:
    for name in ("a", "b", "c"):
        make(store, name)
    assert store.backup(tmp_path / "two.db", names=["a", "c"]) == 2
    assert open_store(f"sqlite:///{tmp_path / 'two.db'}").list() == ["a", "c"]
    for bad in ("a", 5, [5]):
        with pytest.raises(InvalidValue):
            store.backup(tmp_path / "none.db", names=bad)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="'d'"):
        store.backup(tmp_path / "none.db", names=["a", "d"])
    for path in (None, 5, "a\0b", tmp_path / "nowhere" / "x.db", tmp_path):
        with pytest.raises((InvalidValue, StorageError), match="path"):
            store.backup(path)  # type: ignore[arg-type]
    assert [one.name for one in tmp_path.glob("*none*")] == []


def test_a_backup_while_writers_write(durable_url: str, zygote: Zygote, tmp_path: Path, open_store: Opener) -> None:
    """Each copy is what was true at one moment: it adds up, and is a beginning of what the log is at the end."""
    store = open_store(durable_url)
    campaign = make(store)
    pid = zygote.start("forever", durable_url, "kits", 7, tmp_path / "notes")
    copies = []
    until = time.monotonic() + 30
    while campaign.report().events < 20 and time.monotonic() < until:
        time.sleep(0.01)
    for i in range(5):
        before = campaign.report().events
        store.backup(tmp_path / f"{i}.db")
        copies.append((before, tmp_path / f"{i}.db", campaign.report().events))
    zygote.kill(pid)
    events = campaign._session.read(lambda log, _: log.after(0))
    for before, path, after in copies:
        copy = open_store(f"sqlite:///{path}").campaign("kits")
        is_sound(copy)
        found = copy._session.read(lambda log, _: log.after(0))
        assert before <= len(found) <= after
        assert found == events[: len(found)]
    assert copies[-1][0] > copies[0][0]  # nobody waited


def test_killed_backups_leave_nothing_of_that_name(
    durable_url: str, zygote: Zygote, tmp_path: Path, open_store: Opener
) -> None:
    rng = random.Random(3)
    campaign = make(open_store(durable_url))
    for _ in range(10):
        campaign.decide_many(["old"] * 1000)
    finished = 0
    for life in range(KILLS):
        notes = tmp_path / f"kill-{life}"
        pid = zygote.start("back-up", durable_url, "kits", 0, notes)
        time.sleep(rng.uniform(0.0, 0.6))
        until = time.monotonic() + 30
        while life == 0 and time.monotonic() < until:  # on a busy machine, one at least is killed while it writes
            if any(one.name.startswith((".", "kill-")) for one in tmp_path.iterdir()):
                break
            time.sleep(0.01)
        zygote.kill(pid)
        for path in tmp_path.glob(f"kill-{life}-*.db"):
            copy = open_store(f"sqlite:///{path}").campaign("kits")
            assert copy.report().events == campaign.report().events
            finished += 1
    left = [one.name for one in tmp_path.iterdir() if one.name.startswith(".")]
    assert left or finished
    assert all(UNFINISHED_SUFFIX in name for name in left)
    is_sound(campaign)


@pytest.mark.parametrize("target", ["memory", "sqlite", "postgres"])
def test_restored_anywhere(target: str, tmp_path: Path, open_store: Opener, request: pytest.FixtureRequest) -> None:
    source = open_store(f"sqlite:///{tmp_path / 'source.db'}")
    for name in ("kits", "tests"):
        fill(make(source, name))
    source.backup(tmp_path / "backup.db")
    content = (tmp_path / "backup.db").read_bytes()
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'target.db'}"}
    store = open_store(urls[target] if target in urls else str(request.getfixturevalue("postgres_url")))
    assert store.restore(tmp_path / "backup.db", "tests") == ["tests"]
    assert store.list() == ["tests"]
    with pytest.raises(CampaignExists, match="'tests'.*delete it first"):
        store.restore(tmp_path / "backup.db")
    assert store.list() == ["tests"]  # all or none
    assert store.restore(str(tmp_path / "backup.db"), "kits") == ["kits"]
    for name in ("kits", "tests"):
        assert everything(store.campaign(name)) == everything(source.campaign(name))
        is_sound(store.campaign(name))
    made = next(one for one in source.campaign("kits").decisions() if one.state == "expired")
    assert store.campaign("kits").feedback(made.id, 0.5) == source.campaign("kits").feedback(made.id, 0.5)
    assert (tmp_path / "backup.db").read_bytes() == content
    assert not (tmp_path / "backup.db-wal").exists()
    with pytest.raises(UnknownName, match="'none'"):
        store.restore(tmp_path / "backup.db", "none")
    for bad in (None, tmp_path / "nowhere.db", tmp_path):
        with pytest.raises((InvalidValue, StorageError)):
            store.restore(bad)  # type: ignore[arg-type]


def test_damage_is_neither_copied_nor_restored(durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    store = open_store(durable_url)
    campaign = make(store)
    fill(campaign)
    store.backup(tmp_path / "good.db")
    rewrite(campaign, "UPDATE events SET reward = 0.77 WHERE sequence = 20")
    with pytest.raises(BrokenLog, match="event"):
        store.backup(tmp_path / "bad.db")
    assert not list(tmp_path.glob("*bad*"))
    store.delete("kits")  # however damaged
    with sqlite3.connect(tmp_path / "good.db") as connection:
        connection.execute("UPDATE events SET cost = 0.05 WHERE sequence = 20")
    connection.close()
    with pytest.raises(BrokenLog, match="event 20"):
        store.restore(tmp_path / "good.db")
    assert store.list() == []


@pytest.mark.parametrize("harm", ["key = 'd:other'", "key = X'6B'", "kind = 'two'", "person = '{}'"])
def test_what_can_be_erased_is_checked_from_the_first_event_on(tmp_path: Path, open_store: Opener, harm: str) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    make(store).decide("old", key="visit")
    store.backup(tmp_path / "backup.db")
    store.delete("kits")
    with sqlite3.connect(tmp_path / "backup.db") as connection:
        connection.execute(f"UPDATE events SET {harm} WHERE sequence = 2")
    connection.close()
    with pytest.raises(BrokenLog, match="event 2"):
        store.restore(tmp_path / "backup.db")
    assert store.list() == []


# --- restored and deleted under processes that run ----------------------------------------------------------------


def test_an_older_backup_under_a_running_process(url: str, tmp_path: Path, open_store: Opener) -> None:
    store = open_store(url)
    other = store if url.startswith("memory") else open_store(url)
    campaign, running = make(store), other.campaign("kits")
    fill(campaign)
    store.backup(tmp_path / "backup.db")
    before = everything(campaign)
    lost = running.decide("old", key="after-the-backup")
    running.report()
    store.delete("kits")
    with pytest.raises(CampaignGone, match="deleted"):
        running.report()
    with pytest.raises(CampaignGone, match="deleted"):
        running.decide("old")
    store.restore(tmp_path / "backup.db")
    assert everything(running) == before  # the restored truth
    with pytest.raises(UnknownDecision):
        running.feedback(lost.id, 0.5)
    made = running.decide("old", key="after-the-backup")
    assert store.campaign("kits").decision(made.id) == made
    is_sound(running)


def test_restored_between_two_requests(durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    """The process that runs sees nothing of the deletion, only a log that is older and then another one."""
    store, running = open_store(durable_url), open_store(durable_url)
    fill(make(store))
    store.backup(tmp_path / "backup.db")
    kept = running.campaign("kits")
    kept.decide_many(["old"] * 5)
    store.delete("kits")
    store.restore(tmp_path / "backup.db")
    for i in range(9):  # longer than what the other one knows
        store.campaign("kits").decide("young", key=f"other-{i}")
    made = kept.decide("old", key="mine")
    assert made == store.campaign("kits").decision(made.id)
    assert everything(kept) == everything(store.campaign("kits"))
    is_sound(kept)


def test_deleted_for_good(url: str, tmp_path: Path, open_store: Opener) -> None:
    store = open_store(url)
    other = store if url.startswith("memory") else open_store(url)
    campaign, running = make(store), other.campaign("kits")
    make(store, "another").decide("old", key="stays")
    fill(campaign)
    campaign.save_snapshot()
    old = campaign.decide("old")
    running.report()
    store.delete("kits")
    assert store.list() == ["another"]
    new = make(store)
    assert new is not campaign
    fill(new, 5)
    for stale in (campaign, running):
        for ask in (stale.report, lambda one=stale: one.decide("old"), lambda one=stale: one.feedback(old.id, 1.0)):
            with pytest.raises(CampaignGone, match="deleted"):
                ask()
    with pytest.raises(UnknownDecision, match="another campaign"):
        new.feedback(old.id, 1.0)
    assert other.campaign("kits").report().events == new.report().events
    is_sound(new)
    is_sound(store.campaign("another"))
    with pytest.raises(UnknownName, match="'kits'|'none'"):
        store.delete("none")


def test_what_was_deleted_is_in_no_file(tmp_path: Path, open_store: Opener) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'campaigns.db'}")
    campaign = make(store)
    campaign.decide_many([{"context": "old", "key": f"patient-Ada-{i}"} for i in range(500)])
    make(store, "another").decide("old", key="stays")
    campaign.save_snapshot()
    store.delete("kits")
    content = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert b"patient-Ada" not in content
    assert b"DORAL SNAPSHOT" not in content
    assert b"stays" in content


def test_deleted_while_others_write(durable_url: str, open_store: Opener) -> None:
    store = open_store(durable_url)
    make(store)
    ended: list[BaseException] = []

    def write() -> None:
        with doral.open(durable_url) as mine:
            try:
                while True:
                    mine.campaign("kits").decide("old")
            except doral.DoralError as error:
                ended.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    store.delete("kits")
    for thread in threads:
        thread.join()
    assert len(ended) == 3
    assert {type(error) for error in ended} <= {UnknownName, CampaignGone}
    assert store.list() == []
