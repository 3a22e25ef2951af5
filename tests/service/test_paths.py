"""Names that look like paths: each leads to its own campaign, and to nothing else."""

from __future__ import annotations

import socket
from urllib.parse import quote

import httpx2
import pytest

import doral
from doral.wire.values import path_of
from tests.service.harness import PROBLEM, Serving

NAMES = (
    "a/b", "a", "b", "..", ".", "%2e", "%2E%2E", "a%2Fb", "a//b", "/", "//", "a/", "/a", "ä?#", "two words", "+", "a+b",
    "x" * 200, "ü" * 200, "events", "a/events", "a/arms/b/pause", "é", "e\u0301", "🦜", "a;b=c", "a&b", "'\"<>", "\\",
    "null", "*", "~", "a\u00a0b", "campaigns",
)  # fmt: skip


def raw(service: Serving, path: bytes, *, method: bytes = b"GET", headers: bytes = b"") -> tuple[int, bytes]:
    """A request as it is, for clients tidy up what they are given."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        sent = b"%b %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %b\r\n%b\r\n"
        connection.sendall(sent % (method, path, service.key.encode(), headers))
        received = b""
        while part := connection.recv(65_536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body


def test_every_name_leads_to_its_own_campaign(service: Serving) -> None:
    with service.client() as client:
        for seed, name in enumerate(NAMES):
            made = client.post("/v1/campaigns", json={"name": name, "problem": PROBLEM.to_dict(), "seed": seed})
            assert made.status_code == 201, (name, made.text)
            assert made.headers["location"] == path_of("v1", "campaigns", name)
    for seed, name in enumerate(NAMES):
        for encoded in (quote(name, safe=""), "".join(f"%{byte:02x}" for byte in name.encode())):
            status, body = raw(service, f"/v1/campaigns/{encoded}".encode())
            assert status == 200, (name, body)
            assert f'"seed":{seed},'.encode() in body
            status, body = raw(service, f"/v1/campaigns/{encoded}/ledger".encode())
            assert status == 200, (name, body)


def test_names_of_arms_too(service: Serving) -> None:
    arms = [doral.Arm(name) for name in NAMES]
    campaign = service.store.create(
        "arms", doral.Problem(arms=arms, contexts=["all"], budget=10, horizon=10, deadline=60)
    )
    for name in NAMES:
        encoded = quote(name, safe="")
        status, body = raw(service, f"/v1/campaigns/arms/arms/{encoded}/pause".encode(), method=b"POST")
        assert status == 200, (name, body)
    assert all(one.status == "paused" for one in campaign.report().arms)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"/v1/campaigns/nobody", 404),
        (b"/v1/campaigns/a/../b", 404),
        (b"/v1/campaigns/../me", 404),
        (b"/v1/campaigns/%ff", 400),
        (b"/v1/campaigns/%c3%28", 400),
        (b"/v1/campaigns/%00", 400),
        (b"/v1/campaigns/a%1fb", 400),
        (b"/v1/campaigns/a%0d%0aX:%20y", 400),
        (b"/v1/campaigns/%7f", 400),
        (b"/v1/campaigns/" + b"x" * 201, 422),
        (b"/v1/campaigns/", 404),
        (b"/v1/campaigns//ledger", 404),
        (b"//v1/campaigns", 404),
        (b"/v1%2Fcampaigns", 404),
        (b"/V1/campaigns", 404),
        (b"/v1/campaigns/a/ledger/", 404),
        (b"/v1/campaigns/a%2Fledger", 404),
        (b"/v1/campaigns/a/decisions/%2e%2e", 422),
        (b"/nothing", 404),
    ],
)
def test_tricks_with_paths_are_refused(service: Serving, path: bytes, status: int) -> None:
    found, body = raw(service, path)
    assert found == status or (status == 422 and found == 404), body
    assert b'"type":"urn:doral:problem:' in body


def test_a_method_that_is_not_taken(service: Serving) -> None:
    with service.client() as client:
        for method, path in (("DELETE", "/v1/campaigns"), ("PUT", "/v1/campaigns/a"), ("POST", "/healthz")):
            answer = client.request(method, path)
            assert answer.status_code == 405
            assert answer.headers["allow"]
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["type"] == "urn:doral:problem:method-not-allowed"


def test_a_client_that_quotes_gets_there(service: Serving) -> None:
    with httpx2.Client(base_url=service.url, headers=service.headers) as client:
        for name in NAMES:
            assert client.get(path_of("v1", "campaigns", name)).json()["name"] == name
    with doral.connect(service.url, service.key) as store:
        for seed, name in enumerate(NAMES):
            assert store.campaign(name).report().name == name, seed
