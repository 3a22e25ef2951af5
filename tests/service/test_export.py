"""Files that are sent while they are written."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import httpx2
import polars as pl
import pytest

import doral
from doral.live.errors import StorageError
from doral.live.views.export import read_decisions
from doral.service import exporting
from doral.service.exporting import MOST, Exports
from doral.service.routes.reports import disposition
from doral.wire.problems import ServiceError
from tests.service.harness import PROBLEM, Serving, serving


async def always() -> bool:
    return True


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as found:
        found.store.create("all", PROBLEM, seed=1)
        yield found


def test_a_file_is_what_export_writes(service: Serving, tmp_path: Path) -> None:
    campaign = service.store.campaign("all")
    for index in range(50):
        decision = campaign.decide("old", key=f"=visit-{index}")
        if decision.state == "pending" and index % 2:
            campaign.feedback(decision.id, 1.0)
    with service.client() as client:
        for format_, kind in (("csv", "text/csv; charset=utf-8"), ("parquet", "application/vnd.apache.parquet")):
            answer = client.get("/v1/campaigns/all/export", params={"format": format_})
            assert answer.status_code == 200
            assert answer.headers["content-type"] == kind
            assert answer.headers["content-disposition"] == f'attachment; filename="all.{format_}"'
            campaign.export(tmp_path / f"own.{format_}")
            (tmp_path / f"sent.{format_}").write_bytes(answer.content)
            assert read_decisions(tmp_path / f"sent.{format_}").equals(read_decisions(tmp_path / f"own.{format_}"))
        assert client.get("/v1/campaigns/all/export").headers["content-type"] == "application/vnd.apache.parquet"
        wrong = client.get("/v1/campaigns/all/export", params={"format": "xlsx"})
        assert wrong.status_code == 422
        assert wrong.json()["field"] == "format"


def test_an_empty_campaign_and_one_that_knows_people(service: Serving) -> None:
    service.store.create("empty", PROBLEM)
    knowing = replace(PROBLEM, person=(doral.Number("age"),), contexts=(doral.Context("all"),))
    people = service.store.create("people", knowing)
    people.decide(features={"age": 40})
    with service.client() as client:
        frame = pl.read_parquet(io.BytesIO(client.get("/v1/campaigns/empty/export").content))
        assert frame.height == 0
        assert "arm" in frame.columns
        lines = client.get("/v1/campaigns/people/export", params={"format": "csv"}).text.splitlines()
        assert "age" in lines[0].split(",")
        assert len(lines) == 2


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A campaign whose log is damaged near its end, after it was read."""
    file = tmp_path_factory.mktemp("damaged") / "store.db"
    with serving(f"sqlite:///{file}") as found:
        campaign = found.store.create("damaged", PROBLEM)
        campaign.decide_many(["young"] * 21_000)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE events SET price = 0.5 WHERE sequence = 20900")
        yield found


def test_a_file_that_cannot_be_finished_is_a_broken_transfer(damaged: Serving) -> None:
    with damaged.client() as client:
        with client.stream("GET", "/v1/campaigns/damaged/export?format=csv") as answer:
            assert answer.status_code == 200
            with pytest.raises(httpx2.RemoteProtocolError):
                answer.read()
        parquet = client.get("/v1/campaigns/damaged/export")  # of which nothing was sent yet
        assert parquet.status_code == 503
        assert parquet.json()["type"] == "urn:doral:problem:broken-log"


def test_there_are_only_so_many_at_once_and_who_goes_away_gives_his_place_back(service: Serving) -> None:
    async def many() -> None:
        exports, campaign = Exports(), service.store.campaign("all")
        for _ in range(2):
            async with AsyncExitStack() as stack:
                for _ in range(MOST):
                    await stack.enter_async_context(exports.sending(campaign, (), "csv", always))
                with pytest.raises(ServiceError, match="try again later") as refused:
                    await stack.enter_async_context(exports.sending(campaign, (), "csv", always))
                assert refused.value.status == 503

    asyncio.run(many())


def test_whoever_takes_nothing_for_long_loses_his_place_and_is_told(
    service: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(file: BinaryIO, *rows: object, **options: object) -> None:
        for _ in range(10):
            file.write(b"many rows\n")

    monkeypatch.setattr(exporting, "write_csv_rows", write)
    monkeypatch.setattr(exporting, "_PART_BYTES", 1)
    monkeypatch.setattr(exporting, "_STALLED_S", 0.05)
    monkeypatch.setattr(exporting, "MOST", 1)

    async def take_slowly() -> None:
        exports, campaign = Exports(), service.store.campaign("all")
        async with asyncio.timeout(10), exports.sending(campaign, (), "csv", always) as parts:
            assert await anext(parts) == b"many rows\n"
            while exports.running:
                await asyncio.sleep(0.01)
            async with exports.sending(campaign, (), "csv", always):
                pass
            with pytest.raises(StorageError, match="could not be sent to its end"):
                await anext(parts)
        assert not exports.running

    asyncio.run(take_slowly())


def test_a_file_is_broken_off_when_its_key_is_revoked(service: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    is_revoked = threading.Event()

    def write(file: BinaryIO, *rows: object, **options: object) -> None:
        while True:
            file.write(bytes(1_000))
            if is_revoked.is_set():
                time.sleep(0.01)

    monkeypatch.setattr(exporting, "write_csv_rows", write)
    monkeypatch.setattr(exporting, "_CHECK_EVERY_S", 0.05)
    key = service.make_key("read")
    with service.client(key) as client, client.stream("GET", "/v1/campaigns/all/export?format=csv") as answer:
        parts = answer.iter_raw()
        next(parts)
        service.store.books.revoke_key(key.split("_")[1], time.time())
        is_revoked.set()
        with pytest.raises(httpx2.RemoteProtocolError):
            for _ in parts:
                pass


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("autumn.csv", 'attachment; filename="autumn.csv"'),
        ("../../etc/passwd.csv", 'attachment; filename="etc_passwd.csv"'),
        ('a"; filename="b.exe.csv', 'attachment; filename="a_filename_b.exe.csv"'),
        ("a\r\nSet-Cookie: x.csv", 'attachment; filename="a_Set-Cookie_x.csv"'),
        ("...csv", 'attachment; filename="campaign.csv"'),
        ("Grüße.csv", "attachment; filename=\"Gr_e.csv\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.csv"),
        ("ä\u202evsc.exe.csv", "attachment; filename=\"vsc.exe.csv\"; filename*=UTF-8''%C3%A4_vsc.exe.csv"),
        ("ä/ö.csv", "attachment; filename=\"campaign.csv\"; filename*=UTF-8''%C3%A4_%C3%B6.csv"),
    ],
)
def test_no_name_leads_elsewhere(name: str, expected: str) -> None:
    assert disposition(name) == expected
