"""Requests for a service, as many as it takes: the program that `service.py` runs beside it, in a process of its own.

Reads one line of JSON (what to send, for how long) and writes one (how many were answered, and how quickly). It does as
little as it can: requests are put together from parts, and of an answer only the status and the length are read.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

Answered = Callable[[bytes], None]


class Load:
    """What all connections share."""

    def __init__(self, requests: Iterator[bytes], seconds: float, keep: Answered | None) -> None:
        self.requests, self.keep = requests, keep
        self.until = time.perf_counter() + seconds
        self.latencies_s: list[float] = []
        self.wrong: list[str] = []
        self.open = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def left(self) -> None:
        self.open -= 1
        if self.open == 0 and not self.done.done():
            self.done.set_result(None)


class Connection(asyncio.Protocol):
    """One after the other, on a connection that is kept."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # (uvloop's are none by their class)
        self._load.open += 1
        self._send()

    def _send(self) -> None:
        now = time.perf_counter()
        request = next(self._load.requests, None) if now < self._load.until else None
        if request is None:
            self._transport.close()
            return
        self._began = now
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end].lower()
        place = head.find(b"content-length:")
        length = int(head[place + 15 :].split(b"\r\n", 1)[0])
        if len(self._buffer) < head_end + 4 + length:
            return
        load = self._load
        load.latencies_s.append(time.perf_counter() - self._began)
        if head[9:10] != b"2":
            load.wrong.append(self._buffer[:2000].decode(errors="replace"))
        elif load.keep is not None:
            load.keep(self._buffer[head_end + 4 :])
        self._buffer = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._load.wrong.append(repr(exc))
        self._load.left()


def _posts(asked: dict[str, Any], path: str, bodies: Iterator[str]) -> Iterator[bytes]:
    head = (
        f"POST /v1/campaigns/{asked['campaign']}/{path} HTTP/1.1\r\nHost: {asked['host']}\r\n"
        f"Authorization: Bearer {asked['key']}\r\nContent-Type: application/json\r\nContent-Length: "
    )
    return (f"{head}{len(body)}\r\n\r\n{body}".encode() for body in bodies)


def _endless() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _spread_over(asked: dict[str, Any]) -> Iterator[bytes]:
    """Decisions of many campaigns: all alike, by Zipf's law, one, or each in its turn."""
    names, draw, contexts = asked["names"], random.Random(asked["run"]), asked["contexts"]
    weights = list(itertools.accumulate(1.0 / (place + 1) for place in range(len(names))))

    def chosen() -> Iterator[str]:
        if asked["law"] == "turns":
            yield from names
        while asked["law"] != "turns":
            if asked["law"] == "hot":
                yield names[0]
            else:
                yield from draw.choices(names, cum_weights=weights if asked["law"] == "zipf" else None, k=1_000)

    for n, name in enumerate(chosen()):
        body = f'{{"context":"{contexts[n % len(contexts)]}","key":"{asked["run"]}-{n}"}}'
        yield (
            f"POST /v1/campaigns/{name}/decisions HTTP/1.1\r\nHost: {asked['host']}\r\n"
            f"Authorization: Bearer {asked['key']}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


def _requests(asked: dict[str, Any]) -> Iterator[bytes]:
    contexts, run, kind = asked["contexts"], asked["run"], asked["kind"]
    if kind == "health":
        request = f"GET /healthz HTTP/1.1\r\nHost: {asked['host']}\r\n\r\n".encode()
        return (request for _ in _endless())
    if kind == "decide":
        bodies = (f'{{"context":"{contexts[n % len(contexts)]}","key":"{run}-{n}"}}' for n in _endless())
        return _posts(asked, "decisions", bodies)
    if kind == "many":
        return _spread_over(asked)
    if kind == "batch":
        size = asked["batch"]

        def batch(n: int) -> str:
            some = (f'{{"context":"{contexts[i % len(contexts)]}","key":"{run}-{n}-{i}"}}' for i in range(size))
            return f'{{"arrivals":[{",".join(some)}]}}'

        return _posts(asked, "decisions/batch", (batch(n) for n in _endless()))
    assert kind == "feedback"
    return _posts(
        asked,
        "feedback",
        (f'{{"decision_id":"{one}","reward":1.0,"key":"{run}-{n}"}}' for n, one in enumerate(asked["decisions"])),
    )


async def _run(asked: dict[str, Any]) -> dict[str, Any]:
    served: list[str] = []

    def keep(body: bytes) -> None:
        served.extend(one["id"] for one in json.loads(body)["decisions"] if one["state"] == "pending")

    host, port = asked["host"].split(":")
    load = Load(_requests(asked), asked["seconds"], keep if asked.get("keep") else None)
    began, processor = time.perf_counter(), time.process_time()
    loop = asyncio.get_running_loop()
    for _ in range(asked["connections"]):
        await loop.create_connection(lambda: Connection(load), host, int(port))
    await load.done
    wall_s = time.perf_counter() - began
    return {
        "answered": len(load.latencies_s),
        "wall_s": wall_s,
        "processor_s": time.process_time() - processor,
        "latencies_s": load.latencies_s,
        "n_wrong": len(load.wrong),
        "wrong": load.wrong[:1],
        "served": served,
    }


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    try:
        import uvloop

        found = uvloop.run(_run(asked))
    except ImportError:
        found = asyncio.run(_run(asked))
    Path(asked["out"]).write_text(json.dumps(found))  # long, and pipes of an event loop take only part of it


if __name__ == "__main__":
    main()
