"""Logs that hold what later versions do not write any more: leases and archives. They open, replay and go on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import doral
from doral.live.campaign import Campaign
from doral.live.errors import ArchiveMissing
from doral.live.events.row import LEASED
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole
from tests.live.test_releases import said_then, unpack

Opener = Callable[[str], Store]
FILES = ("first", "second", "people")


def decided(campaign: Campaign, expected: dict[str, Any]) -> tuple[Any, Any]:
    """Every decision, as it is and as it was; all but the sentence of its reason."""
    fields, name = expected["fields"], campaign.name
    place = fields.index("reason")
    now = json.loads(json.dumps([[getattr(one, field) for field in fields] for one in adds_up(campaign)], default=dict))
    then = expected[name]["decisions"]
    return [[*row[:place], *row[place + 1 :]] for row in now], [[*row[:place], *row[place + 1 :]] for row in then]


def says_what_it_said(campaign: Campaign, expected: dict[str, Any]) -> None:
    now, then = decided(campaign, expected)
    assert now == then
    ledger = {name: str(amount) for name, amount in campaign.ledger().to_json().items()}
    assert ledger == {name: amount for name, amount in expected[campaign.name]["ledger"].items() if name != "leased"}
    report = campaign.report()
    for field in ("arrivals", "horizon", "decisions", "reasons", "corrections", "events", "reward", "late_reward"):
        assert getattr(report, field) == pytest.approx(expected[campaign.name]["report"][field]), field
    log_is_whole(campaign)


def goes_on(campaign: Campaign) -> None:
    before = {one.id: one for one in campaign.decisions()}
    keyed = next(one for one in before.values() if one.key is not None and one.state == "returned")
    again = campaign.decide(keyed.context, keyed.available, key=keyed.key, features=keyed.features)
    assert again == keyed
    pending = next(one for one in before.values() if one.state == "pending")
    assert campaign.feedback(pending.id, 0.5).reward == 0.5
    campaign.top_up(1.0, key="new invoice")
    campaign.session.close()
    after = {one.id: one for one in adds_up(campaign)}
    assert {id_: one for id_, one in after.items() if id_ in before and id_ != pending.id} == {
        id_: one for id_, one in before.items() if id_ != pending.id
    }
    log_is_whole(campaign)


def place(tmp_path: Path, release: str) -> Path:
    path = tmp_path / "old.db"
    unpack(release, path)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def leases(request: pytest.FixtureRequest, tmp_path: Path, open_store: Opener) -> Store:
    path = place(tmp_path, "leases")
    if request.param == "sqlite":
        return open_store(f"sqlite:///{path}")
    url = str(request.getfixturevalue("postgres_url"))
    with open_store(f"sqlite:///{path}") as store:
        store.backup(tmp_path / "copy.db")
    other = open_store(url)
    other.restore(tmp_path / "copy.db")
    return other


def test_a_log_with_leases(leases: Store) -> None:
    expected = said_then("leases")
    for name in ("held", "hot"):
        campaign = leases.campaign(name)
        says_what_it_said(campaign, expected)
        assert campaign.session.read(lambda log, _: log.of_kinds((LEASED,)))
        assert campaign.verify().events == campaign.report().events
    goes_on(leases.campaign("hot"))


def test_what_was_leased_can_be_spent(leases: Store) -> None:
    campaign = leases.campaign("held")
    left = campaign.ledger().left
    campaign.record("old", "visit", campaign.session.row.created_at, cost=float(left), spend=True)
    assert campaign.ledger().left == 0  # its holder had half of it
    adds_up(campaign)
    log_is_whole(campaign)


def archived(tmp_path: Path) -> tuple[Path, Path]:
    """The database, and the folder where it looks for its archives."""
    path, folder = place(tmp_path, "archive"), tmp_path / "files"
    folder.mkdir()
    for name in FILES:
        shutil.copy(Path(__file__).parent / "releases" / "archive" / f"{name}.parquet", folder)
    with closing(sqlite3.connect(path)) as raw:
        for name in FILES:
            raw.execute(
                "UPDATE archives SET path = ? WHERE path LIKE ?", (str(folder / f"{name}.parquet"), f"%-{name}.%")
            )
        raw.commit()
    return path, folder


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_archived_events_come_back(
    tmp_path: Path, open_store: Opener, kind: str, request: pytest.FixtureRequest
) -> None:
    path, folder = archived(tmp_path)
    url = f"sqlite:///{path}"
    if kind == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
        copy_rows(path, url)
    store, expected = open_store(url), said_then("archive")
    for name in ("kits", "people"):
        campaign = store.campaign(name)
        says_what_it_said(campaign, expected)
        assert campaign.verify().events == campaign.report().events
        goes_on(campaign)
    for name in FILES:
        (folder / f"{name}.parquet").unlink()
    store.close()
    again = open_store(url)
    for name in ("kits", "people"):
        log_is_whole(again.campaign(name))
        assert again.campaign(name).verify().events == again.campaign(name).report().events


def copy_rows(path: Path, url: str) -> None:
    import psycopg

    doral.open(url).close()
    with closing(sqlite3.connect(path)) as old, psycopg.connect(url) as connection:
        for table in ("campaigns", "events", "archives", "archived_keys"):
            cursor = old.execute(f"SELECT * FROM {table}")
            columns = [one[0] for one in cursor.description]
            marks = ", ".join(["%s"] * len(columns))
            with connection.cursor() as into:
                into.executemany(
                    f"INSERT INTO doral.{table} ({', '.join(columns)}) VALUES ({marks})", cursor.fetchall()
                )


def test_a_campaign_whose_archive_is_gone_says_so_and_others_go_on(tmp_path: Path, open_store: Opener) -> None:
    path, folder = archived(tmp_path)
    (folder / "second.parquet").rename(tmp_path / "away")
    store = open_store(f"sqlite:///{path}")
    assert store.campaign("people").report().arrivals == 31
    for ask in (Campaign.report, Campaign.ledger, lambda one: one.decide("old", key="visit-1")):
        with pytest.raises(ArchiveMissing, match=r"second\.parquet"):
            ask(store.campaign("kits"))
    store.close()
    (tmp_path / "away").rename(folder / "second.parquet")
    says_what_it_said(open_store(f"sqlite:///{path}").campaign("kits"), said_then("archive"))


def test_an_archive_that_was_changed_is_not_taken(tmp_path: Path, open_store: Opener) -> None:
    path, folder = archived(tmp_path)
    frame = pl.read_parquet(folder / "first.parquet")
    frame.with_columns(reward=pl.when(pl.col("sequence") == 20).then(99.0).otherwise(pl.col("reward"))).write_parquet(
        folder / "first.parquet"
    )
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(ArchiveMissing, match=r"first\.parquet"):
        store.campaign("kits").report()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM events WHERE campaign_id = 1").fetchone()[0] < 30  # nothing came in


def test_what_is_forgotten_leaves_the_archives_too(tmp_path: Path, open_store: Opener) -> None:
    path, folder = archived(tmp_path)
    store = open_store(f"sqlite:///{path}")
    assert b"visit-7" in keys_in(folder / "first.parquet")
    assert store.campaign("kits").forget("visit-7") > 0
    assert b"visit-7" not in keys_in(folder / "first.parquet")
    people = store.campaign("people")
    people.forget("p-4")
    frame = pl.read_parquet(folder / "people.parquet")
    about = frame.filter(pl.col("person_hash").is_not_null())
    assert about["person"].null_count() == 1
    log_is_whole(people)
    # One that was moved cannot be reached: that is said.
    (folder / "first.parquet").rename(tmp_path / "away.parquet")
    with pytest.raises(ArchiveMissing, match="if the file was moved, it still holds it"):
        store.campaign("kits").forget("visit-8")
    assert store.campaign("kits").forget("visit-8") == 0
    assert store.campaign("kits").decision_with_key("visit-8") is not None


def keys_in(path: Path) -> bytes:
    return "\n".join(key for key in pl.read_parquet(path)["key"].to_list() if key).encode()


def test_a_key_whose_forgetting_was_interrupted_stays_forgotten(tmp_path: Path, open_store: Opener) -> None:
    """The log says that it is erased, and the archive still has it."""
    path, folder = archived(tmp_path)
    frame = pl.read_parquet(folder / "first.parquet")
    is_erased = pl.col("key").is_null() & pl.col("key_hash").is_not_null()
    assert frame.filter(is_erased).height == 1  # of the key that was forgotten before
    frame.with_columns(key=pl.when(is_erased).then(pl.lit("d:visit-3")).otherwise(pl.col("key"))).write_parquet(
        folder / "first.parquet"
    )
    campaign = open_store(f"sqlite:///{path}").campaign("kits")
    made = campaign.decision_with_key("visit-3")
    assert made is not None
    assert made.key is None
    assert campaign.decide(made.context, key="visit-3") == made  # and it still answers as used
    log_is_whole(campaign)
