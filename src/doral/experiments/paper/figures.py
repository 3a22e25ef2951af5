"""The figures: the paper's four, and one for each sweep."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from doral.experiments.kit.drawing import banded_line, ends_of, runs_words
from doral.experiments.kit.extent import Extent
from doral.experiments.kit.shares import METRIC
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.names import FIGURES, SCENARIO_NAMES, SHORT_TITLES, SHOWN_NAMES
from doral.simulation.results.plots import clean, plot

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


def _horizon_figure(frame: pl.DataFrame) -> Figure:
    figure, panels = _panels(
        f"Sweep over the horizon T, which the paper does not give ({runs_words(frame['runs'][0])})"
    )
    for axes, scenario in zip(panels, SCENARIO_NAMES, strict=True):
        for position, (policy, shown) in enumerate(SHOWN_NAMES.items()):
            _line(axes, frame.filter(scenario=scenario, policy=policy), "horizon", label=shown, position=position)
        axes.set_xticks(frame["horizon"].unique().sort())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
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
