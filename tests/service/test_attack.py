"""A bounded attack on the loopback: without a key, and with one that may only read. Others go on."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

import doral
from doral.service.access.keys import new_key
from tests.service.harness import PROBLEM
from tests.service.processes import Running, running

ATTACKERS = 8  # connections
WINDOW_S = 2.0
pytestmark = pytest.mark.slow

COSTLY = ("report", "facts", "decisions?limit=1000", "health", "export?format=csv")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('attack')}/campaigns.db"
    with doral.open(storage) as store:
        for number in range(4):
            store.create(f"c{number}", PROBLEM, seed=1).decide_many(["old"] * 500)
    with running(storage=storage) as found:
        yield found


def ask(run: Running, method: str, path: str, key: str | None, body: bytes | None = None) -> int:
    connection = http.client.HTTPConnection(urlsplit(run.url).netloc, timeout=20.0)
    try:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        connection.request(method, path, body, headers | {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@contextmanager
def attacked(attack: Callable[[int, int], None]) -> Iterator[None]:
    """`attack(connection, turn)` again and again, on so many connections."""
    is_over = threading.Event()

    def go_on(number: int) -> None:
        turn = 0
        while not is_over.is_set():
            with suppress(OSError, http.client.HTTPException):
                attack(number, turn)
            turn += 1

    threads = [threading.Thread(target=go_on, args=(number,)) for number in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


class Victim:
    """Programs that decide, each with a connection of its own; how many decisions in each window."""

    def __init__(self, run: Running, key: str) -> None:
        self._run, self._key = run, key
        self.wrong: list[int] = []

    def rate_per_s(self, windows: int) -> list[float]:
        counts, is_over, lock = [0] * windows, threading.Event(), threading.Lock()
        began = time.monotonic()

        def decide() -> None:
            connection = http.client.HTTPConnection(urlsplit(self._run.url).netloc, timeout=20.0)
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            while not is_over.is_set():
                connection.request("POST", "/v1/campaigns/c0/decisions", b'{"context":"old"}', headers)
                answer = connection.getresponse()
                answer.read()
                place = int((time.monotonic() - began) / WINDOW_S)
                with lock:
                    if answer.status != 200:
                        self.wrong.append(answer.status)
                    elif place < windows:
                        counts[place] += 1
            connection.close()

        threads = [threading.Thread(target=decide) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(WINDOW_S * windows)
        is_over.set()
        for thread in threads:
            thread.join()
        return [count / WINDOW_S for count in counts]


def attacks(run: Running, reading_key: str) -> dict[str, Callable[[int, int], None]]:
    place = urlsplit(run.url)

    def read(number: int, turn: int) -> None:
        ask(run, "GET", f"/v1/campaigns/c{(number + turn) % 4}/{COSTLY[turn % len(COSTLY)]}", reading_key)

    def guess(number: int, turn: int) -> None:
        ask(run, "GET", "/v1/me", f"doral_{number:06x}{turn % 2**24:06x}_{'x' * 43}")
        time.sleep(0.005)

    def send_large(number: int, turn: int) -> None:
        ask(run, "POST", "/v1/campaigns/c0/decisions", None, bytes(1_000_000))
        time.sleep(0.005)

    def dawdle(number: int, turn: int) -> None:
        with socket.create_connection((place.hostname, place.port), timeout=5) as mine:
            mine.sendall(b"POST /v1/campaigns/c0/decisions HTTP/1.1\r\nHost: x\r\n")
            time.sleep(0.1)

    return {"costly reads": read, "wrong keys": guess, "large bodies": send_large, "slow heads": dawdle}


@pytest.mark.parametrize("name", ["costly reads", "wrong keys", "large bodies", "slow heads"])
def test_others_go_on(run: Running, name: str) -> None:
    """Others decide in every window, none of them is refused, and the service stays ready. How fast is printed."""
    rows = [new_key(role, [role], now=time.time()) for role in ("read", "decide")]
    with doral.open(run.storage) as store:
        for row, _ in rows:
            store.books.add_key(row)
    victim = Victim(run, rows[1][1])
    victim.rate_per_s(1)  # warm
    before = victim.rate_per_s(3)
    with attacked(attacks(run, rows[0][1])[name]):
        during = victim.rate_per_s(3)
    print(f"{name}: {before} per s before, {during} during")  # noqa: T201
    assert victim.wrong == []
    assert min(during) > 0
    assert ask(run, "GET", "/readyz", None) == 200
