"""Whoever waits is told why: one line, where somebody is looking."""

from __future__ import annotations

import sys

LONG_S = 3.0  # shorter waits explain themselves


def announce(seconds: float) -> None:
    """A compilation begins that takes about so long."""
    if seconds < LONG_S or not _is_watched():
        return
    sys.stderr.write(f"doral: compiling for this machine, once: about {seconds:.0f} s\n")
    sys.stderr.flush()


def _is_watched() -> bool:
    """A terminal, or a notebook."""
    if sys.stderr is None:
        return False
    return "ipykernel" in sys.modules or sys.stderr.isatty()
