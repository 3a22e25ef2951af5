"""Progress of a long call: one line on standard error, in a terminal or a notebook, removed when it ends.

Words that stay do not run over the line that is rewritten. Nothing goes to standard output, and nothing to a file
unless it was asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

# --- one line on standard error --------------------------------------------------------------------------------------

_NARROWEST = 20  # letters: terminals that say less do not know how wide they are
_lock = threading.RLock()
_line = ""  # what stands there now


def is_watched() -> bool:
    """Return whether standard error is a terminal or a notebook."""
    if sys.stderr is None:
        return False
    try:
        return is_notebook() or sys.stderr.isatty()
    except ValueError:  # it was closed
        return False


def is_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook."""
    return "ipykernel" in sys.modules


def say(words: str) -> None:
    """Words that stay; the line goes on below them."""
    global _line
    with _lock:
        _write(f"{_rubber()}{words}\n")
        _line = ""


def rewrite(line: str) -> None:
    """Put this in the place of the line."""
    global _line
    with _lock:
        width = 100 if is_notebook() else max(_NARROWEST, shutil.get_terminal_size().columns - 1)
        shown = line[:width]
        _write(f"\r{shown.ljust(len(_line))}")
        _line = shown


def clear() -> None:
    """Leave nothing of the line."""
    global _line
    with _lock:
        if _line:
            _write(_rubber())
        _line = ""


def _rubber() -> str:
    return f"\r{' ' * len(_line)}\r" if _line else ""


def _write(text: str) -> None:
    with suppress(OSError, ValueError):  # it was closed
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


# --- progress --------------------------------------------------------------------------------------------------------

_FIRST_S, _EVERY_S = 1.0, 0.5  # who waits less than a second needs no words
_SURE_S = 0.5  # of counted work, before it is said how long the rest takes
_NUMBERS = re.compile(r"\d+")
_OFF = ("0", "off", "no", "false")
_shown = threading.Lock()  # a call inside another is part of it


class Progress:
    """A context: the line is there while it lasts, however it ends.

    The work before the first runs are finished is not counted for the time that is left: it compiles.
    """

    def __init__(
        self,
        what: str,
        weights: Iterable[float] = (),
        unit: str = "",
        *,
        is_shown: bool | None = None,
        workers: int = 1,
    ) -> None:
        """`weights` say how long pieces of work take, relative to each other; `unit` is what they are called."""
        self._what, self._unit, self._workers = what, unit, workers
        self._weights = list(weights)
        self._total = sum(self._weights)
        self._is_wanted = _is_wanted() if is_shown is None else bool(is_shown)
        self._is_shown = False
        self._stage = ""
        self._done, self._done_weight = 0, 0.0
        self._base: tuple[float, float] | None = None  # when counting began, and what was done by then
        self._left: tuple[float, float] | None = None  # what was thought to be left, and when
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._is_wanted and _shown.acquire(blocking=False):
            self._is_shown = True
            self._thread = threading.Thread(target=self._keep_showing, name="doral-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        if self._is_shown:
            if self._thread is not None:
                self._thread.join()
            clear()
            self._is_shown = False
            _shown.release()

    def advance(self) -> None:
        """One more piece of work is done."""
        now = time.monotonic()
        self._done_weight += self._weights[self._done]
        self._done += 1
        if self._done == self._workers:  # each worker has finished one, and compiled what it needed
            self._base = (now, self._done_weight)
        elif self._base is not None and self._done >= 2 * self._workers and now - self._base[0] >= _SURE_S:
            rate = (self._done_weight - self._base[1]) / (now - self._base[0])
            self._left = ((self._total - self._done_weight) / rate, now)

    def stage(self, words: str, share: float | None = None) -> None:
        """What is being done, where the pieces are not counted here; `share` of all is done.

        How long the rest takes is said once the same words have come with several numbers ("truth 3 of 40").
        """
        now, is_same = time.monotonic(), _NUMBERS.sub("", words) == _NUMBERS.sub("", self._stage)
        self._stage = words
        if share is None or not is_same:
            self._base = None if share is None else (now, share)
        elif self._base is not None and now - self._base[0] >= _SURE_S and share > self._base[1]:
            self._left = ((1.0 - share) * (now - self._base[0]) / (share - self._base[1]), now)

    def line(self, now: float) -> str:
        """What is shown at this moment of `time.monotonic`."""
        parts = [f"{self._done} of {len(self._weights)} {self._unit}"] if self._weights and not self._stage else []
        parts += [self._stage] if self._stage else []
        parts.append(f"{_duration(now - self._started)} gone")
        if self._left is not None:
            parts.append(f"about {_rounded(max(1.0, self._left[0] - (now - self._left[1])))} left")
        return f"{self._what}: {', '.join(parts)}"

    def _keep_showing(self) -> None:
        wait = _FIRST_S
        while not self._ends.wait(wait):
            rewrite(self.line(time.monotonic()))
            wait = _EVERY_S


def _is_wanted() -> bool:
    return os.environ.get("DORAL_PROGRESS", "").strip().lower() not in _OFF and is_watched()


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def _rounded(seconds: float) -> str:
    """A guess says no more than it knows."""
    step = 1 if seconds < 20 else 5 if seconds < 120 else 60
    return _duration(round(seconds / step) * step)
