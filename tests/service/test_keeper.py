"""Whoever looks after campaigns, and whoever is told of alarms, with a receiver that fails in all ways first."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

import doral
from doral.live.storage.service_tables import AlarmRow
from doral.live.store import Store
from doral.service.operations import keeper as keeping
from doral.service.operations import webhook as hooks
from doral.service.operations.keeper import Keeper, Watched
from doral.service.operations.metrics import briefly
from doral.service.operations.webhook import Webhook, message, signature, wait_s
from doral.service.service import Service
from doral.service.settings import ServiceSettings
from tests.service.harness import PROBLEM, serving

SECRET = "a secret"


class Receiver(BaseHTTPRequestHandler):
    """Answers as it is told to."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        how = self.server.plan.pop(0) if self.server.plan else 200
        if how == "hang":
            self.server.released.wait(20)
            return
        self.send_response(how)
        if how == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.end_headers()
        if how == 200:
            for _ in range(200):  # more than anybody wants to read
                try:
                    self.wfile.write(b"x" * 65_536)
                except OSError:
                    return

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name is the library's)
        del format, args


@contextmanager
def _receiving(*plan: Any) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.plan, server.got, server.released, server.daemon_threads = list(plan), [], threading.Event(), True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _service(store: Store, **settings: Any) -> Iterator[Service]:
    """What runs beside requests needs no more than this of a service."""
    with ThreadPoolExecutor(2) as threads:

        async def run(work: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(threads, work)

        found: Any = SimpleNamespace(store=store, run=run, settings=ServiceSettings(storage="memory://", **settings))
        yield found


def _until_told(store: Store, url: str, count: int, got: list[Any], within_s: float = 15.0) -> None:
    async def work(service: Service) -> None:
        hook = Webhook(service, url, SECRET, first_wait_s=0.02)
        task = asyncio.create_task(hook.run())
        end = time.monotonic() + within_s
        while len(got) < count and time.monotonic() < end:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with _service(store) as service:
        asyncio.run(work(service))


def _is_signed(headers: dict[str, str], body: bytes, secret: str, *, now: float) -> bool:
    """As docs/service.md tells those who receive to do it."""
    at, _, mark = headers["Doral-Signature"].removeprefix("t=").partition(",v1=")
    wanted = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return abs(now - int(at)) < 300 and hmac.compare_digest(mark, wanted)


def test_alarms_are_told_however_often_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "_WITHIN_S", 0.5)
    with doral.open("memory://") as store, _receiving(500, "hang", 302, 404) as receiver:
        store.books.raise_alarm(AlarmRow(campaign="c", rule="arm-silent", subject="ä", since=5.0, words="no answer"))
        url = f"http://127.0.0.1:{receiver.server_port}/hook?token=t"
        _until_told(store, url, 5, receiver.got)
        assert len(receiver.got) == 5  # four that failed, and no redirect was followed
        told = [json.loads(body) for _, body in receiver.got]
        assert {one["id"] for one in told} == {told[0]["id"]}  # so that whoever was told before can see it
        assert told[0]["event"] == "alarm.began"
        assert told[0]["subject"] == "ä"
        for headers, body in receiver.got:
            assert headers["Doral-Id"] == told[0]["id"]
            assert _is_signed(headers, body, SECRET, now=time.time())
            assert not _is_signed(headers, body, "another", now=time.time())
            assert not _is_signed(headers, body + b" ", SECRET, now=time.time())
            assert not _is_signed(headers, body, SECRET, now=time.time() + 1_000)
        store.books.clear_alarm("c", "arm-silent", "ä", 99.0)
        _until_told(store, url, 6, receiver.got)
        last = json.loads(receiver.got[-1][1])
        assert (last["event"], last["ended_at"]) == ("alarm.ended", 99.0)
        assert last["id"] != told[0]["id"]
        assert store.books.claim_deliveries(time.time() + 1e6, lease_s=1.0) == []  # nothing is left to be told


def test_an_alarm_that_ended_untold_is_told_from_its_beginning(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(url) as store:  # nobody listened, and the process ended
        store.books.raise_alarm(AlarmRow(campaign="c", rule="r", subject="", since=5.0, words="w"))
        store.books.clear_alarm("c", "r", "", 6.0)
    with doral.open(url) as store, _receiving() as receiver:
        _until_told(store, f"http://127.0.0.1:{receiver.server_port}/", 2, receiver.got)
        assert [json.loads(body)["event"] for _, body in receiver.got] == ["alarm.began", "alarm.ended"]


def test_nobody_listens_and_nothing_is_told_of_the_address(caplog: pytest.LogCaptureFixture) -> None:
    async def once(service: Service) -> None:
        async with httpx2.AsyncClient(trust_env=False) as client:
            await Webhook(service, "http://127.0.0.1:9/hidden", SECRET).deliver_due(client)

    with doral.open("memory://") as store, _service(store) as service:
        store.books.raise_alarm(AlarmRow(campaign="c", rule="r", subject="", since=5.0, words="w"))
        asyncio.run(once(service))
        assert store.books.claim_deliveries(time.time(), lease_s=1.0) == []  # put off
        assert store.books.claim_deliveries(time.time() + 30.0, lease_s=1.0)
    assert "ConnectError" in caplog.text
    assert "hidden" not in caplog.text


def test_waits_grow_and_end_somewhere() -> None:
    assert 4.0 <= wait_s(0) <= 6.0
    assert 32.0 <= wait_s(3) <= 48.0
    assert wait_s(10_000) <= 3_600 * 1.2
    row = AlarmRow(campaign="c", rule="r", subject="", since=5.0, words="w")
    assert message(row)["id"] == message(row)["id"]
    assert signature("s", 5, b"x").startswith("t=5,v1=")


# --- the keeper -------------------------------------------------------------------------------------------------------


def test_what_is_overdue_is_settled_and_others_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with doral.open("memory://") as store, _service(store) as service:
        for name in ("a", "b", "c"):
            campaign = store.create(name, PROBLEM, at=now - 10_000.0)
            campaign.decide_many([{"context": "young", "at": now - 9_000.0}] * 5)
        made = store.campaign("a").report().decisions["pending"]
        keeper = Keeper(service)
        keeper.expire_once()
        assert store.campaign("a").report().decisions["expired"] == made > 0
        monkeypatch.setattr(keeping, "_ROUND_S", 0.0)
        keeper.watch_once()  # no time at all: nobody is looked at, and nobody is forgotten
        assert list(keeper._to_watch.waiting) == ["a", "b", "c"]
        monkeypatch.setattr(keeping, "_ROUND_S", 5.0)
        store.delete("b")
        keeper.watch_once()
        assert not keeper._to_watch.waiting
        assert set(keeper._watched) == {"a", "c"}


def test_alarms_of_a_campaign_that_is_gone_end() -> None:
    with doral.open("memory://") as store, _service(store) as service:
        store.books.raise_alarm(AlarmRow(campaign="gone", rule="r", subject="", since=5.0, words="w"))
        Keeper(service).watch_once()
        assert store.books.alarms() == []


def test_a_campaign_that_is_deleted_while_it_is_looked_at_raises_no_alarm(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(url) as store, doral.open(url) as other:
        watched = Watched(store.create("deleted", PROBLEM), store.books)
        watched.look(1.0)
        other.delete("deleted")
        watched.look(2.0)
        assert store.books.alarms() == []


def test_a_campaign_that_is_written_to_is_not_closed_by_whoever_looks_in_passing(tmp_path: Any) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        busy, idle = store.create("busy", PROBLEM), store.create("idle", PROBLEM)
        busy.decide("old")
        passing = briefly(store, "busy", of=1_000)
        log: Any = busy.session.read(lambda log, _: log)
        commit = log.commit

        def look_meanwhile() -> None:
            passing.__enter__()
            commit()

        log.commit = look_meanwhile
        busy.decide("old")
        passing.__exit__(None, None, None)
        assert busy.session.is_open
        idle.session.close()
        with briefly(store, "idle", of=1_000):
            idle.decide("old")
        assert not idle.session.is_open


def test_alarms_are_shown_to_those_who_may_see_them() -> None:
    with serving() as here:
        for name in ("mine", "theirs"):
            here.store.create(name, PROBLEM)
            here.store.books.raise_alarm(AlarmRow(campaign=name, rule="r", subject="s", since=5.0, words="w"))
        with here.client() as client:
            assert len(client.get("/v1/alarms").json()["alarms"]) == 2
            told = {"campaign": "mine", "rule": "r", "subject": "s", "since": 5.0, "words": "w"}
            more = {"since_iso": "1970-01-01T00:00:05.000Z", "acknowledged_at": None, "acknowledged_by": None}
            assert client.get("/v1/campaigns/mine/alarms").json() == {"alarms": [told | more]}
            assert client.get("/v1/campaigns/none/alarms").status_code in (404, 422)
        with here.client(here.make_key("read", campaigns=["mine"])) as client:
            assert [one["campaign"] for one in client.get("/v1/alarms").json()["alarms"]] == ["mine"]
            assert client.get("/v1/campaigns/theirs/alarms").status_code == 403
        with here.client(here.make_key("decide")) as client:
            assert client.get("/v1/alarms").status_code == 403
        assert httpx2.get(here.url + "/v1/alarms").status_code == 401


def test_campaigns_that_have_moved_come_first_and_the_others_get_their_turn() -> None:
    turns = keeping._Turns()
    names = [f"c{number}" for number in range(10)]

    def looked(heads: dict[str, int], most: int) -> list[str]:
        left = iter(range(most))
        return list(turns.next(heads, lambda: next(left, None) is not None))

    heads = dict.fromkeys(names, 5)
    assert looked(heads, 100) == names  # all of them, once
    assert looked(heads, 4) == names[:4]
    heads |= {"c8": 6, "c9": 7}
    assert looked(heads, 4) == ["c4", "c8", "c5", "c9"]  # half of the time is for those that have moved
    heads["c7"] = 6
    assert looked(heads, 100) == ["c6", "c7", "c8", "c9"]  # each once, those that have moved in between
    del heads["c0"]
    assert looked(heads, 100) == names[1:]
    assert looked(heads, 2) == names[1:3]
    heads["new"] = 1
    assert looked(heads, 2) == ["c3", "new"]  # and does not wait until all others were looked at
