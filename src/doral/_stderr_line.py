"""One line on standard error that is rewritten, and words that stay: neither runs over the other.

Nothing goes to standard output, and nothing to a file unless it was asked for.
"""

from __future__ import annotations

import shutil
import sys
import threading
from contextlib import suppress

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
