"""What figures have in common: lines with their intervals, how many runs they show, colours under digits."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from doral._arrays import Floats, Ints
from doral.simulation.results.intervals import FEWEST_RUNS
from doral.simulation.results.plots import colour_of, dash_of

# Black digits are read on every depth of these, at a contrast of six at least: no scale reaches into the middle, where
# neither black nor white stands out. One hue from pale to deep, and two that everybody tells apart.
DIGITS_COLOUR = "#010101"  # what is drawn in plain black follows the page, and would be white in the dark
DEPTHS = LinearSegmentedColormap.from_list("depths", ["#f7fbff", "#d6e6f4", "#9ecae1", "#63aad6", "#4292c6"])
SIDES = LinearSegmentedColormap.from_list("sides", ["#e08214", "#fdc98a", "#f7f7f7", "#9ecae1", "#4292c6"])


def mean_words(runs: int) -> str:
    """Of how many runs a number is the mean."""
    return f"mean of {runs} runs" if runs > 1 else "one run"


def runs_words(runs: int) -> str:
    """How many runs a figure shows, and whether that is enough for intervals."""
    return f"{mean_words(runs)}, {'95%' if runs >= FEWEST_RUNS else 'no'} interval"


def banded_line(
    axes: Axes, x: Floats, values: tuple[Floats, Floats, Floats], *, position: int, label: str, marker: str = "o"
) -> None:
    """Means joined by a line, between the low and the high ends of their intervals where there are any."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, marker=marker, markersize=4, color=colour, linestyle=dash_of(position), label=label)
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def banded_curve(
    axes: Axes, x: Floats | Ints, values: tuple[Floats, Floats, Floats], *, position: int, label: str | None
) -> None:
    """The same of so many points that none is marked."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, color=colour, linestyle=dash_of(position), linewidth=1.7, label=label)
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def ends_of(frame: pl.DataFrame, column: str) -> tuple[Floats, Floats, Floats]:
    """The mean, low and high ends of a column of intervals."""
    mean, low, high = (frame[f"{column}{end}"].cast(float).to_numpy() for end in ("", "_low", "_high"))
    return mean, low, high
