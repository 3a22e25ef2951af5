"""Processes of a service: how they start, are killed, and end."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import FastAPI

import doral
from doral.errors import InvalidValue
from doral.service.operations import server
from doral.service.operations.server import check, listen, tls_context
from doral.service.settings import ServiceSettings
from tests.service.harness import PROBLEM
from tests.service.processes import Running, running, until

SETTINGS = ServiceSettings(storage="memory://", port=0)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (replace(SETTINGS, port=70_000), "port"),
        (replace(SETTINGS, host="0.0.0.0"), "host"),
        (replace(SETTINGS, host="::"), "host"),
        (replace(SETTINGS, host="example.org"), "host"),
        (replace(SETTINGS, tls_cert=Path("cert.pem")), "tls_cert"),
        (replace(SETTINGS, host="0.0.0.0", tls_cert=Path("cert.pem"), tls_key=Path("key.pem")), "host"),
        (replace(SETTINGS, webhook="ftp://x", webhook_secret="s"), "webhook"),
        (replace(SETTINGS, webhook="http://127.0.0.1:1/"), "webhook_secret"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_opened(settings: ServiceSettings, field: str) -> None:
    with pytest.raises(InvalidValue) as error:
        check(settings)
    assert error.value.field == field


def test_settings_that_are_allowed() -> None:
    check(SETTINGS)
    check(replace(SETTINGS, host="0.0.0.0", allow_plain_http=True))
    check(replace(SETTINGS, host="::1"))
    with_tls = replace(SETTINGS, host="0.0.0.0", tls_cert=Path("cert.pem"), tls_key=Path("key.pem"))
    check(replace(with_tls, allow_direct=True))
    check(replace(with_tls, public_url="https://campaigns.example.org"))


def test_a_port_that_is_taken_is_named() -> None:
    with listen(SETTINGS) as first:
        first.listen()
        with pytest.raises(InvalidValue, match="somebody listens there already"):
            listen(replace(SETTINGS, port=first.getsockname()[1]))
    with pytest.raises(InvalidValue, match="host"):
        listen(replace(SETTINGS, host="192.0.2.1"))


# --- one process ------------------------------------------------------------------------------------------------------


def _decide_until_refused(run: Running, worker: int, got: list[str]) -> None:
    with run.client() as client:
        for place in range(10_000):
            try:
                answer = client.post(
                    "/v1/campaigns/load/decisions", json={"context": "young", "key": f"{worker}-{place}"}
                )
            except httpx2.TransportError:
                return
            if answer.status_code != 200:
                assert answer.status_code == 503, answer.text
                return
            got.append(answer.json()["id"])


def _load(run: Running, number: int) -> tuple[int, list[str]]:
    """The exit code, and what was acknowledged before the end."""
    got: list[str] = []
    threads = [threading.Thread(target=_decide_until_refused, args=(run, one, got)) for one in range(4)]
    for one in threads:
        one.start()
    until(lambda: len(got) >= 40, within_s=30.0)
    code = run.stop(number)
    for one in threads:
        one.join(timeout=20)
    return code, got


def test_sigterm_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(storage) as store:
        store.create("load", PROBLEM)
    with running(storage=storage) as run, run.client() as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        with client.stream("GET", "/v1/campaigns/load/events") as events:
            code, got = _load(run, signal.SIGTERM)
            followed = b"".join(events.iter_raw())  # to its end, which is whole
        lines = run.lines()
    assert code == 0
    assert b"id: " in followed
    with doral.open(storage) as store:
        stored = {one.id for one in store.campaign("load").decisions()}
    assert set(got) <= stored
    told = [line for line in lines if line["event"] == "request"]
    assert len(told) >= len(got)
    assert {line["status"] for line in told} <= {200, 503}
    one = told[0]
    assert one["route"] == "/v1/campaigns/{name}/decisions"
    assert one["campaign"] == "load"
    assert one["method"] == "POST"
    assert one["bytes"] > 0
    assert one["ms"] > 0
    assert one["key_id"]
    assert run.key not in str(lines)


def test_requests_end_in_peace_and_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    with running(storage=f"sqlite:///{tmp_path}/campaigns.db") as run:
        place = urlsplit(run.url)
        with socket.create_connection((place.hostname, place.port)) as slow:
            slow.sendall(
                f"POST /v1/campaigns/x/decisions HTTP/1.1\r\nHost: {place.netloc}\r\n".encode()
                + f"Authorization: Bearer {run.key}\r\nContent-Type: application/json\r\n".encode()
                + b"Content-Length: 100\r\n\r\n"
            )
            time.sleep(0.2)
            run.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert run.process.poll() is None  # the request is still under way
            with pytest.raises(httpx2.ConnectError):
                httpx2.get(run.url + "/healthz")
            began = time.monotonic()
            assert run.stop(signal.SIGINT, within_s=3.0) == 130
            assert time.monotonic() - began < 1.0


def test_a_store_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(server, "_SPARE_S", 0.01)
    ending = server.make_server(FastAPI(), SETTINGS)
    ending.should_exit = True
    server._give_up_late(ending, 0.0)
    assert codes == [1]


def test_a_certificate_is_used_and_old_protocols_are_not(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    settings = replace(SETTINGS, tls_cert=cert, tls_key=key)
    check(settings)
    with pytest.raises(InvalidValue, match="not a certificate with its own key"):
        tls_context(replace(settings, tls_key=cert))
    with running(storage=f"sqlite:///{tmp_path}/campaigns.db", tls_cert=str(cert), tls_key=str(key)) as run:
        assert run.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=str(cert))
        assert httpx2.get(run.url + "/healthz", verify=trusting).json() == {"status": "alive"}
        old = ssl.create_default_context(cafile=str(cert))
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")  # no authenticated encryption
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(run.url + "/healthz", verify=old)
        assert run.stop() == 0


# --- several processes ------------------------------------------------------------------------------------------------


def test_two_replicas_serve_one_campaign_stop_under_load_and_lose_nothing(postgres: str) -> None:
    with doral.open(postgres) as store:
        store.create("load", PROBLEM)
    with running(storage=postgres) as first, running(storage=postgres) as second:
        for k in range(10):
            run = (first, second)[k % 2]
            assert run.post("/v1/campaigns/load/decisions", {"context": "old", "key": str(k // 2)}) == 200
        code, got = _load(first, signal.SIGTERM)
        assert code == 0
        assert second.post("/v1/campaigns/load/decisions", {"context": "old", "key": "0"}) == 200
    with doral.open(postgres) as store:
        made = list(store.campaign("load").decisions())
        store.delete("load")
    assert sum(one.key in "01234" for one in made if one.key is not None) == 5
    assert set(got) <= {one.id for one in made}
