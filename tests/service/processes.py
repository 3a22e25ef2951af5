"""A service in processes of its own, as `serve` runs it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

import doral
from doral.service.access.keys import new_key

_PROGRAM = """
import json, pathlib, sys
from doral.service.operations.server import serve
from doral.service.settings import ServiceSettings
given = json.loads(sys.stdin.read())
given |= {name: pathlib.Path(given[name]) for name in ("tls_cert", "tls_key") if name in given}
serve(ServiceSettings(**given), when_ready=lambda url: print(url, flush=True))
"""


@dataclass(kw_only=True)
class Running:
    """One that runs."""

    process: subprocess.Popen[str]
    url: str
    key: str
    log: Path
    storage: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers=self.headers, timeout=20.0)

    def get(self, path: str) -> str:
        """Through a connection of its own."""
        return self._ask("GET", path, None)[1]

    def post(self, path: str, content: object) -> int:
        """The status, through a connection of its own."""
        return self._ask("POST", path, content)[0]

    def _ask(self, method: str, path: str, content: object) -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20.0)
        try:
            body = None if content is None else json.dumps(content)
            connection.request(method, path, body, {**self.headers, "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def lines(self) -> list[dict[str, Any]]:
        """What it has written to standard error, each line for itself."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self, number: int = signal.SIGTERM, within_s: float = 15.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=within_s)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(what: Any, within_s: float = 15.0) -> None:
    """Wait until this is so."""
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@contextmanager
def running(**settings: Any) -> Iterator[Running]:
    """With these settings, on a free port, with the key of an administrator."""
    with doral.open(settings["storage"]) as store:
        row, key = new_key("test", ["admin"], now=time.time())
        store.books.add_key(row)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as lines:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=lines,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"port": 0, **settings}))
            process.stdin.close()
            url = process.stdout.readline().strip()
            assert url.startswith("http"), log.read_text()
            yield Running(process=process, url=url, key=key, log=log, storage=settings["storage"])
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
