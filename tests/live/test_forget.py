"""Keys that are forgotten: nowhere to be found, and still used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog, KeyReused, StorageBusy
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.damage import rewrite

SECRET = "patient-Ada-Lovelace-1815"


def make(store: Store, name: str = "kits") -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds")


def use_everywhere(campaign: Campaign) -> tuple[doral.Decision, doral.Decision]:
    """The same key for a decision, an answer, and a change; and one for a record."""
    made = campaign.decide("old", key=SECRET)
    campaign.feedback(made.id, 0.5, key=SECRET)
    campaign.top_up(3.0, key=SECRET)
    recorded = campaign.record("young", "a0", at=2, reward=0.1, answered_at=3, spend=True, key=f"{SECRET}-record")
    return campaign.decision(made.id), recorded


def traces(path: Path) -> list[str]:
    """Files beside the database and itself that hold the text."""
    return [one.name for one in path.parent.iterdir() if one.is_file() and SECRET.encode() in one.read_bytes()]


def test_a_forgotten_key_is_gone_and_still_used(store: Store) -> None:
    campaign = make(store)
    made, recorded = use_everywhere(campaign)
    ledger = campaign.ledger()
    assert made.key == SECRET
    assert campaign.forget(SECRET) == 3
    assert campaign.forget([f"{SECRET}-record"]) == 1
    assert campaign.forget(SECRET) == 0  # nothing is left to erase
    assert campaign.ledger() == ledger
    assert campaign.decision(made.id).key is None
    again = campaign.decide("old", key=SECRET)
    assert (again.id, again.arm, again.reward) == (made.id, made.arm, made.reward)
    assert campaign.feedback(made.id, 0.5, key=SECRET).id == made.id
    campaign.top_up(3.0, key=SECRET)
    assert (
        campaign.record("young", "a0", at=2, reward=0.1, answered_at=3, spend=True, key=f"{SECRET}-record").id
        == recorded.id
    )
    assert campaign.ledger() == ledger
    for ask in (
        lambda: campaign.decide("young", key=SECRET),
        lambda: campaign.feedback(made.id, 0.6, key=SECRET),
        lambda: campaign.top_up(4.0, key=SECRET),
    ):
        with pytest.raises(KeyReused):
            ask()
    adds_up(campaign)
    log_is_whole(campaign)


def test_keys_of_requests_that_changed_nothing(store: Store) -> None:
    campaign = make(store)
    made = campaign.decide("old")
    campaign.feedback(made.id, 0.5)
    campaign.feedback(made.id, 0.5, key=SECRET)  # noted
    campaign.close()
    assert campaign.forget(SECRET) == 1
    with pytest.raises(KeyReused):
        campaign.feedback(made.id, 0.7, key=SECRET)
    log_is_whole(campaign)


@pytest.mark.parametrize("bad", ["never-used", "", None, 5, [], ["never-used", SECRET], b"x"])
def test_keys_that_cannot_be_forgotten(store: Store, bad: Any) -> None:
    campaign = make(store)
    use_everywhere(campaign)
    events = campaign.report().events
    if bad == []:
        assert campaign.forget(bad) == 0
    else:
        with pytest.raises(InvalidValue, match="key"):
            campaign.forget(bad)
    assert campaign.report().events == events
    assert fold_of(campaign).erased == set()


def test_no_file_holds_the_text(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    """Nor do pages of the file that are not in use any more: an index that an earlier version had, for example."""
    path = tmp_path / "campaigns.db"
    campaign = make(open_store(f"sqlite:///{path}"))
    use_everywhere(campaign)
    for batch in range(20):
        campaign.decide_many([{"context": "old", "key": f"{SECRET}-{batch}-{i}"} for i in range(50)])
    campaign.save_snapshot()
    run = campaign._session._open()._connection.execute  # type: ignore[attr-defined]
    for sql in ("PRAGMA secure_delete = OFF", "CREATE TABLE once AS SELECT key FROM events", "DROP TABLE once"):
        run(sql)
    assert traces(path)
    assert SECRET.encode() not in encode(fold_of(campaign))
    assert campaign.forget([SECRET, f"{SECRET}-record"]) == 4
    assert campaign.forget([f"{SECRET}-{batch}-{i}" for batch in range(20) for i in range(50)]) == 1000
    assert traces(path) == []
    adds_up(campaign)
    log_is_whole(campaign)


def test_a_reader_of_the_old_state_is_told(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    path = tmp_path / "campaigns.db"
    url = f"sqlite:///{path}"
    make(open_store(url))
    with doral.open(url, lock_timeout_s=0.5) as store:
        campaign = store.campaign("kits")
        use_everywhere(campaign)
        other = doral.live.storage.sqlite.SqliteConnection(path)
        other.begin_reading()
        with pytest.raises(StorageBusy, match="it is erased, but .*ask again"):
            campaign.forget(SECRET)
        other.rollback()
        other.close()
        assert campaign.forget([SECRET, f"{SECRET}-record"]) == 1
        assert traces(path) == []


def test_other_processes_go_on(durable_url: str, open_store: Callable[[str], Store]) -> None:
    """Those who have read the key already, and those who read the log while it is being forgotten."""
    campaign = make(open_store(durable_url))
    other = open_store(durable_url).campaign("kits")
    keys = [f"visit-{i}" for i in range(60)]
    campaign.decide_many([{"context": "old", "key": key} for key in keys])
    other.report()
    failed: list[BaseException] = []
    is_done = threading.Event()

    def read() -> None:
        try:
            while not is_done.is_set():
                with doral.open(durable_url) as store:
                    store.campaign("kits").report()
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for key in keys[:25]:
        assert campaign.forget(key) == 1
    is_done.set()
    reader.join()
    assert failed == []
    assert [one.key for one in other.decisions()] == [None] * 25 + keys[25:]
    log_is_whole(other)


def test_a_key_that_vanished_otherwise_is_damage(durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign = make(open_store(durable_url))
    use_everywhere(campaign)
    campaign.decide("old", key="another")
    campaign.forget(SECRET)
    rewrite(campaign, "UPDATE events SET key = NULL WHERE key = 'd:another'")
    with pytest.raises(BrokenLog, match="the key of event"):
        campaign.report()
