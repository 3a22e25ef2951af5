"""Events are followed without an end: none twice, none left out, whatever happens to the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice

import pytest

import doral
from doral.client.following import EventReader
from doral.live.errors import CampaignGone
from doral.wire.problems import NotAllowed, ServiceError
from tests.service.faulty import REFUSE, answering, proxy
from tests.service.harness import PROBLEM, Serving, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving() as found:
        yield found


def test_a_stream_that_breaks_off_is_taken_up_where_it_was(served: Serving) -> None:
    local = served.store.create("followed", PROBLEM, clock="rounds")
    local.decide_many(["old"] * 40)
    with proxy(served.url) as between, doral.connect(between.url, key=served.key, timeout_s=20) as store:
        campaign = store.campaign("followed")
        between.faults = [900, REFUSE, 2_000, b"\x00 what is this\r\n\r\n", 1_501, answering(503), 300]
        events = list(islice(campaign.events(after=0), 41))
        assert [one.sequence for one in events] == list(range(1, 42))
        assert events[0].kind == "created"
        assert events[-1].data["decision_id"] == [*local.decisions()][-1].id


def test_whoever_begins_now_misses_nothing(served: Serving) -> None:
    local = served.store.create("begun", PROBLEM, clock="rounds")
    local.decide("old")

    async def work() -> list[int]:
        async with doral.connect_async(served.url, key=served.key, timeout_s=20) as store:
            campaign = await store.campaign("begun")
            events = campaign.events()
            first = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0.1)
            await campaign.decide("young")
            await campaign.decide("young")
            found = [(await first).sequence, (await anext(events)).sequence]
            await events.aclose()  # type: ignore[attr-defined]
            return found

    assert asyncio.run(work()) == [3, 4]


def test_what_stands_in_the_way_is_said(served: Serving) -> None:
    served.store.create("watched", PROBLEM, clock="rounds")
    key = served.make_key("decide", campaigns=["watched"])
    with doral.connect(served.url, key=key, timeout_s=5) as store:
        campaign = store.campaign("watched")
        with pytest.raises(NotAllowed):
            next(campaign.events())
        with pytest.raises(doral.InvalidValue):
            campaign.events(after=-1)
    with proxy(served.url) as between, doral.connect(between.url, key=served.key, timeout_s=0.3) as store:
        campaign = store._made("watched")
        between.faults = [answering(200, "Content-Type: text/html", body="<html>hotel</html>")] * 50
        with pytest.raises(ServiceError, match="not understood|no JSON"):
            next(campaign.events(after=0))


def test_parts_of_any_length_give_the_same_events() -> None:
    text = (
        b': a comment\r\n\r\nretry: 1000\n\nid: 7\nevent: decided\ndata: {"arm":\r\ndata:  "caf\xc3\xa9"}\r\n\r\n'
        b'event: end\ndata: {"why":"stopped"}\n\nid: 8\revent: closed\rdata: {}\r\rid: 9\nevent: cut\ndata: {'
    )
    for length in (1, 2, 3, 7, len(text)):
        reader = EventReader(0)
        found = [one for at in range(0, len(text), length) for one in reader.feed(text[at : at + length])]
        assert [(one.sequence, one.kind) for one in found] == [(7, "decided"), (8, "closed")]
        assert found[0].data == {"arm": "café"}
        assert reader.headers["Last-Event-ID"] == "8"
    with pytest.raises(CampaignGone):
        list(EventReader(0).feed(b'event: end\ndata: {"why":"deleted"}\n\n'))
    with pytest.raises(ValueError, match="without an end"):
        list(EventReader(0).feed(b"x" * 5_000_000))
