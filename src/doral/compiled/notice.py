"""Lines that say what a process waits for, where a terminal or a notebook shows them."""

from __future__ import annotations

import logging

from doral import _stderr_line

LONG_S = 2.0  # shorter waits explain themselves


def announce_compiling(what: str, seconds: float) -> None:
    """Say that a compilation begins that takes about so long."""
    if seconds >= LONG_S:
        _say(f"compiling {what} for this machine, once: about {seconds:.0f} s")


def announce_waiting(what: str) -> None:
    """Say that another process compiles it."""
    _say(f"waiting for another process that compiles {what}")


def announce_no_cache(reason: str) -> None:
    """Say that every process compiles for itself: without a terminal, in the log."""
    words = f"compiled code is not kept: {reason}; set DORAL_CACHE_DIR to a folder that only you can write to"
    if not _say(words):
        logging.getLogger("doral").warning(words)


def _say(words: str) -> bool:
    """Whether there was a terminal or a notebook to say it."""
    if not _stderr_line.is_watched():
        return False
    _stderr_line.say(f"doral: {words}")
    return True
