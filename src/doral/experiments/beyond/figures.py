"""The figures of the comparison: two heat maps, the regret on the paper's scenarios, and one per choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from doral._arrays import Floats
from doral.experiments.beyond.analysis import Comparison
from doral.experiments.beyond.choices import Choice, Measure, short_name
from doral.experiments.beyond.heatmaps import ingredients_heatmap, shares_heatmap
from doral.experiments.beyond.targets import PAPER
from doral.experiments.claims import METRIC
from doral.experiments.figures import as_bytes, runs_words
from doral.simulation.plots import clean, colour_of, dash_of
from doral.simulation.result import interval

WIDTH_INCHES = 5.8  # narrow enough for its words to be read on a phone
_MARKERS = ("o", "s", "^", "D", "v", "P")
_MEASURES: dict[Measure, tuple[str, str]] = {
    "share": ("share_percent", "% of the clairvoyant's reward"),
    "cutoff": ("cutoff_rounds", "cut-off m at the end, rounds"),
}
_DARK_GRID = "#353d46"
_DARK: dict[Any, str] = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "#14181d"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#e4e8ec"),
}


def draw_all(found: Comparison, choices: Sequence[Choice]) -> dict[str, Figure]:
    """All figures by the name of their files."""
    figures = {"heatmap": shares_heatmap(found), **draw_lines(found, choices)}
    if found.ingredients is not None:
        figures["ingredients"] = ingredients_heatmap(found.ingredients, found.scenarios)
    return figures


def draw_lines(found: Comparison, choices: Sequence[Choice]) -> dict[str, Figure]:
    """Those that the page shows as pictures; heat maps are tables there."""
    figures = {}
    if any(name in PAPER for name in found.scenarios):
        figures["regret"] = _regret_figure(found)
    if found.courses is not None:
        figures["course"] = _course_figure(found.courses)
    if found.choices is not None:
        for choice in choices:
            figures[figure_name(choice)] = _choice_figure(choice, found.choices.filter(choice=choice.name))
    return figures


def draw_dark(found: Comparison, choices: Sequence[Choice]) -> dict[str, bytes]:
    """The same as pictures (PNG) for readers in the dark."""
    with mpl.rc_context(_DARK):
        figures = draw_lines(found, choices)
        for figure in figures.values():
            for axes in figure.axes:
                axes.grid(color=_DARK_GRID)
        return {name: as_bytes(figure, "png") for name, figure in figures.items()}


def figure_name(choice: Choice) -> str:
    """The name of the files of a choice."""
    return f"choice_{choice.name}"


def _regret_figure(found: Comparison) -> Figure:
    """In percent of the clairvoyant's reward, where 0.5 against 10 is the whole point: a log axis."""
    figure = Figure(figsize=(WIDTH_INCHES, 1.8 + 0.36 * len(found.policies)), layout="constrained")
    axes = figure.subplots()
    played = [name for name in found.scenarios if name in PAPER]
    for position, scenario in enumerate(played):
        offset = 0.16 * (position - (len(played) - 1) / 2)
        for row, policy in enumerate(found.policies):
            best = np.array([one.clairvoyant for one in found.table.of(scenario, policy)])
            regret = interval(100.0 * (best - found.table.rewards(scenario, policy, METRIC)) / best)
            label = short_name(scenario) if row == 0 else None
            _dot(axes, regret.mean, row + offset, low=regret.low, high=regret.high, position=position, label=label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_yticks(range(len(found.policies)), found.policies)
    axes.set_ylim(len(found.policies) - 0.5, -0.5)
    runs = len(found.table.of(played[0], found.policies[0]))
    axes.set_title(f"Regret on the paper's scenarios ({runs_words(runs)})", fontsize="medium", loc="left")
    axes.set_xlabel("regret, % of the clairvoyant's reward (log scale)")
    clean(axes)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False, fontsize="small")
    return figure


def _course_figure(frame: pl.DataFrame) -> Figure:
    """m and the arms in play against the share of the horizon that is over, which scenarios have in common."""
    figure = Figure(figsize=(WIDTH_INCHES, 5.6), layout="constrained")
    runs = int(frame["runs"].max())  # type: ignore[arg-type]
    figure.suptitle(f"How doral-otf goes about it ({runs_words(runs)})", fontsize="medium", x=0.01, ha="left")
    above, below = figure.subplots(2, 1, sharex=True)
    for position, scenario in enumerate(frame["scenario"].unique(maintain_order=True)):
        own = frame.filter(scenario=scenario)
        rounds = own["round"].to_numpy()
        passed = 100.0 * rounds / rounds[-1]
        style = {"color": colour_of(position), "linestyle": dash_of(position), "linewidth": 1.5}
        mean, low, high = (own[f"cutoff_{end}"].cast(float).to_numpy() for end in ("mean", "low", "high"))
        above.plot(passed, mean, label=short_name(scenario), **style)
        above.fill_between(passed, low, high, color=colour_of(position), alpha=0.15, linewidth=0)
        below.plot(passed, own["arms_in_play"], **style)
    above.set_ylim(bottom=0)
    below.set_ylim(bottom=0)
    above.set_ylabel("cut-off m, rounds")
    below.set_ylabel("arms in play\n(mean over contexts)")
    below.set_xlabel("% of the horizon")
    for axes in (above, below):
        clean(axes)
    handles, labels = above.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False, fontsize="small")
    return figure


def _dot(axes: Axes, x: float, y: float, *, low: float, high: float, position: int, label: str | None) -> None:
    reach = np.array([[x - low], [high - x]]) if np.isfinite(low) and np.isfinite(high) else None
    axes.errorbar(
        x, y, xerr=reach, fmt=_MARKERS[position], markersize=5, color=colour_of(position), capsize=2, label=label
    )


def _choice_figure(choice: Choice, frame: pl.DataFrame) -> Figure:
    """Panels side by side, measures of the same points below each other."""
    panels = list(dict.fromkeys(point.panel for point in choice.points))
    widths = [max(2, len({point.x for point in choice.points if point.panel == panel})) for panel in panels]
    figure = Figure(figsize=(WIDTH_INCHES, 1.0 + 3.0 * len(choice.measures)), layout="constrained")
    figure.suptitle(f"{choice.question}\n({runs_words(frame['runs'][0])})", fontsize="medium", x=0.01, ha="left")
    grid = figure.subplots(len(choice.measures), len(panels), squeeze=False, width_ratios=widths)
    for row, measure in zip(grid, choice.measures, strict=True):
        for axes, panel in zip(row, panels, strict=True):
            _panel(axes, choice, frame.filter(panel=panel), measure)
            axes.set_title(panel, fontsize="medium")
        row[0].set_ylabel(_MEASURES[measure][1])
    for axes in grid[-1]:
        axes.set_xlabel(choice.x_label)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    # Outside, where it can cover no line.
    figure.legend(handles, labels, loc="outside lower left", ncols=min(3, len(labels)), frameon=False, fontsize="small")
    return figure


def _panel(axes: Axes, choice: Choice, frame: pl.DataFrame, measure: Measure) -> None:
    column, _ = _MEASURES[measure]
    places = {x: place for place, x in enumerate(dict.fromkeys(frame["x"].to_list()))}
    lines = list(dict.fromkeys(frame["line"].to_list()))
    draw: Callable[..., None] = _ordered if choice.is_ordered else _unordered
    for position, line in enumerate(lines):
        own = frame.filter(line=line)
        at = np.array([places[x] for x in own["x"].to_list()], dtype=np.float64)
        values = [own[f"{column}{end}"].cast(float).to_numpy() for end in ("", "_low", "_high")]
        draw(axes, at, *values, label=line, position=position, lines=len(lines))
    if choice.default in places:
        axes.axvline(places[choice.default], color="#8a8a8a", linewidth=1, linestyle=":", zorder=0)
    axes.set_xticks(range(len(places)), [_tick(x, choice) for x in places])
    axes.set_xlim(-0.5, len(places) - 0.5)
    clean(axes)


def _tick(x: str, choice: Choice) -> str:
    shown = f"{x}\n(default)" if x == choice.default else x
    return shown if choice.is_ordered else shown.replace("-", "-\n")


def _ordered(
    axes: Axes, at: Floats, mean: Floats, low: Floats, high: Floats, *, label: str, position: int, lines: int
) -> None:
    colour = colour_of(position)
    marker = _MARKERS[position]
    axes.plot(at, mean, marker=marker, markersize=4, color=colour, linestyle=dash_of(position), label=label)
    axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)


def _unordered(
    axes: Axes, at: Floats, mean: Floats, low: Floats, high: Floats, *, label: str, position: int, lines: int
) -> None:
    """Side by side: a line between scenarios would mean nothing."""
    moved = at + 0.2 * (position - (lines - 1) / 2)
    reach = np.nan_to_num(np.array([mean - low, high - mean]))
    marker = _MARKERS[position]
    axes.errorbar(moved, mean, yerr=reach, fmt=marker, color=colour_of(position), capsize=3, label=label)
