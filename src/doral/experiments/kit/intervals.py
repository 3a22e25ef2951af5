"""What experiments say about intervals, and about their absence: it takes some runs to have one."""

from __future__ import annotations

from doral.simulation.results.intervals import FEWEST_RUNS


def none_words(runs: int) -> str:
    """Why there is no interval; nothing where there is one.

    >>> none_words(2), none_words(1), none_words(3)
    ('2 runs: no interval', 'one run: no interval', '')
    """
    if runs >= FEWEST_RUNS:
        return ""
    return "one run: no interval" if runs == 1 else f"{runs} runs: no interval"


def ends_note(runs: int, *, otherwise: str) -> str:
    """A sentence about the intervals of a figure or table, or about their absence."""
    few = none_words(runs)
    return f"{few[0].upper()}{few[1:]}, which needs {FEWEST_RUNS}." if few else otherwise
