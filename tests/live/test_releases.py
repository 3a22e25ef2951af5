"""Databases that released versions wrote, kept as they were: they open, say what they said, export, and go on.

Each folder of `releases/` holds a SQLite file of that version and what the version itself said of it. The same rows are
put into PostgreSQL, in tables as that version made them.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

from doral.live.campaign import Campaign
from doral.live.errors import StorageError
from doral.live.store import Store
from tests.live.checks import adds_up, log_is_whole
from tests.live.first_schema import COLUMNS as OLD_COLUMNS

RELEASES = ["0.1.0"]
CAMPAIGNS = ("closed", "otf", "race", "seconds", "silent")


def said_then(release: str) -> dict[str, Any]:
    packed = (Path(__file__).parent / "releases" / release / "expected.json.gz").read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


def decisions_now(campaign: Campaign, expected: dict[str, Any]) -> Any:
    """Every decision of the log, all but the sentence of its reason, which later versions word anew."""
    fields = [field for field in expected["fields"] if field != "reason"]
    made = adds_up(campaign)
    assert all(one.reason for one in made)
    return json.loads(json.dumps([[getattr(one, field) for field in fields] for one in made]))


def decisions_then(expected: dict[str, Any], name: str) -> Any:
    """What the version itself said of them."""
    place = expected["fields"].index("reason")
    return [[*row[:place], *row[place + 1 :]] for row in expected[name]["decisions"]]


def unpack(release: str, path: Path) -> None:
    path.write_bytes(gzip.decompress((Path(__file__).parent / "releases" / release / "campaigns.db.gz").read_bytes()))


def copy_into_postgres(path: Path, url: str) -> None:
    """The same tables and rows, where version 0.1 had them: in `public`."""
    old = sqlite3.connect(path)
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS doral CASCADE")
        for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC").fetchall():
            sql = sql.replace("DOUBLE", "DOUBLE PRECISION").replace("BLOB", "BYTEA").replace("WITHOUT ROWID", "")
            connection.execute(sql.replace("id INTEGER NOT NULL, \n\tname", "id SERIAL NOT NULL, name"))
        for table in ("alembic_version", "campaigns", "events", "snapshots"):
            rows = old.execute(f"SELECT * FROM {table}").fetchall()
            marks = ", ".join(["%s"] * len(rows[0]))
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        connection.execute("SELECT setval('campaigns_id_seq', (SELECT max(id) FROM campaigns))")
    old.close()


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def old_store(
    release: str, request: pytest.FixtureRequest, tmp_path: Path, open_store: Callable[[str], Store]
) -> Store:
    path = tmp_path / "old.db"
    unpack(release, path)
    if request.param == "sqlite":
        return open_store(f"sqlite:///{path}")
    url = str(request.getfixturevalue("postgres_url"))
    copy_into_postgres(path, url)
    return open_store(url)


def test_history_is_what_it_was(release: str, old_store: Store, tmp_path: Path) -> None:
    expected = said_then(release)
    assert tuple(old_store.list()) == CAMPAIGNS
    for name in CAMPAIGNS:
        campaign = old_store.campaign(name)
        rows = decisions_now(campaign, expected)
        assert rows == decisions_then(expected, name)
        report = campaign.report()
        assert {key: str(value) for key, value in report.ledger.to_json().items()} == expected[name]["ledger"]
        then = expected[name]["report"]
        for field in ("arrivals", "horizon", "decisions", "reasons", "corrections", "events"):
            assert getattr(report, field) == then[field], field
        for field in ("reward", "late_reward"):  # 0.1 added them up in floats
            assert getattr(report, field) == pytest.approx(then[field], rel=1e-12)
        assert campaign.export(tmp_path / f"{name}.parquet") == len(rows)
        assert pl.read_parquet(tmp_path / f"{name}.parquet")["id"].to_list() == [row[0] for row in rows]
        log_is_whole(campaign)


def test_it_goes_on(old_store: Store) -> None:
    for name in CAMPAIGNS:
        campaign = old_store.campaign(name)
        before = {one.id: one for one in campaign.decisions()}
        pending = next(one for one in before.values() if one.state == "pending")
        if name != "closed":
            key = next(one for one in before.values() if one.key is not None)
            assert campaign.decide(key.context, key.available, key=key.key) == key
            campaign.decide_many(["x", "y"] * 10)
            campaign.top_up(1.0, key="invoice-1b")
        assert campaign.feedback(pending.id, 0.5).reward == 0.5
        campaign._session.close()
        after = {one.id: one for one in adds_up(campaign)}
        assert {id_: after[id_] for id_ in before if id_ != pending.id} == {
            id_: one for id_, one in before.items() if id_ != pending.id
        }
        log_is_whole(campaign)


def test_a_process_of_the_old_version_cannot_write_any_more(old_store: Store) -> None:
    """One that has had the database open all the time: its events have no place in the chain."""
    campaign = old_store.campaign("otf")
    before = campaign.report().events
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    columns = ", ".join(("campaign_id", *OLD_COLUMNS))
    marks = ", ".join([connection.placeholder] * (len(OLD_COLUMNS) + 1))
    row = (campaign._session.row.id, before + 1, 2, 1e9, 1e9, 99, *[None] * (len(OLD_COLUMNS) - 5))
    insert = f"INSERT INTO {connection.schema}events ({columns}) VALUES ({marks})"
    said = "this database was upgraded: install the newer doral" if connection.schema == "" else "null value.*chain"
    with pytest.raises(StorageError, match=said):
        connection.execute(insert, row)
    assert campaign.report().events == before
    campaign.decide("x")
    campaign._session.close()
    log_is_whole(campaign)


def test_an_open_file_of_the_old_version_is_closed_to_its_writer(
    release: str, tmp_path: Path, open_store: Callable[[str], Store]
) -> None:
    path = tmp_path / "old.db"
    unpack(release, path)
    old = sqlite3.connect(path, isolation_level=None)
    columns = ("campaign_id", *OLD_COLUMNS)
    copied = ", ".join({"sequence": "sequence + 1", "key": "NULL"}.get(one, one) for one in columns)
    insert = (
        f"INSERT INTO events ({', '.join(columns)}) SELECT {copied} "
        "FROM events WHERE campaign_id = 1 ORDER BY sequence DESC LIMIT 1"
    )
    old.execute("BEGIN")
    assert old.execute(insert).rowcount == 1  # before
    old.execute("ROLLBACK")
    store = open_store(f"sqlite:///{path}")
    events = {name: store.campaign(name).report().events for name in CAMPAIGNS}
    with pytest.raises(sqlite3.IntegrityError, match="install the newer doral"):
        old.execute(insert)
    old.close()
    store = open_store(f"sqlite:///{path}")
    assert {name: store.campaign(name).report().events for name in CAMPAIGNS} == events
