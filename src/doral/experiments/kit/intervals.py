"""Intervals of the experiments: from three runs on, below that there is none to show or to decide by."""

from __future__ import annotations

import dataclasses

import polars as pl

from doral._arrays import Floats
from doral.simulation import result
from doral.simulation.result import Interval

LEAST_RUNS = 3
"""With two, Student's t has one degree of freedom: 12.7 standard errors to each side, which says nothing."""
UNKNOWN = Interval(float("nan"), float("nan"), float("nan"), float("nan"))


def interval(sample: Floats) -> Interval:
    """The mean of independent runs; its ends are unknown from fewer than `LEAST_RUNS`."""
    found = result.interval(sample)
    return found if sample.size >= LEAST_RUNS else dataclasses.replace(UNKNOWN, mean=found.mean)


def without_few(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with a column `runs`, in which rows of too few have neither intervals nor standard errors."""
    ends = [name for name in frame.columns if name.endswith(("_low", "_high", "_se"))]
    return frame.with_columns(pl.when(pl.col("runs") >= LEAST_RUNS).then(pl.col(name)).alias(name) for name in ends)


def none_words(runs: int) -> str:
    """Why there is no interval; nothing where there is one.

    >>> none_words(2), none_words(1), none_words(3)
    ('2 runs: no interval', 'one run: no interval', '')
    """
    if runs >= LEAST_RUNS:
        return ""
    return "one run: no interval" if runs == 1 else f"{runs} runs: no interval"


def ends_note(runs: int, *, otherwise: str) -> str:
    """A sentence about the intervals of a figure or table, or about their absence."""
    few = none_words(runs)
    return f"{few[0].upper()}{few[1:]}, which needs {LEAST_RUNS}." if few else otherwise
