"""Several processes on one socket: started, watched, started again, and ended together."""

from __future__ import annotations

import logging
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

from prometheus_client.multiprocess import mark_process_dead

from doral.service.operations.worker import READY, Orders
from doral.service.settings import ServiceSettings

_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from doral.service.operations.worker import main; main({number})"
)
_LONG_S = 10.0  # a worker that lived so long did not die of how it was started
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_SPARE_S = 5.0  # beyond `stop_within_s`, before a worker is killed
_LOOK_S = 1.0

_logger = logging.getLogger("doral.service")


@dataclass(kw_only=True, eq=False)
class _Place:
    """Where one worker is, and the next one after it."""

    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    wait_s: float = 0.0
    start_at: float = 0.0
    is_ready: bool = False
    said: bytes = field(default=b"", repr=False)


class Workers:
    """As many as the settings say, until told to stop."""

    def __init__(self, settings: ServiceSettings, listening: socket.socket, when_ready: Callable[[], None]) -> None:
        self._settings, self._listening, self._when_ready = settings, listening, when_ready
        self._places = [_Place() for _ in range(settings.workers)]
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._was_ready = False

    def run(self) -> None:
        """Returns when all have ended."""
        ours, theirs = socket.socketpair()
        with ours, theirs, tempfile.TemporaryDirectory(prefix="doral-counts-") as self._counts:
            theirs.setblocking(False)
            before = {one: signal.signal(one, self._note) for one in (signal.SIGINT, signal.SIGTERM)}
            woken = signal.set_wakeup_fd(theirs.fileno())
            self._selector.register(ours, selectors.EVENT_READ)
            try:
                while not self._signals:
                    self._start_due()
                    self._hear(ours)
                self._stop(ours)
            finally:
                self._kill()
                signal.set_wakeup_fd(woken)
                for one, handler in before.items():
                    signal.signal(one, handler)
                self._selector.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signals.append(number)

    # --- starting ---------------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.process is None and place.start_at <= now:
                self._start(place)

    def _start(self, place: _Place) -> None:
        number = self._listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BEGIN.format(number=number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[number],
        )
        place.process, place.started_at, place.is_ready, place.said = process, time.monotonic(), False, b""
        self._selector.register(_pipe(process.stdout), selectors.EVENT_READ, place)
        orders = Orders(settings=self._settings, counts=self._counts, place=self._places.index(place))
        with suppress(BrokenPipeError):  # it died at once, and is heard of below
            pipe = _pipe(process.stdin)
            pipe.write(pickle.dumps(sys.path) + pickle.dumps(orders))
            pipe.flush()

    # --- watching ---------------------------------------------------------------------------------------------------

    def _hear(self, ours: socket.socket, within_s: float = _LOOK_S) -> None:
        for key, _ in self._selector.select(self._patience(within_s)):
            if key.fileobj is ours:
                ours.recv(4096)
                continue
            place: _Place = key.data
            assert place.process is not None
            said = os.read(key.fd, 4096)
            place.said += said
            if not said:
                self._mourn(place)
            elif place.said == READY:
                place.is_ready = True
                self._tell_if_ready()

    def _patience(self, within_s: float) -> float:
        now = time.monotonic()
        due = [place.start_at - now for place in self._places if place.process is None]
        return max(0.0, min([within_s, *due]))

    def _mourn(self, place: _Place) -> None:
        """It has ended, or will in a moment: a process that has closed its output answers nobody."""
        process = place.process
        assert process is not None
        self._selector.unregister(_pipe(process.stdout))
        process.kill()
        code = process.wait()
        _close(process)
        # What it showed as of now is no longer so.
        mark_process_dead(process.pid, self._counts)  # type: ignore[no-untyped-call]
        place.process = None
        lived = time.monotonic() - place.started_at
        if place.is_ready and lived >= _LONG_S:
            place.wait_s = 0.0
        place.start_at = time.monotonic() + place.wait_s
        if not self._signals:
            _logger.error(
                "worker %d has ended after %.1f s (%s); another is started in %.1f s",
                process.pid, lived, _why(code), place.wait_s,
            )  # fmt: skip
        place.wait_s = min(_LONGEST_WAIT_S, max(_FIRST_WAIT_S, 2.0 * place.wait_s))

    def _tell_if_ready(self) -> None:
        if not self._was_ready and all(place.is_ready for place in self._places):
            self._was_ready = True
            self._when_ready()

    # --- ending -----------------------------------------------------------------------------------------------------

    def _stop(self, ours: socket.socket) -> None:
        """All at once, and none is waited for longer than it was promised; a second Ctrl-C is heard."""
        deadline = time.monotonic() + self._settings.stop_within_s + _SPARE_S
        for place in self._places:
            if place.process is not None:
                with suppress(ProcessLookupError):
                    place.process.send_signal(signal.SIGTERM)
            place.start_at = float("inf")
        first = len(self._signals)
        while any(place.process is not None for place in self._places) and time.monotonic() < deadline:
            self._hear(ours, within_s=0.2)
            if signal.SIGINT in self._signals[first:]:
                _logger.warning("ended at once, as was asked for twice")
                return

    def _kill(self) -> None:
        """Whoever is left."""
        for place in self._places:
            if place.process is not None:
                place.process.kill()
                place.process.wait()
                _close(place.process)
                place.process = None


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            _pipe(pipe).close()


def _why(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    with suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
