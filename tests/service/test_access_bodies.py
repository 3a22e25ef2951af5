"""What is sent to a service: not from strangers, not too much, not too slowly. Byte by byte, as no client would."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from doral.service.access import middleware as bodies
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import PROBLEM, Serving, serving

MOST_BYTES, WITHIN_S = 1_000, 0.3
PATH = "/v1/campaigns/kits/decisions"


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    limits = Limits(body_bytes=MOST_BYTES, body_s=WITHIN_S)
    with serving(settings=ServiceSettings(storage="memory://", limits=limits)) as one:
        one.store.create("kits", PROBLEM)
        yield one


class Line:
    """A connection."""

    def __init__(self, service: Serving) -> None:
        host, _, port = service.url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._key = service.key

    def head(self, *headers: str, key: bool = True, path: str = PATH) -> None:
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
        if key:
            lines.append(f"Authorization: Bearer {self._key}")
        self.send("\r\n".join([*lines, "", ""]).encode())

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, Any], bool]:
        """Status, problem, and whether the connection was closed then."""
        heard = b""
        while b"\r\n\r\n" not in heard:
            heard += self._socket.recv(65_536)
        head, _, body = heard.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self._socket.recv(65_536)
        is_closed = b"connection: close" in head.lower()
        if is_closed:
            with suppress(ConnectionResetError):
                assert self._socket.recv(1) == b""
        return int(head.split()[1]), json.loads(body), is_closed

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def line(service: Serving) -> Iterator[Line]:
    one = Line(service)
    yield one
    one.close()


def body_of(size: int) -> bytes:
    found = json.dumps({"context": "young", "key": ""}).encode()
    return found.replace(b'""', b'"' + b"k" * (size - len(found)) + b'"')


def test_as_much_as_allowed_is_read(line: Line) -> None:
    line.head(f"Content-Length: {MOST_BYTES}")
    line.send(body_of(MOST_BYTES))
    status, problem, is_closed = line.answer()
    assert (status, is_closed) == (422, False), "a key of a thousand letters is none, but it was read"
    assert "key" in json.dumps(problem)


def test_one_byte_more_is_refused_before_it_is_sent(line: Line) -> None:
    line.head(f"Content-Length: {MOST_BYTES + 1}")
    status, problem, is_closed = line.answer()
    assert (status, problem["type"], is_closed) == (413, "urn:doral:problem:content-too-large", True)
    assert "1,000 bytes" in problem["detail"]


@pytest.mark.parametrize("length", ["99999999999999999999", "1e3", "-1", "+5", "0x10"])
def test_a_length_that_is_none(line: Line, length: str) -> None:
    line.head(f"Content-Length: {length}")
    try:
        status, _, _ = line.answer()
    except (IndexError, ConnectionResetError, ValueError):
        return  # the server itself does not take it, and says so in plain words
    assert status in (400, 413, 408)


def test_pieces_without_an_end_are_refused_when_they_are_too_much(line: Line) -> None:
    line.head("Transfer-Encoding: chunked")
    for _ in range(MOST_BYTES // 100 + 1):
        line.send(b"64\r\n" + b" " * 100 + b"\r\n")
    status, problem, is_closed = line.answer()
    assert (status, problem["status"], is_closed) == (413, 413, True)


def test_pieces_that_are_little_enough_are_read(line: Line) -> None:
    body = json.dumps({"context": "young"}).encode()
    line.head("Transfer-Encoding: chunked")
    for byte in body:
        line.send(b"1\r\n" + bytes([byte]) + b"\r\n")
    line.send(b"0\r\n\r\n")
    status, decision, _ = line.answer()
    assert (status, decision["context"]) == (200, "young")


@pytest.mark.parametrize("how", ["Content-Length: 500", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come(line: Line, how: str) -> None:
    line.head(how)
    began = time.monotonic()
    status, problem, is_closed = line.answer()
    assert (status, problem["type"], is_closed) == (408, "urn:doral:problem:request-timeout", True)
    assert WITHIN_S * 0.9 < time.monotonic() - began < WITHIN_S + 3


def test_a_body_that_comes_in_drops(line: Line) -> None:
    line.head("Content-Length: 500")
    began = time.monotonic()
    with suppress(OSError):
        for _ in range(40):
            line.send(b" ")
            time.sleep(WITHIN_S / 10)
    assert time.monotonic() - began < 3
    status, _, _ = line.answer()
    assert status == 408


def test_of_strangers_nothing_is_read(line: Line) -> None:
    line.head(f"Content-Length: {MOST_BYTES}", "Expect: 100-continue", key=False)
    status, problem, is_closed = line.answer()
    assert (status, problem["type"], is_closed) == (401, "urn:doral:problem:no-key", True)


def test_strangers_may_send_a_form_of_the_size_of_a_key(line: Line) -> None:
    line.head("Content-Length: 70000", key=False, path="/sign-in")
    assert line.answer()[0] == 413


def test_the_next_request_of_the_connection_is_served(service: Serving) -> None:
    with service.client() as client:
        for _ in range(3):
            assert client.post(PATH, json={"context": "young"}).status_code == 200
            assert client.post(PATH, content=b"x" * 2_000, headers={"Content-Type": "application/json"}).is_client_error


def test_large_bodies_at_once_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends hundreds of them fills no memory, and keeps no small one out."""
    monkeypatch.setattr(bodies, "_MOST_TOGETHER", 1)
    monkeypatch.setattr(bodies, "_SMALL_BYTES", 10)

    async def caller(_: object) -> None: ...

    service = SimpleNamespace(entrance=SimpleNamespace(caller=caller))

    async def go() -> list[int]:
        go_on = asyncio.Event()

        async def app(_scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await go_on.wait()
            await send({"type": "http.response.start", "status": 200})

        around = bodies.Bodies(app, Limits(body_bytes=100))
        statuses: list[int] = []

        async def ask(size: int) -> None:
            async def receive() -> Message:
                return {"type": "http.request", "body": bytes(size), "more_body": False}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            headers = [(b"content-length", str(size).encode())]
            about = {"app": SimpleNamespace(state=SimpleNamespace(service=service)), "headers": headers}
            await around({"type": "http", "method": "POST", "path": "/v1/x", **about}, receive, send)

        async with asyncio.TaskGroup() as all_of_them:
            for size in (90, 90, 5):
                all_of_them.create_task(ask(size))
            await asyncio.sleep(0.05)
            assert statuses == [503]
            go_on.set()
        await ask(90)
        return statuses

    assert asyncio.run(go()) == [503, 200, 200, 200]
