"""What figures have in common: lines with their intervals, and how many runs they show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from doral._arrays import Floats
from doral.experiments.kit.intervals import LEAST_RUNS
from doral.simulation.plots import colour_of, dash_of


def mean_words(runs: int) -> str:
    """Of how many runs a number is the mean."""
    return f"mean of {runs} runs" if runs > 1 else "one run"


def runs_words(runs: int) -> str:
    """How many runs a figure shows, and whether that is enough for intervals."""
    return f"{mean_words(runs)}, {'95%' if runs >= LEAST_RUNS else 'no'} interval"


def banded_line(
    axes: Axes, x: Floats, values: tuple[Floats, Floats, Floats], *, position: int, label: str, marker: str = "o"
) -> None:
    """Means joined by a line, between the low and the high ends of their intervals."""
    mean, low, high = values
    colour = colour_of(position)
    axes.plot(x, mean, marker=marker, markersize=4, color=colour, linestyle=dash_of(position), label=label)
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def ends_of(frame: pl.DataFrame, column: str) -> tuple[Floats, Floats, Floats]:
    """The mean, low and high ends of a column of intervals."""
    mean, low, high = (frame[f"{column}{end}"].cast(float).to_numpy() for end in ("", "_low", "_high"))
    return mean, low, high


def ink_on(back: Sequence[float]) -> str:
    """Black or white, whichever has the higher contrast (WCAG) on a colour."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in back[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"
