"""Whoever waits is told why: one line, where somebody is looking."""

from __future__ import annotations

import logging

LONG_S = 2.0  # shorter waits explain themselves
PREPARED_SHARE = 0.4  # of the time, where bitcode is at hand: only LLVM has something to do


def announce_compiling(what: str, seconds: float, *, is_prepared: bool) -> None:
    """A compilation begins that takes about so long."""
    takes = seconds * (PREPARED_SHARE if is_prepared else 1.0)
    if takes >= LONG_S:
        _say(f"compiling {what} for this machine, once: about {takes:.0f} s")


def announce_waiting(what: str) -> None:
    """Somebody else compiles it."""
    _say(f"waiting for another process that compiles {what}")


def announce_no_cache(reason: str) -> None:
    """Every process compiles for itself: where nobody is looking, it belongs into the log."""
    words = f"compiled code is not kept: {reason}; set DORAL_CACHE_DIR to a folder that only you can write to"
    if not _say(words):
        logging.getLogger("doral").warning(words)


def _say(words: str) -> bool:
    """To a terminal or a notebook, and to nobody else; whether there was one."""
    from doral import _stderr_line  # here: how a line is written decides nothing, and is no reason to compile anew

    if not _stderr_line.is_watched():
        return False
    _stderr_line.say(f"doral: {words}")
    return True
