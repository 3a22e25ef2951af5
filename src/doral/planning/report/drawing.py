"""What the figures of a plan have in common: the sheet, labels beside lines, marks of time and money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from doral.pages.figure import Figure
from doral.pages.names import short
from doral.simulation.results.plots import COLOURS, clean

WIDTH_INCHES = 5.0  # narrow enough for its words to be read on a phone
MOST_LINES = 8  # in a panel; more cannot be told apart
_LABEL_INCHES = 0.17  # from one line of text to the next
# Okabe and Ito's, without black, which is the colour of all together; a page draws the first ones in its own.
_PAINTS = tuple(one for one in COLOURS if one != "#000000")
MARK = "#8a8a8a"  # of lines that are no data; seen on light and on dark paper


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """A figure with the words around it."""

    name: str  # of its files
    title: str
    sees: str  # what to see, in a sentence
    alt: str  # what it shows, for whoever cannot see it
    figure: Figure


@dataclass(frozen=True, kw_only=True)
class Line:
    """The end of a line, where its name is written."""

    y: float
    name: str
    colour: str


def sheet(height_inches: float, title: str, *, width_inches: float = WIDTH_INCHES) -> Figure:
    """An empty figure with a title at its left."""
    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    figure.suptitle(literal(title), fontsize="medium", x=0.01, ha="left", wrap=True)
    return figure


def finish(axes: Axes) -> None:
    """The common look."""
    clean(axes)


def literal(text: str) -> str:
    """Text as it is: dollars would begin a formula."""
    return text.replace("$", r"\$")


def label(name: str, width: int = 26) -> str:
    """A name as a figure can show it."""
    return literal(short(name, width))


def ink() -> str:
    """The colour of words."""
    return "#000000"


def colour(position: int) -> str:
    """Of a line."""
    return _PAINTS[position % len(_PAINTS)]


def end_labels(axes: Axes, lines: Sequence[Line], *, height_inches: float) -> None:
    """Names beside the ends of lines, moved apart where they would cover each other. Limits of the axes are set."""
    low, high = axes.get_ylim()
    gap = (high - low) * _LABEL_INCHES / height_inches
    order = sorted(range(len(lines)), key=lambda place: lines[place].y)
    for place, y in zip(order, apart([lines[place].y for place in order], gap, low, high - 0.5 * gap), strict=True):
        one = lines[place]
        axes.annotate(
            label(one.name, 20),
            xy=(1.0, one.y),
            xytext=(1.05, y),
            xycoords=axes.get_yaxis_transform(),
            textcoords=axes.get_yaxis_transform(),
            fontsize="small",
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": one.colour,
                "linewidth": 1.2,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def apart(ascending: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart, near where they belong, and inside low to high as far as there is room.

    >>> apart([0.5, 0.5, 0.9], 0.2, 0.0, 1.0)
    [0.4, 0.6, 0.9]
    """
    groups: list[list[float]] = []  # each: the sum of where its members belong, and how many there are
    for value in ascending:
        groups.append([value, 1.0])
        while len(groups) > 1 and _bottom(groups[-1], gap) < _top(groups[-2], gap) + gap - 1e-12:
            total, many = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += many
    placed = [_bottom(one, gap) + step * gap for one in groups for step in range(int(one[1]))]
    for place in range(len(placed)):  # back inside, first from below and then from above
        placed[place] = max(placed[place], low + gap * place)
    for place in range(len(placed)):
        placed[-1 - place] = min(placed[-1 - place], high - gap * place)
    return [round(one, 12) for one in placed]


def _bottom(group: list[float], gap: float) -> float:
    return group[0] / group[1] - 0.5 * gap * (group[1] - 1.0)


def _top(group: list[float], gap: float) -> float:
    return group[0] / group[1] + 0.5 * gap * (group[1] - 1.0)


def mark(axes: Axes, x: float, words: str, *, is_left: bool = False, style: str = "--", level: int = 0) -> None:
    """A line across at one place, with words above the axes, on one side of it."""
    axes.axvline(x, color=MARK, linewidth=1.2, linestyle=style, zorder=1)
    axes.annotate(
        literal(words),
        xy=(x, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-3 if is_left else 3, 3 + 12 * level),
        textcoords="offset points",
        fontsize="small",
        ha="right" if is_left else "left",
        va="bottom",
        annotation_clip=False,
    )


PLAIN = FuncFormatter(lambda value, _: f"{value:,.10g}")  # ticks without powers of ten beside the axis


def numbers(values: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What is not known is left out of a drawing."""
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
