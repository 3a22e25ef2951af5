"""The figures: the paper's four, and one for each sweep; as files, and as drawings of the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from doral.experiments.kit.batches import Extent
from doral.experiments.kit.claim import METRIC
from doral.experiments.kit.drawing import banded_curve, banded_line, ends_of, runs_words
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.cells import FIGURES, SCENARIO_NAMES, SHORT_TITLES, SHOWN_NAMES, PaperFigure
from doral.simulation.results.plots import bands, clean, paths_of, plot

View = Literal["reward", "difference"]
PLOTTED_POINTS = 200  # of each curve on the page; more cannot be seen
_ON_PAGE_INCHES = (5.0, 3.4)  # narrow enough for its words to be read on a phone
FIGURE_NAMES = (*(one.name for one in FIGURES), "sweep_horizon", "sweep_accept")


def figures(found: PaperFindings, extent: Extent) -> dict[str, Figure]:
    """All figures by the name of their files."""
    drawn: dict[str, Figure] = {}
    for one in FIGURES:
        figure = plot(found.comparison, kind="reward", metric=METRIC, scenario=one.scenario)
        runs = len(found.comparison.of(one.scenario, "doral"))
        axes = figure.axes[0]
        axes.set_title(f"{one.title} ({runs_words(runs)})", fontsize="medium", loc="left")
        for line in axes.get_lines():
            line.set_label(SHOWN_NAMES[str(line.get_label())])
        for text in figure.legends[0].get_texts():
            text.set_text(SHOWN_NAMES[text.get_text()])
        drawn[one.name] = figure
    if found.horizon is not None:
        drawn["sweep_horizon"] = _horizon_figure(found.horizon)
    if found.accept is not None:
        drawn["sweep_accept"] = _accept_figure(found.accept)
    return drawn


def _panels(title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(8.0, 5.6), layout="constrained")
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    return figure, list(panels.flat)


def _line(axes: Axes, frame: pl.DataFrame, x: str, *, label: str, position: int) -> None:
    shares = ends_of(frame, "share_percent")
    banded_line(axes, frame[x].to_numpy(), shares, position=position, label=label)


def _finish(axes: Axes, scenario: str) -> None:
    axes.set_title(SHORT_TITLES[scenario], fontsize="medium")
    clean(axes)


def _label_outside(panels: Iterable[Axes], x: str, y: str) -> None:
    for axes in panels:
        if axes.get_subplotspec().is_last_row():  # type: ignore[union-attr]
            axes.set_xlabel(x)
        if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
            axes.set_ylabel(y)


def curves(found: PaperFindings, one: PaperFigure, *, metric: str, view: View) -> Figure:
    """Draw one figure for the page: cumulative reward by round, or how far it is above DORAL's."""
    result = found.comparison
    figure = Figure(figsize=_ON_PAGE_INCHES, layout="constrained")
    axes = figure.subplots()
    rounds = result.of(one.scenario, "doral")[0].rounds
    thin = np.unique(np.linspace(0, rounds.size - 1, min(rounds.size, PLOTTED_POINTS)).round().astype(np.int64))
    of_doral = paths_of(result, one.scenario, "doral", metric)[:, thin]
    for position, (policy, shown) in enumerate(SHOWN_NAMES.items()):
        paths = paths_of(result, one.scenario, policy, metric)[:, thin] - (of_doral if view == "difference" else 0.0)
        banded_curve(axes, rounds[thin], bands(paths), position=position, label=shown)
    _name_policies(axes)
    if race_ends := [run.race_ended for run in result.of(one.scenario, "doral") if run.race_ended > 0]:
        at = float(np.median(race_ends))
        axes.axvline(at, color="#8a8a8a", linewidth=1.0, linestyle=":", zorder=1)
        words = ("stage 1 ends", (at, 1.0))
        axes.annotate(*words, xycoords=axes.get_xaxis_transform(), va="bottom", ha="center", fontsize="small")
    axes.set_xlim(0, rounds[-1])
    if view == "reward":
        axes.set_ylim(bottom=0.0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=""))
    _finish_alone(figure, axes, "round", "cumulative reward" if view == "reward" else "less DORAL's reward")
    return figure


def sweep_panels(found: PaperFindings) -> dict[str, Figure]:
    """Draw the sweeps for the page, one figure for each panel."""
    drawn = {}
    for position, scenario in enumerate(SCENARIO_NAMES, start=1):
        if found.horizon is not None:
            figure = drawn[f"horizon-{position}"] = Figure(figsize=_ON_PAGE_INCHES, layout="constrained")
            axes = figure.subplots()
            _draw_horizon(axes, found.horizon, scenario)
            _name_policies(axes)
            _finish_alone(figure, axes, "horizon T, rounds", "% of the oracle's reward")
    if found.accept is not None:
        figure = drawn["accept"] = Figure(figsize=_ON_PAGE_INCHES, layout="constrained")
        axes = figure.subplots()
        for position, scenario in enumerate(SCENARIO_NAMES):
            frame = found.accept.filter(scenario=scenario)
            _line(axes, frame, "accept", label=SHORT_TITLES[scenario], position=position)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish_alone(figure, axes, "A', accepted arms", "% of the oracle's reward")
    return drawn


def _name_policies(axes: Axes) -> None:
    """By their place, so that the page can hide a policy."""
    for kind, artists in (("line", axes.get_lines()), ("band", axes.collections)):
        for position, artist in enumerate(artists):
            artist.set_gid(f"{kind}-{position}")


def _finish_alone(figure: Figure, axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    clean(axes)
    figure.legend(
        loc="outside upper left", ncols=4, frameon=False, handlelength=2.5, columnspacing=1.2, fontsize="small"
    )


def _draw_horizon(axes: Axes, frame: pl.DataFrame, scenario: str) -> None:
    for position, (policy, shown) in enumerate(SHOWN_NAMES.items()):
        _line(axes, frame.filter(scenario=scenario, policy=policy), "horizon", label=shown, position=position)
    axes.set_xticks(frame["horizon"].unique().sort())
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _horizon_figure(frame: pl.DataFrame) -> Figure:
    figure, panels = _panels(
        f"Sweep over the horizon T, which the paper does not give ({runs_words(frame['runs'][0])})"
    )
    for axes, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        _draw_horizon(axes, frame, scenario)
        _finish(axes, scenario)
    panels[0].legend(frameon=False, handlelength=3)
    _label_outside(panels, "horizon T, rounds", "% of the oracle's reward")
    return figure


def _accept_figure(frame: pl.DataFrame) -> Figure:
    figure, panels = _panels(f"Sweep over A', the arms that DORAL's race accepts ({runs_words(frame['runs'][0])})")
    for axes, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        _line(axes, frame.filter(scenario=scenario), "accept", label="DORAL", position=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, scenario)
    _label_outside(panels, "A', accepted arms", "% of the oracle's reward")
    return figure
