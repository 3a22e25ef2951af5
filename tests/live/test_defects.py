"""What was wrong once, each with the smallest way to see it."""

from __future__ import annotations

import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

import doral
from doral.live.errors import BrokenLog, StorageError
from doral.live.events.codec import decode
from doral.live.runtime.session import Session
from doral.live.store import Store
from doral.service.event_stream import told
from tests.live import people
from tests.live.checks import adds_up, log_is_whole
from tests.live.test_releases import unpack
from tests.service.harness import PROBLEM

Opener = Callable[[str], Store]


def test_events_of_the_first_version_can_be_told(tmp_path: Path, open_store: Opener) -> None:
    """Its expiries do not say whether they released anything."""
    unpack("0.1.0", tmp_path / "old.db")
    store = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    for name in store.list():
        kinds = store.campaign(name).session.read(
            lambda log, fold: [told(decode(row), fold.names)["kind"] for row in log.after(0)]
        )
        assert len(kinds) == store.campaign(name).report().events
    expiries = store.campaign("otf").session.read(
        lambda log, fold: [told(decode(row), fold.names) for row in log.after(0) if row.kind == 6]
    )
    assert expiries
    assert all(one["decisions"] > 0 and one["is_released"] is False for one in expiries)


def test_a_file_that_is_written_anew_is_not_called_overwritten(tmp_path: Path) -> None:
    """Forgetting and deleting write the whole file anew, while others write to other campaigns."""
    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(url) as first, doral.open(url) as second:
        busy = first.create("busy", PROBLEM, seed=1)
        busy.decide_many([{"context": "old", "key": f"visit-{i}"} for i in range(20_000)])
        other = second.create("other", PROBLEM, seed=2)
        errors: list[BaseException] = []
        is_over = threading.Event()

        def decide() -> None:
            with suppress(BaseException):
                while not is_over.is_set():
                    try:
                        other.decide_many(["young"] * 20)
                    except BaseException as error:  # noqa: BLE001
                        errors.append(error)
                        return

        thread = threading.Thread(target=decide)
        thread.start()
        try:
            for i in range(12):
                busy.forget(f"visit-{i}")
                if i % 4 == 3:
                    first.create("passing", PROBLEM)
                    first.delete("passing")
        finally:
            is_over.set()
            thread.join(60)
        assert errors == []
        for campaign in (busy, other):
            adds_up(campaign)
            log_is_whole(campaign)


def test_what_is_kept_for_a_page_is_counted_and_given_up(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'campaigns.db'}") as store:
        campaign = people.make(store)
        people.busy(campaign, 60, 1)
        facts = campaign.facts()
        few = campaign.session.watch_bytes()
        people.busy(campaign, 240, 2)
        campaign.facts()
        many = campaign.session.watch_bytes()
        assert 0 < few < many
        assert facts.groups
        campaign.session.close()
        assert campaign.session.watch_bytes() == 0
        assert campaign.facts().groups


def test_sessions_of_deleted_campaigns_are_released(tmp_path: Path) -> None:
    def sessions() -> int:
        gc.collect()
        return sum(isinstance(one, Session) for one in gc.get_objects())

    url = f"sqlite:///{tmp_path / 'campaigns.db'}"
    with doral.open(url) as store, doral.open(url) as elsewhere:
        before = sessions()
        for i in range(6):
            store.create(f"c{i}", PROBLEM).decide("old")
        for i in range(6):
            (store if i % 2 else elsewhere).delete(f"c{i}")
        for i in range(0, 6, 2):
            with pytest.raises(doral.DoralError):
                store.campaign(f"c{i}").decide("old")
        store.create("last", PROBLEM)
        assert sessions() == before + 1


def test_an_opening_counts_once_and_a_missing_event_is_damage(durable_url: str, open_store: Opener) -> None:
    campaign = open_store(durable_url).create("kits", PROBLEM, seed=1)
    made = campaign.decide_many([{"context": "old", "key": f"k{i}"} for i in range(20)])
    campaign.save_snapshot()
    campaign.decide("old")
    counted: list[int] = []
    for _ in range(3):
        campaign.session.close()
        log = campaign.session._open()
        count = log.count

        def counts(*, upto: int, count: Any = count) -> Any:
            counted.append(upto)
            return count(upto=upto)

        log.count = counts  # type: ignore[method-assign]
        campaign.report()
    assert len(counted) == 1
    connection = campaign.session._open()._connection  # type: ignore[attr-defined]
    connection.execute(f"DELETE FROM {connection.schema}events WHERE sequence = 5")
    with pytest.raises(BrokenLog, match="event 5 is missing"):
        campaign.decision(made[3].id)
    with pytest.raises(BrokenLog):
        open_store(durable_url).campaign("kits").report()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_role_with_another_isolation_level_loses_nothing(postgres_url: str, level: str) -> None:
    parts = urlsplit(postgres_url)
    role = f"strict_{level.split(maxsplit=1)[0]}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'x'")
        admin.execute(f"ALTER ROLE {role} SET default_transaction_isolation = '{level}'")
        try:
            netloc = f"{role}:x@{parts.netloc.rpartition('@')[2]}"
            url = parts._replace(netloc=netloc).geturl()
            with doral.open(url) as one, doral.open(url) as other:
                campaigns = [one.create("kits", PROBLEM, seed=1), other.campaign("kits")]

                def work(campaign: doral.Campaign) -> None:
                    for _ in range(40):
                        made = campaign.decide("old")
                        if made.arm is not None:
                            campaign.feedback(made.id, 1.0)
                    campaign.save_snapshot()

                threads = [threading.Thread(target=work, args=(campaign,)) for campaign in campaigns]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert campaigns[0].report().arrivals == 80
                log_is_whole(campaigns[1])
        finally:
            admin.execute(f"DROP OWNED BY {role}")
            admin.execute(f"DROP ROLE {role}")


@contextmanager
def pooler(url: str) -> Iterator[int]:
    """Something between client and server that gives clients a number of its own, as PgBouncer does; its port."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query).get("host", [parts.hostname])[0]
    assert folder is not None
    listening = socket.create_server(("127.0.0.1", 0))
    opened: list[socket.socket] = [listening]

    def carry(one: socket.socket, other: socket.socket, *, from_server: bool) -> None:
        with suppress(OSError):
            buffer = b""
            is_begun = not from_server
            while data := one.recv(65_536):
                buffer += data
                if not is_begun and (at := buffer.find(b"K" + struct.pack(">i", 12))) >= 0:
                    buffer = buffer[: at + 5] + struct.pack(">i", 4_242) + buffer[at + 9 :]
                    is_begun = True
                other.sendall(buffer)
                buffer = b""
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.socket(socket.AF_UNIX)
                opened.extend((client, server))
                server.connect(f"{folder}/.s.PGSQL.{parts.port or 5432}")
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=carry, args=pair[:2], kwargs={"from_server": pair[2]}, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        for one in opened:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def test_a_pooler_is_refused(postgres_url: str) -> None:
    if "host=" not in postgres_url:
        pytest.skip("needs the server's own socket")
    with pooler(postgres_url) as port:
        began = time.monotonic()
        with pytest.raises(StorageError, match="a pooler such as PgBouncer"):
            doral.open(f"postgresql://postgres:@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable")
        assert time.monotonic() - began < 30
