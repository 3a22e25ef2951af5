"""What figures have in common: lines with their intervals, and how many runs they show."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes

from doral._arrays import Floats
from doral.simulation.plots import colour_of, dash_of


def runs_words(runs: int) -> str:
    """How many runs a figure shows."""
    return f"mean of {runs} runs, 95% interval" if runs > 1 else "one run"


def banded_line(
    axes: Axes, x: Floats, values: tuple[Floats, Floats, Floats], *, position: int, label: str, marker: str = "o"
) -> None:
    """Means joined by a line, between the low and the high ends of their intervals."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, marker=marker, markersize=4, color=colour, linestyle=dash_of(position), label=label)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def ends_of(frame: pl.DataFrame, column: str) -> tuple[Floats, Floats, Floats]:
    """The mean, low and high ends of a column of intervals."""
    mean, low, high = (frame[f"{column}{end}"].cast(float).to_numpy() for end in ("", "_low", "_high"))
    return mean, low, high
