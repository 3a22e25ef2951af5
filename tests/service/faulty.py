"""A network that fails on purpose: a proxy on the loopback that cuts, delays, garbles or answers by itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

PASS, REFUSE, CUT_BEFORE, CUT_AFTER, TRUNCATE, GARBAGE, NO_JSON, HANG = (
    "pass", "refuse", "cut before", "cut after", "truncate", "garbage", "no json", "hang",
)  # fmt: skip
OF_THE_NETWORK = (REFUSE, CUT_BEFORE, CUT_AFTER, TRUNCATE, GARBAGE, NO_JSON)


def answering(status: int, *headers: str, body: str = "") -> bytes:
    """What a proxy, or a service that has too much to do, answers by itself."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@dataclass
class Proxy:
    """Stands before a service. Each request meets the next of `faults`; those after the last pass."""

    target: str
    faults: list[str | bytes | int] = field(default_factory=list)  # a number: of bytes after which an answer is cut
    seen: list[bytes] = field(default_factory=list)  # requests as they came
    url: str = ""
    hanging: threading.Event = field(default_factory=threading.Event)
    upstreams: list[socket.socket] = field(default_factory=list)

    def serve(self, connection: socket.socket) -> None:
        """One request on one connection."""
        with connection, suppress(OSError):
            fault: str | bytes | int = self.faults.pop(0) if self.faults else PASS
            if fault == REFUSE:
                return
            request = _message(connection)
            self.seen.append(request)
            if fault == HANG:
                self.hanging.wait(10)
            elif isinstance(fault, bytes):
                connection.sendall(fault)
            elif fault != CUT_BEFORE:
                self._forward(connection, request, fault)

    def _forward(self, connection: socket.socket, request: bytes, fault: str | int) -> None:
        place = urlsplit(self.target)
        with socket.create_connection((place.hostname or "", place.port or 80)) as upstream:
            self.upstreams.append(upstream)
            first, _, rest = request.partition(b"\r\n")
            upstream.sendall(first + b"\r\nConnection: close\r\n" + rest.replace(b"Connection: keep-alive\r\n", b""))
            if fault == PASS or isinstance(fault, int):
                left = fault if isinstance(fault, int) else 2**62
                while left > 0 and (part := upstream.recv(min(left, 65536))):
                    connection.sendall(part)
                    left -= len(part)
                return
            answer = b""
            while part := upstream.recv(65536):
                answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        if fault == TRUNCATE:
            connection.sendall(head + b"\r\n\r\n" + body[: len(body) // 2])
        elif fault == GARBAGE:
            connection.sendall(b"\x00\xff what is this\r\n\r\n")
        elif fault == NO_JSON:
            connection.sendall(answering(200, "Content-Type: text/html", body="<html>Welcome to the hotel</html>"))


def _message(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(65536)
        if not part:
            raise OSError("cut")
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def proxy(target: str) -> Iterator[Proxy]:
    """Before the service at this address."""
    found = Proxy(target)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        found.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threads.append(_started(partial(found.serve, connection)))

        accepting = _started(accept)
        try:
            yield found
        finally:
            found.hanging.set()
            for one in (listening, *found.upstreams):
                with suppress(OSError):  # it is closed already
                    one.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join(timeout=10)


def _started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread
