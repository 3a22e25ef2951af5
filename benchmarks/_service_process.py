"""A real `doral serve` in a process of its own, for those who measure it or kill it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import doral
from doral.service.access.keys import new_key

_START_S = 60.0  # on a busy machine, with code to load
_PAGE = rb"(?m)^page +\S+$"  # printed when decisions can be made
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Served:
    """A service that can be started, killed and started again on the same port and the same store."""

    def __init__(self, storage: str, *, words: tuple[str, ...] = ()) -> None:
        self.storage, self.port, self.key = storage, free_port(), ""
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="doral-served-")
        self._output = Path(self._folder.name) / "output"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """What it has printed since it was first started."""
        return self._output.read_text(errors="replace")

    def start(self) -> float:
        """Returns how long it took until the store could be used."""
        began = time.monotonic()
        words = ["serve", "--storage", self.storage, "--port", str(self.port), *self._words]
        with self._output.open("ab") as output:
            before = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "doral", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that all its processes can be killed at once
            )
        while not (re.search(_PAGE, self._output.read_bytes()[before:]) and self._is_ready()):
            if self._process.poll() is not None or time.monotonic() - began > _START_S:
                raise SystemExit(f"the service did not start:\n{self.said}")
            time.sleep(0.02)
        if not self.key:
            found = re.search(r"(?m)^key +(doral_\S+)$", self.said)
            self.key = found[1] if found else self._another_key()
        return time.monotonic() - began

    def _another_key(self) -> str:
        """Where the store has had keys before, none is printed."""
        row, key = new_key("benchmark", ["admin"], now=time.time())
        with doral.open(self.storage) as store:
            store.books.add_key(row)
        return key

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """All its processes, by `kill -9`."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def processor_s(self) -> float:
        """That it has used so far; on Linux."""
        return _processor_s(self.pid)

    def stop(self) -> int:
        """As an operator does it; the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop()
        self._folder.cleanup()


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
