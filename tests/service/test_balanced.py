"""Two replicas on PostgreSQL behind a real nginx, configured as in `deploy/`: kills and restarts under load."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

import doral
from doral.service.operations.wait_ready import wait_ready
from tests.service.harness import PROBLEM
from tests.service.processes import Running, running, until

DEPLOY = Path(__file__).parents[2] / "deploy" / "nginx"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="there is no nginx here: apt-get install nginx-light"),
]
WRITERS, CAMPAIGNS = 4, 3


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def configuration(folder: Path, port: int, replicas: list[int]) -> str:
    """The files of `deploy/`, with these replicas, on loopback and without TLS."""
    upstream = (DEPLOY / "upstream.conf").read_text()
    for usual, here in zip(("8787", "8788"), replicas, strict=True):
        upstream = upstream.replace(f"127.0.0.1:{usual}", f"127.0.0.1:{here}")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    server = f"server {{ listen 127.0.0.1:{port}; include {DEPLOY}/locations.conf; }}"
    return f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n" + (
        f"events {{ worker_connections 512; }}\nhttp {{ access_log off; {temporary} {upstream} {server} }}\n"
    )


@contextmanager
def balancer(folder: Path, replicas: list[int]) -> Iterator[str]:
    port = free_port()
    file = folder / "nginx.conf"
    file.write_text(configuration(folder, port, replicas))
    process = subprocess.Popen([str(NGINX), "-c", str(file), "-p", str(folder)], stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        assert wait_ready(url, 20.0), (folder / "error.log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


class Load:
    """Writers that decide and answer through the balancer, and remember what was acknowledged."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self.acknowledged: dict[str, str] = {}  # key of the request -> id of the decision
        self.errors: list[Exception] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=60)

    def _write(self, number: int) -> None:
        place = 0
        try:
            with doral.connect(self._url, key=self._key, timeout_s=60, try_timeout_s=10) as store:
                while not self._stop.is_set():
                    place += 1
                    name, key = f"c{place % CAMPAIGNS}", f"{number}-{place}"
                    made = store._made(name).decide("old", key=key)
                    self.acknowledged[key] = made.id
                    if made.state == "pending":
                        store._made(name).feedback(made.id, 1.0, key=key)
        except Exception as error:  # noqa: BLE001  (told by the test)
            self.errors.append(error)

    def more(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= wanted or self.errors, within_s=90.0)
        assert not self.errors, self.errors


def test_replicas_are_killed_and_restarted_under_load(postgres: str, tmp_path: Path) -> None:
    with doral.open(postgres) as store:
        for number in range(CAMPAIGNS):
            store.create(f"c{number}", PROBLEM, seed=1)
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        replicas: list[Running] = [
            stack.enter_context(running(storage=postgres, port=port, public_url="http://127.0.0.1:1")) for port in ports
        ]
        url = stack.enter_context(balancer(tmp_path, ports))
        key = replicas[0].key

        def again(place: int) -> None:
            replicas[place] = stack.enter_context(
                running(storage=postgres, port=ports[place], public_url="http://127.0.0.1:1")
            )
            assert wait_ready(replicas[place].url, 60.0)

        with Load(url, key) as load:
            load.more(20)
            for place in (0, 1):  # killed, and started again: nothing that was acknowledged is lost
                os.kill(replicas[place].process.pid, signal.SIGKILL)
                replicas[place].process.wait()
                load.more(10)
                again(place)
                load.more(10)
            for place in (0, 1):  # a rolling restart
                assert replicas[place].stop(within_s=40.0) == 0
                again(place)
                load.more(10)
        assert not load.errors, load.errors
        assert_all_there_once(postgres, load.acknowledged)
        assert_balancer_bounds(url)
    with doral.open(postgres) as store:
        for number in range(CAMPAIGNS):
            store.delete(f"c{number}")


def assert_all_there_once(url: str, acknowledged: dict[str, str]) -> None:
    with doral.open(url) as store:
        found = {one.key: one.id for number in range(CAMPAIGNS) for one in store.campaign(f"c{number}").decisions()}
        stored = sum(len(list(store.campaign(f"c{number}").decisions())) for number in range(CAMPAIGNS))
        assert {key: found.get(key) for key in acknowledged} == acknowledged
        assert stored == len(found), "no key was decided twice"
        for number in range(CAMPAIGNS):
            ledger = store.campaign(f"c{number}").ledger()
            assert ledger.spent + ledger.reserved + ledger.left == ledger.total


def assert_balancer_bounds(url: str) -> None:
    """What uvicorn does not refuse: a head without an end, and a body that is too large."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as mine:
        mine.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X-Filler: " + b"x" * 100_000 + b"\r\n\r\n")
        assert b" 400 " in mine.recv(1_000).splitlines()[0]
    large = httpx2.post(f"{url}/v1/campaigns", content=bytes(17 * 1024 * 1024), timeout=20.0)
    assert large.status_code == 413


def test_requests_of_one_campaign_go_to_one_replica(tmp_path: Path) -> None:
    seen: list[list[str]] = [[], []]

    def listen(place: int) -> tuple[socket.socket, Callable[[], None]]:
        listening = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    head = connection.recv(65_536).decode("latin-1")
                    seen[place].append(head.split()[1])
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        return listening, serve

    servers = [listen(place) for place in (0, 1)]
    threads = [threading.Thread(target=serve, daemon=True) for _, serve in servers]
    for thread in threads:
        thread.start()
    try:
        with balancer(tmp_path, [one.getsockname()[1] for one, _ in servers]) as url:
            for _ in range(3):
                for name in [f"name-{number}" for number in range(20)] + ["a%2Fb"]:
                    for path in (f"/v1/campaigns/{name}/decisions", f"/campaigns/{name}", f"/v1/campaigns/{name}?x=1"):
                        assert httpx2.get(url + path).status_code == 200
            time.sleep(0.1)
    finally:
        for listening, _ in servers:
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
    names = [
        {path.split("campaigns/")[1].split("/")[0].split("?")[0] for path in one if "campaigns" in path} for one in seen
    ]
    assert names[0]
    assert names[1]
    assert not names[0] & names[1]
    assert "a%2Fb" in names[0] | names[1], "paths are handed on as they were sent"
