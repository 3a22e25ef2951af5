"""Whatever is sent: a clear refusal, and nothing is written."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from doral.live.campaign import Campaign
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import PROBLEM, Serving, serving

CAMPAIGN = "/v1/campaigns/target"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as found:
        found.store.create("target", PROBLEM, seed=1)
        yield found


@pytest.fixture
def target(service: Serving) -> Iterator[Campaign]:
    """The campaign; whatever a test does, its log is as it was."""
    campaign = service.store.campaign("target")
    before, names = campaign.verify().head, service.store.list()
    yield campaign
    assert campaign.verify().head == before
    assert service.store.list() == names


BODIES: dict[str, tuple[bytes, int]] = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 422),
    "blanks": (b"   ", 400),
    "two values": (b'{"amount": 1} {"amount": 1}', 400),
    "bad UTF-8": (b'{"amount": 1, "key": "\xff\xfe"}', 400),
    "a lone surrogate": (b'{"amount": 1, "key": "\\ud800"}', 400),
    "UTF-16": ('{"amount": 1}'.encode("utf-16"), 400),
    "a NaN": (b'{"amount": NaN}', 422),
    "infinity": (b'{"amount": Infinity}', 422),
    "1e999": (b'{"amount": 1e999}', 422),
    "a huge number": (b'{"amount": 1' + b"0" * 400 + b"}", 422),
    "a number without end": (b'{"amount": 1' + b"0" * 100_000 + b"}", 400),
    "below zero": (b'{"amount": -1}', 422),
    "zero": (b'{"amount": 0}', 422),
    "a text": (b'{"amount": "1"}', 422),
    "a flag": (b'{"amount": true}', 422),
    "null": (b'{"amount": null}', 422),
    "a list": (b"[1]", 422),
    "a number": (b"1", 422),
    "no field": (b"{}", 422),
    "an unknown field": (b'{"amount": 1, "amout": 2}', 422),
    "a field of Python": (b'{"amount": 1, "__class__": "x"}', 422),
    "deep lists": (b'{"amount": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
    "a long key": (b'{"amount": 1, "key": "' + b"x" * 100_000 + b'"}', 422),
    "an empty key": (b'{"amount": 1, "key": ""}', 422),
    "a key with control characters": (b'{"amount": 1, "key": "a\\u0000b"}', 422),
    "a comment": (b'{"amount": 1} // more', 400),
}


@pytest.mark.parametrize("what", BODIES)
def test_bodies(client: httpx2.Client, target: Campaign, what: str) -> None:
    body, status = BODIES[what]
    answer = client.post(f"{CAMPAIGN}/budget", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 5_000  # what was sent is not sent back
    assert answer.json()["detail"]


WIDE: dict[str, tuple[str, bytes, int, str]] = {
    "a list without end": ("/decisions", b'{"features": [' + b"[]," * 100_000 + b"1]}", 422, "number of features"),
    "an object without end": (
        "/decisions",
        b'{"features": {' + b",".join(b'"%d":[]' % one for one in range(100_001)) + b"}}",
        422,
        "number of features",
    ),
    "nothing but faults": ("/decisions", b'{"features": [' + b"[]," * 5_000 + b"1]}", 422, "number of features"),
    "many items": ("/decisions/batch", b'{"arrivals": [' + b"{}," * 100_000 + b"{}]}", 422, "number of arrivals"),
    "many bad items": ("/feedback/batch", b'{"answers": [' + b"1," * 50_000 + b"1]}", 422, "answers[0]"),
    "more than anybody sends": ("/decisions", b'{"features": [' + b"1," * 2_000_000 + b"1]}", 413, ""),
}


@pytest.mark.parametrize("what", WIDE)
def test_bodies_that_cost_more_than_they_weigh(client: httpx2.Client, target: Campaign, what: str) -> None:
    """What is wrong with each of many values is not found out: it would take gigabytes, and minutes."""
    path, body, status, field = WIDE[what]
    answer = client.post(CAMPAIGN + path, content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.json().get("field", "") == field


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "jason"]
)
def test_bodies_that_do_not_say_that_they_are_json(client: httpx2.Client, target: Campaign, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = client.post(f"{CAMPAIGN}/budget", content=b'{"amount": 1}', headers=headers)
    assert answer.status_code == 415
    assert answer.json()["type"] == "urn:doral:problem:unsupported-media-type"


WRONG: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/arms", {"name": "letter", "cost": 2}),
    ("POST", "/arms", {"name": "new", "cost": -1}),
    ("POST", "/arms", {"name": "new", "cost": {"young": 1}}),
    ("POST", "/arms", {"name": "new", "cost": {}}),
    ("POST", "/arms", {"name": "new", "features": [1, 2]}),
    ("POST", "/arms", {"name": "new", "features": "many"}),
    ("POST", "/arms", {"name": ["new"]}),
    ("POST", "/arms", {"name": "new\n"}),
    ("POST", "/arms", {"name": "new", "cost": 1e300}),
    ("POST", "/arms/nobody/pause", None),
    ("POST", "/arms/letter/pause", {"force": True}),
    ("POST", "/arms/letter/explode", None),
    ("POST", "/budget", {"amount": 1e300}),
    ("POST", "/horizon", {"rounds": 0}),
    ("POST", "/horizon", {"rounds": 1.5}),
    ("POST", "/horizon", {"rounds": 2**80}),
    ("POST", "/horizon", {"rounds": 1, "until": 1}),
    ("POST", "/horizon", {"until": "whenever"}),
    ("POST", "/horizon", {"until": []}),
    ("POST", "/expire", {"now": 1e12}),
    ("POST", "/expire", {"now": -5}),
    ("POST", "/expire", {"now": "2026-13-01T00:00Z"}),
    ("POST", "/expire", {"release": True}),
    ("POST", "/expire", {"key": 3}),
    ("POST", "/clock", {"to": 1e300}),
    ("POST", "/clock", {"to": {}}),
    ("POST", "/forget", {"keys": []}),
    ("POST", "/forget", {"keys": "all"}),
    ("POST", "/forget", {"keys": [""]}),
    ("POST", "/forget", {"keys": ["never-used"]}),
    ("POST", "/close", {"now": 1}),
    ("POST", "/decisions", {"context": "nobody"}),
    ("POST", "/decisions", {"context": "young", "available": ["nobody"]}),
    ("POST", "/decisions", {"context": "young", "at": 1e12}),
    ("POST", "/feedback", {"decision_id": "nobody", "reward": 1}),
    ("GET", "/events?after=-1", None),
    ("GET", "/export?format=exe", None),
    ("GET", "/decisions/nobody", None),
    ("GET", "/ledger/more", None),
)


@pytest.mark.parametrize(("method", "path", "body"), WRONG)
def test_requests_that_make_no_sense(
    client: httpx2.Client, target: Campaign, method: str, path: str, body: Any
) -> None:
    answer = client.request(method, CAMPAIGN + path, **({} if body is None else {"json": body}))
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code
    assert found["type"].startswith("urn:doral:problem:")
    assert found["detail"]


PROBLEMS: tuple[Any, ...] = (
    {},
    {"arms": [], "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": ["a"] * 2, "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": {"a": None}, "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": [None], "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": [[]], "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": "ab", "budget": 1, "horizon": 1, "deadline": 1},
    {"arms": ["a"], "budget": "much", "horizon": 1, "deadline": 1},
    {"arms": ["a"], "budget": 1, "horizon": 10**30, "deadline": 1},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": []},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "contexts": 7},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "contexts": {"x": {"share": {}}}},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "contexts": [{"name": {}}]},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "person": 5},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "person": [{"name": "x", "kind": "odd"}]},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "person": {"x": []}},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "reserves": {"x": 1}},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "reserves": [1]},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "reward_range": 3},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "baseline": {}},
    {"arms": ["a"], "budget": 1, "horizon": 1, "deadline": 1, "feedback": {}},
    {"arms": ["a"], "budget": 1, "until": "2097-99-99", "deadline": 1},
    {"arms": ["a"], "budget": 1, "until": [], "deadline": 1},
)
OPTIONS: tuple[Any, ...] = (
    {"accept": []},
    {"cutoff": {}},
    {"penalty": "x"},
    {"learner": ["auto"]},
    {"products": [1]},
    {"products": {"a": 1}},
    {"reservoir": 10**30},
    {"explore": None},
    {"half_life": -1},
    {"name": "x"},
    {"label": "x"},
    {"reading": "literal"},
    {"self": 1},
    {"until_end": 3},
    {"sampling": "oracle"},
    {"printed": 3},
    {"printed": ["window", "rat"]},
    {"min_answers": 10**12},
    {"periods": 0},
)


@pytest.mark.parametrize("body", [*({"problem": one} for one in PROBLEMS), *({"options": one} for one in OPTIONS)])
def test_campaigns_that_make_no_sense(client: httpx2.Client, target: Campaign, body: dict[str, Any]) -> None:
    sent = {"name": "new", "problem": PROBLEM.to_dict(), **body}
    answer = client.post("/v1/campaigns", json=sent)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"]


def sent_raw(service: Serving, data: bytes) -> bytes:
    """What comes back until the connection is closed, or nothing more comes."""
    host, port = service.url.removeprefix("http://").split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=2) as connection:
        connection.sendall(data)
        try:
            while part := connection.recv(65_536):
                received += part
        except TimeoutError:
            pass
    return received


def test_requests_in_disguise(service: Serving, target: Campaign) -> None:
    """Two lengths, or a length and chunks: where the body ends must not be a matter of opinion."""
    auth = f"Authorization: Bearer {service.key}\r\n".encode()
    body = json.dumps({"amount": 1}).encode()
    start = (
        b"POST %b/budget HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % CAMPAIGN.encode() + auth
    )
    hidden = b"POST %b/budget HTTP/1.1\r\nHost: localhost\r\n" % CAMPAIGN.encode()
    for headers, rest in (
        (b"Content-Length: 3\r\nContent-Length: 13\r\n", body),
        (b"Content-Length: -1\r\n", body),
        (b"Content-Length: 0x0d\r\n", body),
        (b"Content-Length: 13\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + hidden),
        (b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"zz\r\n" + body),
        (b"X: a\nContent-Length: 13\r\n", body),
    ):
        answered = sent_raw(service, start + headers + b"Connection: close\r\n\r\n" + rest)
        assert b" 200 OK" not in answered, (headers, answered)
        assert b" 500 " not in answered, (headers, answered)


def test_a_key_that_is_sent_twice(client: httpx2.Client, target: Campaign) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    answer = client.post(f"{CAMPAIGN}/budget", json={"amount": 1}, headers=headers)
    assert answer.status_code == 422
    assert client.post(f"{CAMPAIGN}/budget", json={"amount": 1}, headers={"Idempotency-Key": ""}).status_code == 422
    raw = client.post(f"{CAMPAIGN}/budget", json={"amount": 1}, headers={b"Idempotency-Key": b"\xff"})
    assert raw.status_code == 422


def test_bodies_that_are_too_large_or_too_slow() -> None:
    limits = Limits(body_bytes=1_000, body_s=0.3)
    with serving(settings=ServiceSettings(storage="memory://", limits=limits)) as small, small.client() as client:
        campaign = small.store.create("target", PROBLEM)
        head = campaign.verify().head
        answer = client.post(f"{CAMPAIGN}/budget", content=b'{"amount": 1' + b" " * 2_000 + b"}", headers=JSON)
        assert answer.status_code == 413
        assert answer.headers["content-type"] == "application/problem+json"
        request = f"POST {CAMPAIGN}/budget HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {small.key}\r\n"
        said = "Content-Type: application/json\r\nContent-Length: 13\r\n\r\n"
        assert b" 408 " in sent_raw(small, (request + said + '{"amount"').encode())
        assert campaign.verify().head == head
