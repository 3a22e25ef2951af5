"""Following a campaign: in order, none lost, none twice, and nothing that was forgotten."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest

import doral
from doral.live.campaign import Campaign
from doral.service.access.keys import make_first_key
from doral.service.app import make_app
from doral.service.event_stream import Following
from doral.service.operations.server import make_server
from doral.service.routes.events import PAGE_EVENTS, stream_of
from doral.service.service import Service, last_event
from doral.service.settings import Limits, ServiceSettings
from doral.wire.problems import ServiceError
from tests.service.harness import PROBLEM, Serving, serving

Told = tuple[str | None, str, dict[str, Any]]  # id, event, data


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    settings = ServiceSettings(storage="memory://", limits=Limits(streams=3))
    with serving(settings=settings) as found:
        yield found


@pytest.fixture
def campaign(service: Serving, request: pytest.FixtureRequest) -> Campaign:
    return service.store.create(request.node.name, replace(PROBLEM, budget=5_000.0), seed=1)


@contextmanager
def listening(
    service: Serving, campaign: str, after: int | None = None, headers: dict[str, str] | None = None
) -> Iterator[Iterator[Told]]:
    params = {} if after is None else {"after": after}
    with (
        service.client() as client,
        client.stream("GET", f"/v1/campaigns/{campaign}/events", params=params, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines).startswith("retry: ")
        yield told(lines)


async def _always() -> bool:
    return True


def told(lines: Iterator[str]) -> Iterator[Told]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}


def test_all_that_happens_is_told_with_names_in_order(service: Serving, campaign: Campaign) -> None:
    decision = campaign.decide("young", key="visit-1")
    other = campaign.decide("old")
    campaign.feedback(decision.id, 0.5)
    campaign.correct(decision.id, 0.75)
    campaign.top_up(10.0, key="more")
    campaign.add_arm(doral.Arm("visit", cost=2.0))
    campaign.pause_arm("visit")
    campaign.extend(5)
    campaign.cancel(other.id)
    campaign.close()
    with listening(service, campaign.name, after=0) as events:
        found = list(islice(events, campaign.verify().events))
    assert [one[0] for one in found] == [str(one) for one in range(1, len(found) + 1)]
    kinds = ["created", "decided", "decided", "answered", "corrected", "topped up", "arm added", "arm paused"]
    assert [one[1] for one in found] == [*kinds, "extended", "cancelled", "closed"]
    by_kind = {kind: data for _, kind, data in reversed(found)}
    first = by_kind["decided"]
    assert (first["context"], first["arm"], first["key"]) == ("young", decision.arm, "visit-1")
    assert (first["decision_id"], first["state"], first["cost"]) == (decision.id, "pending", decision.cost)
    assert by_kind["answered"]["reward"] == 0.5
    assert (by_kind["corrected"]["reward"], by_kind["corrected"]["previous"]) == (0.75, 0.5)
    assert by_kind["topped up"]["amount"] == 10.0
    assert by_kind["arm added"]["arm"] == by_kind["arm paused"]["arm"] == "visit"
    assert by_kind["extended"]["rounds"] == 5
    assert by_kind["cancelled"]["state"] == "cancelled"


def test_without_a_beginning_only_what_comes_from_now_on(service: Serving, campaign: Campaign) -> None:
    campaign.decide("young")
    with listening(service, campaign.name) as events, service.client() as client:
        client.post(f"/v1/campaigns/{campaign.name}/budget", json={"amount": 3})
        began = time.monotonic()
        assert next(events)[:2] == ("3", "topped up")
        campaign.top_up(4.0)  # by somebody whom the service does not see
        assert next(events)[2]["amount"] == 4.0
        assert time.monotonic() - began < 5.0


def test_whoever_was_cut_off_goes_on_where_he_was(service: Serving, campaign: Campaign) -> None:
    """Cut off again and again, in the midst of what others write: all is seen once."""
    writing = threading.Thread(target=lambda: [campaign.decide("old") for _ in range(600)])
    writing.start()
    seen: list[int] = []
    while len(seen) < 601:
        headers = {"Last-Event-ID": str(seen[-1] if seen else 0)}
        with listening(service, campaign.name, after=500, headers=headers) as events:
            seen += [int(one[0] or "") for one in islice(events, min(173, 601 - len(seen)))]
    writing.join()
    assert seen == list(range(1, 602))


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "1e3", "9" * 30, "99", "²"])
def test_a_place_that_is_none_is_refused(service: Serving, campaign: Campaign, after: str) -> None:
    with service.client() as client:
        answer = client.get(f"/v1/campaigns/{campaign.name}/events", params={"after": after})
        assert answer.status_code == 422
        assert answer.json()["field"] == "after"


def test_what_was_forgotten_is_not_told(service: Serving, campaign: Campaign) -> None:
    campaign.decide("young", key="a-person")
    campaign.forget("a-person")
    with listening(service, campaign.name, after=0) as events:
        found = list(islice(events, 3))
    assert "a-person" not in json.dumps(found)
    assert found[-1][1:] == ("forgotten", {**found[-1][2], "keys": 1})


def test_there_are_only_so_many_streams(service: Serving, campaign: Campaign) -> None:
    with (
        listening(service, campaign.name) as first,
        listening(service, campaign.name) as second,
        listening(service, campaign.name, after=0) as third,
        service.client() as client,
    ):
        refused = client.get(f"/v1/campaigns/{campaign.name}/events")
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:doral:problem:too-many-streams"
        assert int(refused.headers["retry-after"]) >= 1
        campaign.decide("young")
        assert [next(one)[0] for one in (first, second)] == ["2", "2"]
        assert [one[0] for one in islice(third, 2)] == ["1", "2"]
    with listening(service, campaign.name, after=0) as events:  # they were given back
        assert next(events)[0] == "1"


def test_no_key_has_all_streams() -> None:
    async def read_last() -> int:
        return 0

    async def go() -> None:
        following = Following(most=8)
        async with AsyncExitStack() as stack:
            for _ in range(6):
                await stack.enter_async_context(following.listen("a", read_last, "greedy"))
            with pytest.raises(ServiceError, match="6 event streams of key greedy"):
                await stack.enter_async_context(following.listen("a", read_last, "greedy"))
            await stack.enter_async_context(following.listen("a", read_last, "modest"))
        async with following.listen("a", read_last, "greedy"):
            assert following.listeners == 1

    asyncio.run(go())


def test_a_campaign_that_is_deleted_ends_its_streams(service: Serving) -> None:
    service.store.create("deleted", PROBLEM)
    with listening(service, "deleted") as events:
        service.store.delete("deleted")
        assert list(events) == [(None, "end", {"why": "deleted"})]
    with service.client() as client:
        assert client.get("/v1/campaigns/deleted/events").status_code == 404


def test_a_backup_that_took_the_place_of_the_log_ends_its_streams_however_far_it_goes(tmp_path: Path) -> None:
    url, backup = f"sqlite:///{tmp_path / 'campaigns.db'}", tmp_path / "backup.db"

    def replace_log() -> None:
        with doral.open(url) as other:
            other.delete("kits")
            other.restore(backup, "kits")
            other.campaign("kits").decide_many(["young"] * 9)

    async def follow() -> bytes:
        service = Service(doral.open(url), ServiceSettings(storage=url))
        following = Following(most=1, poll_s=60.0)  # the log has gone on when somebody looks
        campaign = service.store.create("kits", PROBLEM)
        service.store.backup(backup)
        campaign.decide_many(["young"] * 3)
        queue = await service.queue("kits")
        taken = b""
        async with following.listen("kits", lambda: queue.read(last_event), "somebody") as follower:
            async for part in stream_of(queue, follower, 0, _always):
                taken += part
                if b"id: 4" in part:
                    replace_log()
                    follower.nudge()
        await following.close()
        service.close()
        return taken

    taken = asyncio.run(asyncio.wait_for(follow(), 10))
    assert taken.count(b"event: decided") == 3
    assert taken.endswith(b'event: end\ndata: {"why":"replaced"}\n\n')


def test_a_key_that_is_forgotten_while_somebody_is_slow_is_not_told() -> None:
    """Nothing is read before it may be sent: a stream that stands still keeps nothing back."""

    async def follow() -> bytes:
        service = Service(doral.open("memory://"), ServiceSettings(storage="memory://"))
        campaign = service.store.create("slow", PROBLEM)
        campaign.decide_many(["young"] * (PAGE_EVENTS + 10))
        campaign.decide("young", key="a-person")
        queue = await service.queue("slow")
        taken = b""
        async with service.following.listen("slow", lambda: queue.read(last_event), "a-key") as follower:
            stream = stream_of(queue, follower, 0, _always)
            async for part in stream:
                taken += part
                if part.count(b"event: decided"):  # the first page: now the other side takes nothing for a while
                    campaign.forget("a-person")
                if b"event: forgotten" in part:
                    break
            await stream.aclose()
        await service.following.close()
        service.close()
        return taken

    taken = asyncio.run(follow())
    assert taken.count(b"event: decided") == PAGE_EVENTS + 11
    assert b"a-person" not in taken


def test_stopping_the_service_ends_its_streams_at_once(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'a.db'}"
    settings = replace(ServiceSettings(storage=storage), stop_within_s=60.0)
    with doral.open(storage) as store:
        store.create("a", PROBLEM)
        key = make_first_key(store.books, time.time())
    with socket.socket() as listening_socket:
        listening_socket.bind(("127.0.0.1", 0))
        port = listening_socket.getsockname()[1]
        server = make_server(make_app(settings), settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening_socket]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        headers = {"Authorization": f"Bearer {key}"}
        with (
            httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30.0) as client,
            client.stream("GET", "/v1/campaigns/a/events", params={"after": 0}) as answer,
        ):
            lines = answer.iter_lines()
            next(lines)
            events = told(lines)
            assert next(events)[1] == "created"
            began = time.monotonic()
            server.should_exit = True
            assert list(events) == [(None, "end", {"why": "stopping"})]  # and no broken transfer
        thread.join(timeout=30)
        assert not thread.is_alive()
        assert time.monotonic() - began < 5.0
