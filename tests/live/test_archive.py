"""Old events in files: nothing of the campaign changes, and the files are asked for only when they are needed."""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import doral
from doral._files import UNFINISHED_SUFFIX
from doral.errors import InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import ArchiveMissing, BrokenLog, KeyReused, StorageError
from doral.live.store import Store
from tests.live import writer
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.conftest import Zygote

Opener = Callable[[str], Store]
KILLS = int(os.environ.get("DORAL_TORTURE", "12")) // 2


def make(store: Store, name: str = "kits", **changes: Any) -> Campaign:
    return store.create(name, writer.PROBLEM, policy=writer.POLICY, seed=1, clock="rounds", **changes)


def fill(campaign: Campaign, rounds: int = 40, start: int = 0) -> None:
    """All of them finished: answered, corrected, cancelled, noted or expired."""
    for i in range(start, start + rounds):
        made = campaign.decide(writer.CONTEXTS[i % 2], key=f"visit-{i}")
        if made.arm is None:
            continue
        if i % 5 == 0:
            campaign.cancel(made.id, key=f"visit-{i}")
        elif i % 5 < 4:
            campaign.feedback(made.id, 0.1 * (i % 7), key=f"visit-{i}")
            campaign.correct(made.id, 0.05 * (i % 7))
    campaign.expire(start + rounds + 70)


def everything(campaign: Campaign) -> Any:
    return list(campaign.decisions()), campaign.ledger(), str(campaign.report()), fold_of(campaign).to_json()


def rows_left(campaign: Campaign) -> int:
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    sql = f"SELECT count(*) FROM {connection.schema}events WHERE campaign_id = {campaign._session.row.id}"
    return int(connection.execute(sql)[0][0])


def is_sound(campaign: Campaign) -> None:
    adds_up(campaign)
    log_is_whole(campaign)
    found = campaign.verify()
    assert (found.events, found.n_differences) == (campaign.report().events, 0)


def without_snapshots(campaign: Campaign) -> None:
    """As a new version finds a campaign: it has to read the whole log."""
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    connection.execute(f"DELETE FROM {connection.schema}snapshots")
    campaign._session.close()


@pytest.fixture
def campaign(durable_url: str, open_store: Opener) -> Campaign:
    return make(open_store(durable_url))


def test_nothing_changes(campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    fill(campaign)
    twin = make(open_store("memory://"))
    fill(twin)
    before, events = everything(campaign), campaign.report().events
    moved = campaign.archive(tmp_path / "old.parquet")
    assert moved == events - 2  # all but the first and the last
    assert rows_left(campaign) == 2
    assert stat.S_IMODE((tmp_path / "old.parquet").stat().st_mode) == 0o600
    assert [(one.path, one.first, one.last) for one in campaign.archives()] == [
        (tmp_path / "old.parquet", 2, events - 1)
    ]
    assert everything(campaign) == before
    other = open_store(durable_url).campaign("kits")
    assert everything(other) == before
    is_sound(other)
    fill(campaign, 20, start=40)
    fill(twin, 20, start=40)
    assert campaign.archive(str(tmp_path / "more.parquet")) > 0
    assert [(one.arm, one.state, one.reward) for one in other.decisions()] == [
        (one.arm, one.state, one.reward) for one in twin.decisions()
    ]
    without_snapshots(other)
    assert everything(other) == everything(campaign)
    is_sound(other)


def test_archived_decisions_can_be_looked_up_and_answered(campaign: Campaign, tmp_path: Path) -> None:
    fill(campaign)
    made = list(campaign.decisions())
    campaign.archive(tmp_path / "old.parquet")
    assert [campaign.decision(one.id) for one in made] == made
    events = campaign.report().events
    for i, one in enumerate(made):
        assert campaign.decide(writer.CONTEXTS[i % 2], key=f"visit-{i}") == one
        with pytest.raises(KeyReused):
            campaign.decide(writer.CONTEXTS[(i + 1) % 2], key=f"visit-{i}")
    assert campaign.report().events == events
    expired = next(one for one in made if one.state == "expired")
    assert campaign.feedback(expired.id, 0.25, key="late").state == "late"
    assert campaign.correct(expired.id, 0.5).reward == 0.5
    corrected = next(one for one in made if one.state == "returned")
    assert campaign.correct(corrected.id, 0.7, key="better").reward == 0.7
    assert campaign.decision(corrected.id).reward == 0.7
    campaign.export(tmp_path / "all.parquet")
    assert pl.read_parquet(tmp_path / "all.parquet")["id"].to_list() == [one.id for one in made]
    is_sound(campaign)


def test_open_decisions_stay(campaign: Campaign, tmp_path: Path) -> None:
    fill(campaign, 20)
    waiting = campaign.decide("old")
    assert waiting.state == "pending"
    fill_rest = [campaign.decide("young", key=f"later-{i}") for i in range(10)]
    campaign.feedback_many([(one.id, 0.5) for one in fill_rest if one.arm is not None])
    campaign.archive(tmp_path / "old.parquet")
    assert campaign.archives()[0].last == int(waiting.id.split("-")[1]) - 1
    assert campaign.archive(tmp_path / "none.parquet") == 0
    assert not (tmp_path / "none.parquet").exists()
    (tmp_path / "old.parquet").rename(tmp_path / "away.parquet")
    assert list(campaign.decisions("pending")) == [waiting]
    campaign.feedback(waiting.id, 0.5)
    assert campaign.archive(tmp_path / "more.parquet") > 0  # without a look at the earlier one


def test_before_a_time(durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    now = time.time()
    campaign = open_store(durable_url).create(
        "kits", writer.PROBLEM, doral.policy("doral-otf", pacing="greedy", start_share=0), seed=1, at=now - 1000
    )
    for i in range(10):
        made = campaign.decide("old", at=now - 900 + 10 * i)
        campaign.feedback(made.id, 0.5, at=now - 900 + 10 * i + 1)
    assert campaign.archive(tmp_path / "none.parquet", before=now - 950) == 0
    assert campaign.archive(tmp_path / "old.parquet", before=now - 850) == 10  # 5 decisions and their answers
    is_sound(campaign)
    for bad in ("x", float("nan")):
        with pytest.raises(InvalidValue, match="before"):
            campaign.archive(tmp_path / "x.parquet", before=bad)


def test_reports_and_decisions_do_without_the_file(
    campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener
) -> None:
    fill(campaign)
    made = next(one for one in campaign.decisions() if one.state == "expired")
    archived = tmp_path / "old.parquet"
    campaign.archive(archived)
    archived.rename(tmp_path / "moved.parquet")
    other = open_store(durable_url).campaign("kits")
    for one in (campaign, other):
        one.report()
        new = one.decide("old")
        one.feedback(new.id, 0.5)
        one.expire()
        events = one.report().events
        for ask in (
            lambda one=one: one.decision(made.id),
            lambda one=one: one.feedback(made.id, 0.5),
            lambda one=one: one.decide("old", key="visit-0"),
            lambda one=one: one.forget("visit-0"),
            lambda one=one: list(one.decisions()),
        ):
            with pytest.raises(ArchiveMissing, match="old.parquet.*put the archive back"):
                ask()
        assert one.report().events == events
    without_snapshots(other)
    with pytest.raises(ArchiveMissing, match="old.parquet"):
        other.report()
    with pytest.raises(InvalidValue, match="no such file"):
        campaign.relocate_archive(archived, tmp_path / "nowhere.parquet")
    with pytest.raises(UnknownName, match="archive"):
        campaign.relocate_archive(tmp_path / "nowhere.parquet", tmp_path / "moved.parquet")
    campaign.relocate_archive(archived, tmp_path / "moved.parquet")
    assert other.decision(made.id) == made == campaign.decision(made.id)
    is_sound(other)


@pytest.mark.parametrize(
    "column", ["reward", "arm", "cost", "key", "chain", "decision", "sequence", "rows", "bytes", "text"]
)
def test_an_altered_file_is_noticed(column: str, tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store(f"sqlite:///{tmp_path / 'campaigns.db'}"))
    fill(campaign)
    path = tmp_path / "old.parquet"
    campaign.archive(path)
    frame = pl.read_parquet(path)
    if column == "rows":
        frame.slice(0, len(frame) - 1).write_parquet(path)
    elif column == "text":
        path.write_text("no archive")
    elif column == "bytes":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 255
        path.write_bytes(content)
    else:
        values = frame[column].to_list()
        at = next(i for i, value in enumerate(values) if i > 10 and value is not None)
        values[at] = values[at] + type(values[at])(
            *([b"x"] if column == "chain" else ["x"] if column == "key" else [1])
        )
        frame.with_columns(pl.Series(column, values, dtype=frame[column].dtype)).write_parquet(path)
    campaign.decide("old")
    without_snapshots(campaign)
    with pytest.raises(BrokenLog, match="old.parquet"):
        campaign.report()


def test_files_that_are_there_are_not_replaced(campaign: Campaign, tmp_path: Path) -> None:
    fill(campaign)
    (tmp_path / "old.parquet").write_text("mine")
    with pytest.raises(InvalidValue, match="is there already"):
        campaign.archive(tmp_path / "old.parquet")
    assert (tmp_path / "old.parquet").read_text() == "mine"
    for bad in (None, 5, "x.csv", tmp_path / "x.db", "a\0.parquet"):
        with pytest.raises(InvalidValue, match="path"):
            campaign.archive(bad)  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="path"):
        campaign.archive(tmp_path / "nowhere" / "x.parquet")
    assert campaign.archives() == []
    is_sound(campaign)


def test_rounds_are_not_seconds(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="before = .*counts rounds"):
        campaign.archive(tmp_path / "old.parquet", before=1_767_225_600)
    assert list(tmp_path.glob("*.parquet")) == []


def test_memory_cannot_archive(tmp_path: Path, open_store: Opener) -> None:
    campaign = make(open_store("memory://"))
    fill(campaign)
    with pytest.raises(StorageError, match="SQLite or PostgreSQL"):
        campaign.archive(tmp_path / "old.parquet")
    assert list(tmp_path.iterdir()) == []


def test_keys_are_forgotten_in_files_too(
    campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener
) -> None:
    secret = "patient-Ada-Lovelace"
    made = campaign.decide("old", key=secret)
    campaign.feedback(made.id, 0.5, key=secret)
    fill(campaign)
    path = tmp_path / "old.parquet"
    campaign.archive(path)
    other = open_store(durable_url).campaign("kits")
    assert other.decision(made.id).key == secret
    assert secret in pl.read_parquet(path)["key"].str.slice(2).to_list()
    assert campaign.forget(secret) == 2
    assert secret not in pl.read_parquet(path)["key"].str.slice(2).to_list()
    assert all(secret.encode() not in one.read_bytes() for one in tmp_path.iterdir())
    assert other.decision(made.id).key is None
    assert other.decide("old", key=secret).id == made.id
    with pytest.raises(KeyReused):
        other.decide("young", key=secret)
    without_snapshots(other)
    is_sound(other)


def test_a_backup_is_complete(campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener) -> None:
    fill(campaign)
    campaign.archive(tmp_path / "old.parquet")
    fill(campaign, 10, start=40)
    campaign.archive(tmp_path / "more.parquet")
    store = open_store(durable_url)
    store.backup(tmp_path / "backup.db")
    before = everything(campaign)
    shutil.move(tmp_path / "old.parquet", tmp_path / "away.parquet")
    with pytest.raises(ArchiveMissing):
        store.backup(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    store.delete("kits")
    assert (tmp_path / "more.parquet").exists()
    store.restore(tmp_path / "backup.db")
    assert everything(store.campaign("kits")) == before
    assert store.campaign("kits").archives() == []
    is_sound(store.campaign("kits"))


def test_archived_while_others_read_and_write(
    campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener
) -> None:
    failed: list[BaseException] = []
    is_done = threading.Event()

    def work(number: int) -> None:
        try:
            with doral.open(durable_url) as store:
                mine = store.campaign("kits")
                while not is_done.is_set():
                    made = mine.decide("old", key=f"w{number}-{random.random()}")
                    if made.arm is not None:
                        mine.feedback(made.id, 0.5)
                    known = list(mine.decisions())
                    assert [one.id for one in known] == sorted(
                        (one.id for one in known), key=lambda one: int(one.split("-")[1])
                    )
                    assert mine.decision(known[len(known) // 2].id).id == known[len(known) // 2].id
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for i in range(8):
        time.sleep(0.1)
        campaign.archive(tmp_path / f"{i}.parquet")
    is_done.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(campaign.archives()) >= 3
    is_sound(campaign)


def test_killed_while_archiving(
    campaign: Campaign, durable_url: str, zygote: Zygote, tmp_path: Path, open_store: Opener
) -> None:
    rng = random.Random(5)
    for life in range(KILLS):
        pid = zygote.start("archive", durable_url, "kits", 0, tmp_path / f"life{life}")
        until = time.monotonic() + 30
        begun = f".life{life}-*" if life % 3 == 0 else f"life{life}-*"
        while not list(tmp_path.glob(begun)) and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.1))
        zygote.kill(pid)
        found = open_store(durable_url).campaign("kits")
        is_sound(found)
        assert all(one.path.exists() for one in found.archives())
        if life % 3 == 2:
            without_snapshots(found)
            is_sound(found)
    assert len(campaign.archives()) >= KILLS // 2
    left = [one.name for one in tmp_path.iterdir() if one.name.startswith(".")]
    assert all(name.endswith(UNFINISHED_SUFFIX) for name in left)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM archived_keys",
        "DELETE FROM archived_keys WHERE sequence = (SELECT max(sequence) FROM archived_keys)",
        "INSERT INTO archived_keys SELECT campaign_id, chain_after, 7 FROM archives",
        "UPDATE archives SET keys = keys + 1",
    ],
)
def test_keys_that_were_taken_out_are_missed(
    damage: str, campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener
) -> None:
    """A key of an archived decision would make a second one."""
    fill(campaign)
    campaign.archive(tmp_path / "old.parquet")
    events = campaign.report().events
    harm(campaign, damage)
    if "archives SET" not in damage:
        with pytest.raises(BrokenLog, match="table of archived keys was damaged"):
            campaign.verify()
    other = open_store(durable_url).campaign("kits")
    for attempt in (lambda: other.decide("old", key="visit-3"), other.report, other.verify):
        with pytest.raises(BrokenLog, match=r"keys are archived, and \d+ of them known"):
            attempt()
    assert rows_left(campaign) == 2
    assert campaign.report().events == events


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE archived_keys SET sequence = sequence + 1",
        "UPDATE archived_keys SET key_hash = (SELECT max(chain_after) FROM archives) "
        "WHERE sequence = (SELECT min(sequence) FROM archived_keys)",
    ],
)
def test_keys_that_lead_elsewhere_are_found_by_a_verification(
    damage: str, campaign: Campaign, durable_url: str, tmp_path: Path, open_store: Opener
) -> None:
    fill(campaign)
    campaign.archive(tmp_path / "old.parquet")
    fill(campaign, 20, start=40)
    campaign.archive(tmp_path / "more.parquet")
    is_sound(campaign)
    harm(campaign, damage)
    with pytest.raises(BrokenLog, match=r"the key of event \d+ does not lead to it"):
        open_store(durable_url).campaign("kits").verify()


def harm(campaign: Campaign, sql: str) -> None:
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    for table in ("archived_keys", "archives"):
        sql = re.sub(rf"(FROM|INTO|UPDATE) {table}\b", rf"\1 {connection.schema}{table}", sql)
    connection.execute(sql)
